//! The device: flash as a cache over a slower home.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Error, ErrorKind, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Result, TxId,
};
use tantalum_ftl::CommandTasks;
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::{Semaphore, WaitQueue};
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};
use tantalum_ssd::Drive;

use crate::destage::Destager;
use crate::dirty::DirtyPages;
use crate::fault_points::Fault;
use crate::home_reads::HomeReads;
use crate::home_waits::HomeWaits;
use crate::journal::{Closed, Journal};
use crate::load::Load;
use crate::mode::Mode;
use crate::opening::{Found, find_dirty};
use crate::options::{Destage, TieredOptions};
use crate::pace::Pace;
use crate::page_set::PageSet;
use crate::reads::FromHome;
use crate::statistics::TieredStatistics;
use crate::streams::Streams;
use crate::wear::Wear;
use crate::writes::Pages;

/// A journal, and the epoch that was committed in it when it was opened.
pub type OpenJournal<J, P> = (Journal<J, P>, Option<Closed>);

/// The parts of a cache.
pub struct TieredParts<R, M: ZoneMedia, H, J> {
    /// The executor.
    pub runtime: R,
    /// The flash. Its FTL is a cache of as many pages as the home has.
    pub drive: Rc<Drive<M>>,
    /// The home.
    pub home: Rc<H>,
    /// The journal beside the home, and the epoch that is committed in it. Without a journal
    /// nothing is destaged.
    pub journal: Option<OpenJournal<J, M::Page>>,
    /// Returns the time in milliseconds since 1970.
    pub unix_ms: Box<dyn Fn() -> u64>,
    /// The settings.
    pub options: TieredOptions,
}

/// A cache on flash over a home.
pub struct Tiered<R: Runtime, M: ZoneMedia, H, J> {
    pub(crate) runtime: R,
    pub(crate) drive: Rc<Drive<M>>,
    pub(crate) home: Rc<H>,
    pub(crate) journal: Option<Journal<J, M::Page>>,
    pub(crate) unix_ms: Box<dyn Fn() -> u64>,
    pub(crate) options: TieredOptions,
    pub(crate) mode: Cell<Mode>,
    limits: Limits,
    /// Pages of the flash that have no home, behind the pages of hosts.
    pub(crate) staging: PageRange,
    /// The pages of `staging` that have content of open transactions.
    pub(crate) staged: RefCell<PageSet>,
    pub(crate) dirty: RefCell<DirtyPages>,
    pub(crate) reads: HomeReads<M::Page>,
    pub(crate) home_waits: HomeWaits,
    pub(crate) from_home: RefCell<FromHome>,
    pub(crate) streams: RefCell<Streams>,
    pub(crate) load: Load,
    wear: Wear,
    pub(crate) commands: CommandTasks<Self>,
    pub(crate) destager: Destager,
    pub(crate) pace: Pace,
    /// Held by a trim or a commit of a large transaction, one at a time, and while the journal is
    /// filled.
    pub(crate) trim_turn: Semaphore,
    /// Trims that belong to the next epoch. The journal has room for at most `trims_max`.
    pub(crate) trims: Cell<u64>,
    trims_max: u64,
    /// Pages of the trim, or of the commit of a large transaction, that is in the log but not in
    /// force yet: reads still return the old content.
    pub(crate) trimming: RefCell<PageSet>,
    /// Woken when a page may change that could not before, or there is room for more dirty pages.
    pub(crate) may_change: WaitQueue,
    /// Woken when pages wait for admission.
    pub(crate) admissions: WaitQueue,
    pub(crate) counts: RefCell<TieredStatistics>,
    started: Cell<bool>,
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Composes the cache. The flash reports which pages are dirty.
    ///
    /// # Errors
    /// `InvalidInput` if the parts do not fit together.
    pub fn new(parts: TieredParts<R, M, H, J>) -> Result<Rc<Self>> {
        let TieredParts { runtime, drive, home, journal, unix_ms, options } = parts;
        let Some(cache) = drive.ftl().options().cache else {
            return Err(invalid("the flash was not created as a cache"));
        };
        let limits = Limits { share_pairs_max: 0, ..drive.limits().clone() };
        options.check(limits.transaction_pages_max.max(limits.atomic_write_pages_max))?;
        let staging = drive.staging();
        if home.limits().pages < staging.first.0 {
            return Err(invalid("the home is smaller than the volume"));
        }
        if options.dirty_hard_pages + u64::from(drive.options().cache_pages) > cache.dirty_pages_max
        {
            return Err(invalid("the limit of dirty pages is higher than the flash can keep"));
        }
        // If staged pages took all the room, other writers would wait forever.
        let others = u64::from(limits.transaction_pages_max.max(limits.atomic_write_pages_max));
        if options.staged_pages_max > options.dirty_hard_pages - others {
            return Err(invalid("staged transactions leave no room for the pages of others"));
        }
        let now_ns = runtime.now_ns();
        let (journal, committed) = journal.unzip();
        let last = journal.as_ref().and_then(Journal::last_committed);
        let room = journal.as_ref().map(Journal::pages_max);
        let needed = options.dirty_hard_pages + u64::from(drive.options().cache_pages);
        if options.destage == Destage::Ordered && room.is_none_or(|room| room < needed) {
            return Err(invalid("the journal beside the home has no room for all dirty pages"));
        }
        // A write into a trimmed range splits it in two. Each dirty page does so at most once, so
        // the room for `needed` ranges is set aside. Trims get half of the rest, as ranges that are
        // appended to the journal out of order are not merged.
        let ordered = journal.as_ref().filter(|_| options.destage == Destage::Ordered);
        let ranges = ordered.map(|journal| journal.zero_ranges_max(needed));
        let trims_max =
            ranges.map_or(u64::MAX, |ranges| (ranges.saturating_sub(needed) / 2).max(1));
        // Without epochs the pages of a committed epoch are destaged like the others.
        let committed = committed.flatten().filter(|_| options.destage == Destage::Ordered);
        let Found { mut dirty, trims } = find_dirty(&drive, journal.as_ref());
        if committed.is_none() {
            dirty.give_up();
        }
        let mut staged = PageSet::new();
        if drive.has_left_staged() {
            drive.ftl().staged_pages().for_each(|page| _ = staged.insert(page));
        }
        Ok(Rc::new(Tiered {
            home,
            staging,
            staged: RefCell::new(staged),
            journal,
            unix_ms,
            limits,
            reads: HomeReads::new(options.admission_queue_pages),
            home_waits: HomeWaits::default(),
            destager: Destager::new(committed, last),
            pace: Pace::new(&options),
            mode: Cell::new(options.mode),
            options,
            runtime,
            drive,
            dirty: RefCell::new(dirty),
            from_home: RefCell::default(),
            streams: RefCell::default(),
            load: Load::default(),
            wear: Wear::new(options.wear_bytes_per_day, now_ns),
            commands: CommandTasks::new(),
            trim_turn: Semaphore::new("the turn of trims", 1),
            trims: Cell::new(trims),
            trims_max,
            trimming: RefCell::default(),
            may_change: WaitQueue::new("pages to go home"),
            admissions: WaitQueue::new("pages to come in"),
            counts: RefCell::default(),
            started: Cell::new(false),
        }))
    }

    /// The flash.
    pub fn drive(&self) -> &Rc<Drive<M>> {
        &self.drive
    }

    /// The result of `operation` of the home; `Closed` if the home is given up.
    pub(crate) async fn at_home<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        self.home_waits.answer(|| self.runtime.now_ns(), operation).await
    }

    /// The home.
    pub fn home(&self) -> &Rc<H> {
        &self.home
    }

    /// The journal beside the home.
    pub fn home_journal(&self) -> Option<&Journal<J, M::Page>> {
        self.journal.as_ref()
    }

    /// The settings.
    pub fn options(&self) -> &TieredOptions {
        &self.options
    }

    /// Whether the journal has room for `more` trims in the next epoch.
    pub(crate) fn has_room_for_trims(&self, more: u64) -> bool {
        self.trims.get() + more <= self.trims_max || Fault::TrimsUnlimited.is_planted()
    }

    /// Maximum number of trims in an epoch.
    pub(crate) fn trims_max(&self) -> u64 {
        self.trims_max
    }

    /// The pages in which transactions are staged, behind the pages of hosts, and whether any of
    /// them is in use.
    pub fn staging(&self) -> (PageRange, bool) {
        (self.staging, !self.staged.borrow().is_empty())
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut TieredStatistics)) {
        change(&mut self.counts.borrow_mut());
    }

    /// Counters since opening, and the present dirty pages.
    pub fn statistics(&self) -> TieredStatistics {
        let counts = self.counts.borrow().clone();
        let dirty = self.dirty.borrow();
        let (unreadable_pages, first_unreadable) = dirty.count_unreadable();
        TieredStatistics {
            dirty_pages: self.drive.ftl().dirty_pages(),
            dirty_or_trimmed_pages: dirty.len(),
            unreadable_pages,
            first_unreadable,
            lost_pages: dirty.lost.len(),
            destage_lag_ns: self.destage_lag_ns(),
            epoch: self.destager.epoch(),
            mode: self.mode(),
            home_failure: counts
                .home_failure
                .clone()
                .or_else(|| self.reads.failure())
                .or_else(|| self.home_waits.silence(self.runtime.now_ns())),
            ..counts
        }
    }

    /// Whether a request belongs to a stream that is too long to stay.
    pub(crate) fn passes(&self, range: PageRange) -> bool {
        let most = u64::from(self.options.stream_pages_max);
        most > 0 && self.streams.borrow_mut().seen(range) > most
    }

    /// Whether more was written to the flash than its budget allows.
    pub(crate) fn is_worn(&self) -> bool {
        let written = || self.drive.ftl().statistics().slots_programmed * PAGE_BYTES as u64;
        self.wear.charge(self.runtime.now_ns(), written)
    }

    /// Destages everything that is dirty now, and makes it durable on the home.
    ///
    /// # Errors
    /// Those of the home, if retries fail too; `Latched` if the flash failed.
    pub async fn write_home(&self) -> Result<()> {
        self.commands.run("write home", |tiered| async move { tiered.destage_all().await }).await
    }
}

pub(crate) fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, problem)
}

impl<R, M, H, J> PageDevice for Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    type Page = M::Page;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [M::Page], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        self.limits.check_range(range)?;
        match self.is_staging(range) {
            true => self.drive.read(first, out, None).await,
            false => self.read_pages(first, out).await,
        }
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_write(range)?;
        match self.is_staging(range) {
            true => self.home_waits.unless_given_up(self.stage(first, pages)).await,
            false => {
                let put = self.put(Pages::Run(first, pages), || ());
                self.home_waits.unless_given_up(put).await
            }
        }
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, M::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits.check_scattered(&pages)?;
        self.home_waits.unless_given_up(self.put(Pages::Scattered(&pages), ended)).await
    }

    async fn flush(&self) -> Result<()> {
        self.drive.flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.drive.check_failed()?;
        if range.pages == 0 {
            return Ok(());
        }
        if self.is_staging(range) {
            return self.give_up_staged(range).await;
        }
        let trim = self.commands.run("trim", move |tiered| tiered.trim_range(range));
        self.home_waits.unless_given_up(trim).await
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.drive.check_failed()?;
        let take_over = |tiered: Rc<Self>| tiered.take_over_in_turn(pairs, zeros, ended);
        let commit = self.commands.run("commit of a large transaction", take_over);
        self.home_waits.unless_given_up(commit).await
    }
}

impl<R, M, H, J> LifeCycle for Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Starts the tasks of the flash, the destager, and the admission of pages; none if it is open
    /// read-only.
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        if self.started.replace(true) || self.drive.is_read_only() {
            return;
        }
        self.drive.start(runtime);
        self.commands.start(self, runtime);
        let tiered = Rc::clone(self);
        drop(runtime.spawn("destager", async move { tiered.run_destager().await }));
        if self.options.admit_reads {
            let tiered = Rc::clone(self);
            drop(runtime.spawn("admission", async move { tiered.run_admission().await }));
        }
    }

    /// Dirty pages stay in the flash, and the next opening finds them there.
    async fn close(&self) -> Result<()> {
        if !self.drive.is_read_only() && self.started.get() {
            self.rest_destager().await;
        }
        self.drive.close().await
    }

    fn wait_no_longer(&self) {
        self.home_waits.give_up();
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        let mut findings = self.drive.check(progress).await?;
        // While a destager runs, the journal changes.
        if let Some(journal) = self.journal.as_ref().filter(|_| self.drive.is_read_only()) {
            findings.extend(journal.check().await?);
        }
        Ok(findings)
    }

    fn counters(&self) -> DeviceCounters {
        let home = self.counts.borrow();
        let drive = self.drive.counters();
        DeviceCounters {
            pages_read: home.pages_read,
            read_hits: home.pages_read - home.home_pages_read,
            disk_reads: home.home_reads,
            disk_writes: home.home_writes,
            ..drive
        }
    }

    fn metrics(&self, out: &mut Readings) {
        self.drive.metrics(out);
        self.statistics().tell(out);
    }

    fn validate(&self) {
        self.drive.validate();
        let dirty = self.dirty.borrow();
        let mut next = PageNo(0);
        while let Some(page) = self.drive.ftl().next_dirty(next) {
            assert!(dirty.contains(page), "{page:?} is dirty and would never go home");
            next = PageNo(page.0 + 1);
        }
    }
}
