//! Write-ahead logging inside the device: new versions go to a log area in flash, and are copied
//! home later.
//!
//! ```text
//! options   sizes, and the maximum size of a transaction
//! log       the log area: zones of its own, filled in order, reset from the oldest on
//! index     the newest committed version of each logged page, and its transaction
//! home      copies the current pages of the oldest zone home, then resets the zone
//! recovery  scans the log: committed pages are read from there until they are home
//! ```
//! A redo log of whole pages without undo: nothing of an open transaction reaches a home location
//! (no-steal), and a commit waits only for the log (no-force), as in the journal of ext3 and, with
//! records of pages instead of records of changes, in ARIES (Mohan et al., ACM TODS 17(1), 1992). At
//! the commit the pages are appended to the log, and each append records the number of pages of the
//! transaction: it is committed when all of them are durable. So every page is written twice, except
//! pages of which a newer version is committed before the log wraps round. A log whose transactions
//! end with a commit record, as in ext3 and ARIES, is an option ([`WalCommit`]).
//!
//! A page of the FTL after the host's pages stores the number up to which all transactions are home
//! (like the journal's super block). It changes in one batch with the last pages that are copied
//! home.
mod home;
mod index;
mod kind;
mod log;
mod options;
mod recovery;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Payload,
    Result, SlotNo, TxId,
};
use tantalum_ftl::{CommandTasks, Ftl, FtlOptions, FtlStatistics};
use tantalum_media::wrappers::ZoneWindow;
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::{Semaphore, WaitQueue};
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};

use crate::page_turns::PageTurns;
use index::{Index, Logged};
use log::{Committed, Log, Place};
use tantalum_ssd::Transactional;

pub use kind::WalKind;
pub use options::{WalCommit, WalOptions};
pub use recovery::WalRecovery;

/// Counters of a [`Wal`] since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalStatistics {
    /// Pages read by the host.
    pub pages_read: u64,
    /// Flush commands; they have no effect.
    pub flushes: u64,
    /// Pages written by the host; those of a transaction are counted when it commits.
    pub pages_written: u64,
    /// Slots programmed in the log: pages, commit records, padding.
    pub log_slots: u64,
    /// Pages copied home.
    pub pages_home: u64,
    /// Of those, read back from the log because they were not in memory.
    pub pages_read_back: u64,
    /// The FTL's counters, without the log.
    pub ftl: FtlStatistics,
}

/// A device with a redo log in flash.
pub type Wal<P> = Transactional<RedoLog<P>>;

/// The same device without transactions: every write goes to the log.
pub struct RedoLog<P: Payload> {
    ftl: Rc<Ftl<ErasedZones<P>>>,
    log: Log<ErasedZones<P>>,
    limits: Limits,
    turns: PageTurns,
    commands: CommandTasks<Self>,
    index: RefCell<Index<P>>,
    next_number: Cell<u64>,
    /// All transactions up to this one are home.
    home: Cell<u64>,
    home_turn: Semaphore,
    /// Signals that transactions were committed, or that the device failed.
    commits_ended: WaitQueue,
    failed: RefCell<Option<Error>>,
    counts: Cell<WalStatistics>,
}

/// Divides `media` into the zones of the FTL and those of the log.
fn divide<M: ZoneMedia>(media: &Rc<M>, options: &WalOptions) -> Result<[ErasedZones<M::Page>; 2]> {
    let geometry = media.geometry();
    options.check(&geometry)?;
    let first = geometry.zones - options.log_zones(&geometry);
    let part = |zones| ZoneWindow::new(Rc::clone(media), zones).map(ErasedZones::new);
    Ok([part(0..first)?, part(first..geometry.zones)?])
}

/// The FTL's options, with one more page after the host's pages for the log's state.
fn with_state_page(ftl: FtlOptions) -> FtlOptions {
    FtlOptions { pages: ftl.pages + 1, ..ftl }
}

impl<P: Payload> RedoLog<P> {
    /// Makes a new device on `media`; its last zones become the log. `ftl.pages` is the number of
    /// pages that the host sees.
    ///
    /// # Errors
    /// `InvalidInput` if the options do not fit the geometry.
    pub async fn format(
        media: Rc<impl ZoneMedia<Page = P>>,
        ftl: FtlOptions,
        options: WalOptions,
    ) -> Result<Wal<P>> {
        let [home, log] = divide(&media, &options)?;
        let ftl = Ftl::format(home, with_state_page(ftl)).await?;
        recovery::reset_zones(&log, |_| true).await?;
        Ok(RedoLog::open(ftl, Log::new(log, options), options, 0))
    }

    /// The device, with all transactions up to `home` at home and no later one known.
    fn open(
        ftl: Rc<Ftl<ErasedZones<P>>>,
        log: Log<ErasedZones<P>>,
        options: WalOptions,
        home: u64,
    ) -> Wal<P> {
        let geometry = log.media().geometry();
        let zones = ftl.media().geometry().zones + geometry.zones;
        let whole = tantalum_media::ZoneGeometry { zones, ..geometry };
        let pages_max = options.transaction_pages_max(&whole);
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: ftl.options().pages - 1,
            atomic_write_pages_max: pages_max,
            transaction_pages_max: pages_max,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        let redo_log = RedoLog {
            ftl,
            log,
            limits,
            turns: PageTurns::new(),
            commands: CommandTasks::new(),
            index: RefCell::new(Index::new(options.memory_pages as usize)),
            next_number: Cell::new(home + 1),
            home: Cell::new(home),
            home_turn: Semaphore::new("the copying home", 1),
            commits_ended: WaitQueue::new("commits in flight"),
            failed: RefCell::new(None),
            counts: Cell::default(),
        };
        Transactional::over(Rc::new(redo_log), options.transactions_max, pages_max)
    }

    /// The FTL of the home locations.
    pub fn ftl(&self) -> &Rc<Ftl<ErasedZones<P>>> {
        &self.ftl
    }

    /// Copies all committed pages home, so that the next recovery has nothing to do in the log.
    ///
    /// # Errors
    /// `Latched` after an earlier failure; errors of the medium.
    pub async fn checkpoint(&self) -> Result<()> {
        self.check_failed()?;
        match self.log.newest() {
            Some(newest) => self.copy_home(newest).await,
            None => Ok(()),
        }
    }

    /// Counters since opening.
    pub fn statistics(&self) -> WalStatistics {
        WalStatistics { ftl: self.ftl.statistics(), ..self.counts.get() }
    }

    fn count(&self, change: impl FnOnce(&mut WalStatistics)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn check_failed(&self) -> Result<()> {
        let first = match &*self.failed.borrow() {
            Some(first) => first.clone(),
            None => match self.ftl.latched() {
                Some(first) => first,
                None => return Ok(()),
            },
        };
        let context =
            "the device refuses writes until it is opened again, after an earlier failure";
        Err(Error::with_source(ErrorKind::Latched, context, first))
    }

    /// Refuses writes from now on, because it is unknown which part of the log became durable.
    fn fail(&self, error: &Error) {
        self.failed.borrow_mut().get_or_insert_with(|| error.clone());
        self.log.room.wake_all();
        self.log.filling.wake_all();
        self.commits_ended.wake_all();
    }

    /// Logs these pages as one transaction, which is durable when this returns. The caller must
    /// drive the future to its end.
    async fn log_pages(&self, pages: &[(PageNo, P)]) -> Result<()> {
        self.check_failed()?;
        if pages.is_empty() {
            return Ok(());
        }
        let turn = self.turns.pages(pages.iter().map(|(page, _)| *page).collect()).await;
        let take_place = || {
            let number = self.next_number.get();
            self.next_number.set(number + 1);
            Place { number, durable: self.index.borrow_mut().start(number) }
        };
        let logged = self.log.commit(pages, || self.check_failed(), take_place).await;
        let Committed { number, pages: slots } = logged.inspect_err(|error| self.fail(error))?;
        turn.first().await;
        let numbered = pages.iter().zip(slots);
        let logged = numbered.map(|((page, content), (slot, checksum))| {
            (*page, Logged { number, slot, checksum, content: Some(content.clone()) })
        });
        self.index.borrow_mut().committed(number, logged);
        self.count(|counts| {
            counts.pages_written += pages.len() as u64;
            counts.log_slots += self.log.slots_of(pages.len());
        });
        self.commits_ended.wake_all();
        Ok(())
    }

    /// Copies pages that are in memory to `out`. Returns the places of the others.
    fn look_up(&self, first: PageNo, out: &mut [P]) -> Missed {
        let index = self.index.borrow();
        let mut missed = Missed::default();
        for (at, (page, out)) in (first.0..).map(PageNo).zip(out).enumerate() {
            match index.get(page) {
                None => missed.home.push((page, at)),
                Some(Logged { content: Some(content), .. }) => *out = content.clone(),
                Some(Logged { slot, checksum, .. }) => {
                    missed.slots.push(*slot);
                    missed.logged.push((page, *checksum, at));
                }
            }
        }
        missed
    }
}

/// Pages that are not in memory. An index is a position in the command's pages.
#[derive(Default)]
struct Missed {
    /// Pages at home, with their indexes.
    home: Vec<(PageNo, usize)>,
    /// Slots in the log; `logged` has the page, the checksum and the index of each.
    slots: Vec<SlotNo>,
    logged: Vec<(PageNo, u32, usize)>,
}

impl<P: Payload> LifeCycle for RedoLog<P> {
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        self.commands.start(self, runtime);
        let wal = Rc::clone(self);
        runtime.spawn("copier home", async move { wal.run_copier().await });
        self.ftl.start_tasks(runtime);
    }

    /// Writes a checkpoint of the home locations. The log stays as it is; its pages are read from there
    /// after the device is opened again.
    async fn close(&self) -> Result<()> {
        let close = |wal: Rc<Self>| async move { wal.ftl.close().await };
        self.commands.run("close", close).await
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.ftl.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        let counts = self.statistics();
        DeviceCounters {
            pages_read: counts.pages_read,
            pages_written: counts.pages_written,
            flushes: counts.flushes,
            log_slots: counts.log_slots,
            ..counts.ftl.counters()
        }
    }

    fn metrics(&self, out: &mut Readings) {
        let counters = self.counters();
        counters.tell(self.limits(), out);
        let log = "Slots programmed in the redo log beside the translation layer";
        out.counter("tantalum_redo_log_programmed_slots_total", log, counters.log_slots);
        self.ftl.statistics().tell(out);
    }

    fn validate(&self) {
        self.ftl.validate();
    }
}

impl<P: Payload> PageDevice for RedoLog<P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [P], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        self.count(|counts| counts.pages_read += out.len() as u64);
        let missed = self.look_up(first, out);
        // There is no await from there to the first poll below: all pages are read as of that moment.
        let _reading = self.log.pins.pin(&missed.slots);
        match missed.home[..] {
            [] => {}
            [(page, _)] if out.len() == 1 => self.ftl.read(&[page], out).await?,
            _ => self.ftl.read_at_once(missed.home, out).await?,
        }
        if missed.slots.is_empty() {
            return Ok(());
        }
        let expected = missed.logged.iter().map(|(page, checksum, _)| (*page, *checksum));
        let contents = self.log.read(&missed.slots, expected).await?;
        missed.logged.iter().zip(contents).for_each(|((.., at), content)| out[*at] = content);
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[P], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_write(PageRange::new(first, pages.len() as u64))?;
        self.check_failed()?;
        if pages.is_empty() {
            return Ok(());
        }
        let numbered = (first.0..).map(PageNo).zip(pages.iter().cloned());
        let pages: Vec<_> = numbered.collect();
        let write = |wal: Rc<Self>| async move { wal.log_pages(&pages).await };
        self.commands.run("write", write).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, P)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let write = |wal: Rc<Self>| async move {
            let logged = wal.log_pages(&pages).await;
            ended();
            logged
        };
        self.commands.run("commit", write).await
    }

    async fn flush(&self) -> Result<()> {
        self.count(|counts| counts.flushes += 1);
        self.check_failed()
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.check_failed()?;
        if range.pages == 0 {
            return Ok(());
        }
        let trim = |wal: Rc<Self>| async move {
            // The log must not redo its pages after the trim, and no page of the range may be
            // committed between the two steps.
            let _turn = wal.turns.range(range).await;
            wal.checkpoint().await?;
            wal.ftl.trim(range, true).await
        };
        self.commands.run("trim", trim).await
    }
}
