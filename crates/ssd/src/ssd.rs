//! The device and its commands.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Error, ErrorKind, Extent, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Result, TxId,
};
use tantalum_ftl::{CommandTasks, Ftl};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::{Semaphore, WaitQueue, Waiting};

use crate::options::{CacheKind, FlushMeaning, SsdOptions};
use crate::refusals::latched;
use crate::room::{check_staging, left_staged};
use crate::statistics::SsdStatistics;
use crate::transactional::Transactional;
use crate::trim::{Trims, range_of};
use crate::write_back::{Awaited, Progress};
use crate::write_cache::WriteCache;

/// A flash device with transactions.
pub type Ssd<M> = Transactional<Drive<M>>;

/// The flash device without transactions: commands over a write cache and the FTL.
pub struct Drive<M: ZoneMedia> {
    pub(crate) ftl: Rc<Ftl<M>>,
    pub(crate) options: SsdOptions,
    limits: Limits,
    /// Pages of one write-back, unless the cache is written back whole.
    pub(crate) batch_pages: u32,
    /// Slots in a flash page.
    pub(crate) unit_pages: u32,
    pub(crate) cache: RefCell<WriteCache<M::Page>>,
    pub(crate) progress: RefCell<Progress>,
    /// The failure after which the device refuses writes, if any.
    pub(crate) failed: RefCell<Option<Error>>,
    /// The reason why nothing can be written back at present: pages of the medium cannot be read,
    /// and their zones are needed.
    pub(crate) stalled: RefCell<Option<Error>>,
    pub(crate) started: Cell<bool>,
    /// Tasks of commands that change the log themselves and must run to the end.
    pub(crate) commands: CommandTasks<Self>,
    /// Something was accepted since opening or closing, so a power loss must dump it.
    pub(crate) serving: Cell<bool>,
    /// Writers are served in order of arrival.
    pub(crate) write_turn: Semaphore,
    pub(crate) trims: Trims,
    /// Number of writers that wait for frames.
    pub(crate) writers_wait: Cell<u32>,
    /// Frames became free.
    pub(crate) room: WaitQueue,
    /// There may be something to write back.
    pub(crate) work: WaitQueue,
    /// A batch was taken to be written back.
    pub(crate) taken: WaitQueue,
    /// Commands have ended.
    pub(crate) ended: WaitQueue,
    /// All commands up to this one are in the persisted mapping table.
    mapped: Cell<u64>,
    /// Staging pages of committed transactions that are not trimmed yet.
    pub(crate) leaving: Cell<u64>,
    pub(crate) counts: Cell<Counts>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub pages_read: u64,
    pub pages_written: u64,
    pub read_hits: u64,
    pub flushes: u64,
    pub shares: u64,
    pub dump_bytes_max: u64,
}

/// Checks that the stored energy suffices to dump the whole durable cache.
fn check_dump<M: ZoneMedia>(ftl: &Ftl<M>, options: &SsdOptions) -> Result<()> {
    let pages = options.cache_pages;
    let problem = match ftl.options().dump {
        None => "the FTL has no energy for a dump (`FtlOptions::dump`)".to_owned(),
        Some(dump) if pages > dump.frames_max => {
            format!("the dump has energy for only {} pages", dump.frames_max)
        }
        Some(_) => return Ok(()),
    };
    let context = format!("a durable cache of {pages} pages is not possible: {problem}");
    Err(Error::new(ErrorKind::InvalidInput, context))
}

impl<M: ZoneMedia> Ssd<M> {
    /// A device over `ftl`, with an empty cache.
    ///
    /// # Errors
    /// `InvalidInput` if the options contradict each other or the energy of the FTL's dump.
    pub fn new(ftl: Rc<Ftl<M>>, options: SsdOptions) -> Result<Self> {
        let drive = Rc::new(Drive::new(ftl, options)?);
        let SsdOptions { transactions_max, transaction_pages_max, staged_pages_max, .. } =
            drive.options;
        let staging = drive.staging();
        if staging.pages == 0 {
            return Ok(Transactional::over(drive, transactions_max, transaction_pages_max));
        }
        let is_used = drive.has_left_staged();
        let pages_max = u64::from(staged_pages_max).min(staging.pages) as u32;
        let over = Transactional::over(drive, transactions_max, pages_max);
        Ok(over.staged_in(staging, is_used, transaction_pages_max))
    }
}

impl<M: ZoneMedia> Drive<M> {
    /// A device over `ftl`, with an empty cache.
    ///
    /// # Errors
    /// `InvalidInput` if the options contradict each other or the energy of the FTL's dump.
    pub fn new(ftl: Rc<Ftl<M>>, mut options: SsdOptions) -> Result<Self> {
        options.check()?;
        if options.cache == CacheKind::Durable {
            check_dump(&ftl, &options)?;
        }
        if options.flush == FlushMeaning::WriteBack {
            ftl.log_shares();
        }
        if options.cache != CacheKind::WriteThrough {
            // Acknowledged writes must not be refused later.
            ftl.wait_for_room();
        }
        check_staging(&ftl, &options)?;
        let batch_max = ftl.batch_pages_max();
        if options.cache.whole_batches() && options.cache_pages > batch_max {
            // The whole cache is written back as one batch, which must fit.
            options.cache_pages = batch_max;
            options.transaction_pages_max = options.transaction_pages_max.min(batch_max);
            options.write_pages_max = options.write_pages_max.min(batch_max);
        }
        let geometry = ftl.media().geometry();
        // Pages on the home cannot be shared, only copied.
        let has_home = ftl.options().cache.is_some();
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: ftl.options().pages,
            atomic_write_pages_max: options.atomic_write_pages_max(),
            transaction_pages_max: options.transaction_pages_max,
            transactions_max: 0,
            share_pairs_max: if options.cache == CacheKind::Volatile || has_home {
                0
            } else {
                ftl.share_pairs_max()
            },
            durability: options.cache.durability(),
        };
        let left_staged = left_staged(&ftl, &options);
        Ok(Drive {
            ftl,
            options,
            limits,
            batch_pages: geometry.append_pages_max.min(options.write_back_pages_max),
            unit_pages: geometry.append_unit_slots,
            cache: RefCell::new(WriteCache::new(options.cache_pages)),
            progress: RefCell::new(Progress::default()),
            failed: RefCell::new(None),
            stalled: RefCell::new(None),
            started: Cell::new(false),
            commands: CommandTasks::new(),
            serving: Cell::new(false),
            write_turn: Semaphore::new("the writer's turn", 1),
            trims: Trims::new(),
            writers_wait: Cell::new(0),
            room: WaitQueue::new("room in the write cache"),
            work: WaitQueue::new("dirty pages"),
            taken: WaitQueue::new("the start of a write-back"),
            ended: WaitQueue::new("write-back"),
            mapped: Cell::new(0),
            leaving: Cell::new(left_staged),
            counts: Cell::new(Counts::default()),
        })
    }

    /// The FTL below.
    pub fn ftl(&self) -> &Rc<Ftl<M>> {
        &self.ftl
    }

    /// The options in effect, with limits applied.
    pub fn options(&self) -> &SsdOptions {
        &self.options
    }

    /// Counters since opening.
    pub fn statistics(&self) -> SsdStatistics {
        let counts = self.counts.get();
        SsdStatistics {
            pages_read: counts.pages_read,
            read_hits: counts.read_hits,
            pages_written: counts.pages_written,
            pages_coalesced: self.cache.borrow().coalesced(),
            flushes: counts.flushes,
            shares: counts.shares,
            dump_bytes: self.dump_bytes().unwrap_or(0),
            dump_bytes_max: counts.dump_bytes_max,
            ftl: self.ftl.statistics(),
        }
    }

    pub(crate) fn spawn_tasks(self: &Rc<Self>, runtime: &impl Runtime) {
        self.started.set(true);
        self.commands.start(self, runtime);
        for _ in 0..self.options.write_backs_in_flight {
            let ssd = Rc::clone(self);
            runtime.spawn("flusher", async move { ssd.run_flusher().await });
        }
        self.ftl.start_tasks(runtime);
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Puts pages, all in `range`, into the cache in one step, as one command, and returns its
    /// number. `pages` is called when there is room, and returns `needed` pages. If it returns
    /// `None`, nothing is accepted.
    pub(crate) async fn accept<I: IntoIterator<Item = (PageNo, M::Page)>>(
        &self,
        range: PageRange,
        needed: u32,
        pages: impl FnOnce() -> Option<I>,
    ) -> Result<Option<u64>> {
        let turn = self.write_turn.acquire(1).await;
        self.trims.wait_in_force(range).await;
        if self.cache.borrow().free_frames() < needed {
            let waiting = Waiting::new(&self.writers_wait, 1);
            self.work.wake_all();
            let room = || {
                let ended = self.failed.borrow().is_some() || self.stalled.borrow().is_some();
                (self.cache.borrow().free_frames() >= needed || ended).then_some(())
            };
            self.room.until(room).await;
            drop(waiting);
        }
        self.check_failed()?;
        self.check_stalled()?;
        let Some(pages) = pages() else { return Ok(None) };
        let mut cache = self.cache.borrow_mut();
        let command = {
            let mut progress = self.progress.borrow_mut();
            progress.accepted += 1;
            progress.accepted
        };
        self.count(|counts| counts.pages_written += u64::from(needed));
        let counts_new = self.ftl.options().mapped_pages_max.is_some();
        for (page, content) in pages {
            let is_new = counts_new && !self.ftl.is_mapped(page);
            cache.insert(page, content, command, is_new);
        }
        drop(cache);
        drop(turn);
        self.serving.set(true);
        self.check_energy();
        self.wake_flushers();
        Ok(Some(command))
    }

    /// Waits until `command` has left the cache.
    pub(crate) async fn wait_ended(&self, command: u64) -> Result<()> {
        let _awaited = Awaited::new(&self.progress, command);
        self.ended.until(|| self.outcome_of(command)).await
    }

    fn outcome_of(&self, command: u64) -> Option<Result<()>> {
        if let Some(outcome) = self.progress.borrow().outcome(command) {
            return Some(outcome);
        }
        self.failed.borrow().as_ref().map(|error| Err(latched(error)))
    }

    /// Writes back everything that was accepted before the call.
    ///
    /// # Errors
    /// `OutOfSpace` if this is not possible at present: write-back continues when the medium can be
    /// read again.
    pub(crate) async fn drain_unless_stalled(&self) -> Result<()> {
        let accepted = self.want_all();
        let _awaited = Awaited::new(&self.progress, accepted);
        let drained = || match self.outcome_of(accepted) {
            Some(outcome) => Some(outcome.or_else(|_| self.check_failed())),
            None => self.check_stalled().err().map(Err),
        };
        self.ended.until(drained).await
    }

    /// Requests write-back of everything accepted so far, and returns the last accepted command.
    fn want_all(&self) -> u64 {
        let accepted = self.progress.borrow().accepted;
        self.want(accepted);
        accepted
    }

    fn want(&self, command: u64) {
        {
            let mut progress = self.progress.borrow_mut();
            progress.wanted = progress.wanted.max(command);
        }
        self.work.wake_all();
    }

    /// Writes back everything that was accepted before the call, without a limit of time.
    pub(crate) async fn drain(&self) -> Result<()> {
        let accepted = self.progress.borrow().accepted;
        self.drain_to(accepted).await
    }

    /// Writes back everything up to `command`.
    pub(crate) async fn drain_to(&self, command: u64) -> Result<()> {
        self.want(command);
        self.wait_left_cache(command).await
    }

    /// Makes everything that was accepted before the call durable.
    pub(crate) async fn make_durable(&self) -> Result<()> {
        let accepted = self.progress.borrow().accepted;
        self.drain().await?;
        if !self.ftl.is_durable() {
            self.ftl.sync().await?;
        }
        // With write-through, each batch has already persisted its mapping.
        let persist = self.options.persist_mapping && self.options.cache != CacheKind::WriteThrough;
        if persist && self.mapped.get() < accepted {
            self.ftl.media().persist_mapping().await?;
            self.mapped.set(self.mapped.get().max(accepted));
        }
        Ok(())
    }

    /// Reads a single page, the most frequent case, without allocating a list.
    async fn read_one(&self, page: PageNo, out: &mut M::Page) -> Result<()> {
        let cached = self.cache.borrow().get(page).cloned();
        self.count(|counts| {
            counts.pages_read += 1;
            counts.read_hits += u64::from(cached.is_some());
        });
        match cached {
            Some(content) => {
                *out = content;
                Ok(())
            }
            None => self.ftl.read(&[page], std::slice::from_mut(out)).await,
        }
    }

    /// Reads the pages that are in the cache; returns the missing ones with their indexes in `out`.
    fn read_cached(&self, first: PageNo, out: &mut [M::Page]) -> Vec<(PageNo, usize)> {
        let cache = self.cache.borrow();
        let mut missed = Vec::new();
        for (index, out) in out.iter_mut().enumerate() {
            let page = PageNo(first.0 + index as u64);
            match cache.get(page) {
                Some(content) => *out = content.clone(),
                None => missed.push((page, index)),
            }
        }
        missed
    }
}

impl<M: ZoneMedia> PageDevice for Drive<M> {
    type Page = M::Page;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [M::Page], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        if let [out] = out {
            return self.read_one(first, out).await;
        }
        let missed = self.read_cached(first, out);
        let hits = (out.len() - missed.len()) as u64;
        self.count(|counts| {
            counts.pages_read += out.len() as u64;
            counts.read_hits += hits;
        });
        if missed.is_empty() {
            return Ok(());
        }
        // No await since the cache was read, so all pages are as of one moment.
        self.ftl.read_at_once(missed, out).await
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_write(PageRange::new(first, pages.len() as u64))?;
        self.check_failed()?;
        if pages.is_empty() {
            return Ok(());
        }
        let numbered = pages.iter().enumerate();
        let numbered = numbered.map(|(at, page)| (PageNo(first.0 + at as u64), page.clone()));
        let range = PageRange::new(first, pages.len() as u64);
        let needed = pages.len() as u32;
        let accept = || self.has_room(needed, range.iter()).then_some(numbered);
        let accepted = self.accept(range, needed, accept).await?;
        let Some(command) = accepted else { return Err(self.no_room()) };
        match self.options.cache {
            CacheKind::WriteThrough => self.wait_ended(command).await,
            CacheKind::Durable | CacheKind::Ordered | CacheKind::Volatile => Ok(()),
        }
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, M::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits.check_scattered(&pages)?;
        self.check_failed()?;
        if pages.is_empty() {
            return Ok(());
        }
        let (range, needed) = (range_of(&pages), pages.len() as u32);
        let accept = || {
            let has_room = self.has_room(needed, pages.iter().map(|(page, _)| *page));
            has_room.then(|| {
                ended();
                pages
            })
        };
        let accepted = self.accept(range, needed, accept).await?;
        let Some(command) = accepted else { return Err(self.no_room()) };
        match self.options.cache {
            CacheKind::Durable => Ok(()),
            CacheKind::WriteThrough => self.wait_ended(command).await,
            CacheKind::Ordered | CacheKind::Volatile => self.make_durable().await,
        }
    }

    async fn flush(&self) -> Result<()> {
        self.count(|counts| counts.flushes += 1);
        if self.is_read_only() {
            return Ok(());
        }
        self.check_failed()?;
        match (self.options.cache, self.options.flush) {
            (CacheKind::WriteThrough, _) => Ok(()),
            (CacheKind::Durable, FlushMeaning::Order) => {
                // Writers that wait for frames came before the flush.
                drop(self.write_turn.acquire(1).await);
                self.check_failed()
            }
            _ => {
                self.drain_unless_stalled().await?;
                self.make_durable().await
            }
        }
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        if range.first < self.staging().first {
            return self.trim_then(range, || ()).await;
        }
        self.trim_then(range, || ()).await?;
        self.trimmed(range);
        Ok(())
    }

    fn extent(&self, range: PageRange) -> Extent {
        self.extent_as_read(range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.limits.check_share(pairs)?;
        self.check_failed()?;
        self.share_pairs(pairs.to_vec()).await
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        let (to, from) = self.limits.clone_ranges(to, from, pages)?;
        self.check_failed()?;
        self.clone_pages(to, from).await
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.check_failed()?;
        self.take_over_pairs(pairs, zeros, ended).await
    }
}
