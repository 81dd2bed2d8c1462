//! The device: the effect of each command.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Result, TxId,
};
use tantalum_ftl::Ftl;
use tantalum_media::ZoneMedia;
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::{Semaphore, WaitQueue, Waiting};
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};

use super::metadata::{PagePlace, TxNvram};
use super::options::TxCacheOptions;
use super::state::CacheState;
use super::statistics::TxCacheStatistics;

/// The NVRAM accesses of a write in the paper's NVCache, which has no transactions to chain pages to (section IV-B): frame,
/// header and mapping of each page. Here a write of several pages is atomic even without transactions; the extra accesses for
/// that are not charged.
const NV_CACHE_WRITE_ACCESSES: u64 = 3;

/// A flash device with a transactional write cache in NVRAM (TxCache).
pub struct TxCache<R, M: ZoneMedia> {
    pub(super) runtime: R,
    pub(super) ftl: Rc<Ftl<M>>,
    pub(super) options: TxCacheOptions,
    limits: Limits,
    /// Number of pages in one write-back: enough to keep every plane busy.
    pub(super) batch_pages: u32,
    pub(super) state: RefCell<CacheState<M::Page>>,
    /// The reason why the device refuses writes, if it does.
    pub(super) failed: RefCell<Option<Error>>,
    /// Writers are served in the order of arrival.
    pub(super) write_turn: Semaphore,
    /// One trim at a time.
    pub(super) trim_turn: Semaphore,
    /// The result of the last trim, with the number of NVRAM stores at its end.
    pub(super) trimmed: RefCell<Option<Result<u64>>>,
    /// Number of frames for which the current writer waits.
    pub(super) frames_wanted: Cell<u32>,
    /// Number of transactions that wait for a header.
    pub(super) begins_waiting: Cell<u32>,
    /// Whether the FTL's tasks run.
    ftl_started: Cell<bool>,
    /// Number of callers that wait until all committed pages are written back.
    pub(super) draining: Cell<u32>,
    /// Signals that frames, slots of the extended cache or transaction headers became free, or that
    /// pages came home.
    pub(super) room: WaitQueue,
    /// Signals that there may be something to write back.
    pub(super) work: WaitQueue,
    /// Signals that a writer needs pages moved to the extended cache.
    pub(super) spill_work: WaitQueue,
    /// Signals that a trim is recorded.
    pub(super) trim_work: WaitQueue,
    /// Signals the end of a transaction or of its commands.
    pub(super) gates: WaitQueue,
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// A new device over `ftl`, with an empty cache. The last `extended_pages` of the FTL's logical
    /// pages are the extended cache; the device offers the others.
    ///
    /// # Errors
    /// `InvalidInput` if the options contradict each other or the FTL is too small.
    pub fn new(runtime: R, ftl: Rc<Ftl<M>>, options: TxCacheOptions) -> Result<Self> {
        let pages = check(&ftl, &options)?;
        let nvram = TxNvram::new(&options, pages)?;
        Ok(Self::with_nvram(runtime, ftl, options, nvram))
    }

    /// A device whose cache is assumed to be empty, regardless of the content of `nvram`.
    pub(super) fn with_nvram(
        runtime: R,
        ftl: Rc<Ftl<M>>,
        options: TxCacheOptions,
        nvram: TxNvram<M::Page>,
    ) -> Self {
        let transactional = options.transactions_max > 0;
        let transaction_pages = options.uncommitted_frames_max() + options.extended_pages;
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: u64::from(nvram.mapping.slots()),
            atomic_write_pages_max: options.write_pages_max,
            transaction_pages_max: if transactional { transaction_pages } else { 0 },
            transactions_max: options.transactions_max,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        let append_pages_max = ftl.media().geometry().append_pages_max;
        // Pages being written back stay in their frames: one long append must not take up a large
        // part of a small cache.
        let batch_pages = append_pages_max.min((options.cache_pages / 16).max(64));
        TxCache {
            runtime,
            ftl,
            options,
            limits,
            batch_pages: batch_pages.min(options.cache_pages),
            state: RefCell::new(CacheState::new(nvram, &options)),
            failed: RefCell::new(None),
            write_turn: Semaphore::new("the writer's turn", 1),
            trim_turn: Semaphore::new("the trim's turn", 1),
            trimmed: RefCell::new(None),
            frames_wanted: Cell::new(0),
            begins_waiting: Cell::new(0),
            ftl_started: Cell::new(false),
            draining: Cell::new(0),
            room: WaitQueue::new("room in the cache"),
            work: WaitQueue::new("pages to write back"),
            spill_work: WaitQueue::new("pages for the extended cache"),
            trim_work: WaitQueue::new("a trim"),
            gates: WaitQueue::new("commands of the transaction"),
        }
    }

    /// The FTL below.
    pub fn ftl(&self) -> &Rc<Ftl<M>> {
        &self.ftl
    }

    /// The options that it was made with.
    pub fn options(&self) -> &TxCacheOptions {
        &self.options
    }

    /// The state, beside the medium, that survives a power cut.
    pub fn nvram(&self) -> TxNvram<M::Page> {
        self.state.borrow().nvram.clone()
    }

    /// Counters since opening.
    pub fn statistics(&self) -> TxCacheStatistics {
        let state = self.state.borrow();
        TxCacheStatistics {
            nvram_stores: state.nvram.region.stores(),
            ftl: self.ftl.statistics(),
            ..state.statistics
        }
    }

    /// Starts the FTL's tasks, if they do not run yet: a recovery may need the room that they make.
    pub(super) fn start_ftl(&self) {
        if self.ftl_started.replace(true) {
            return;
        }
        self.ftl.start_tasks(&self.runtime);
    }

    pub(super) fn check_failed(&self) -> Result<()> {
        match &*self.failed.borrow() {
            None => self.ftl.latched().map_or(Ok(()), |error| Err(latched(&error))),
            Some(error) => Err(latched(error)),
        }
    }

    /// The result for a waiter: the failure, or success if `ready`; `None` otherwise.
    pub(super) fn unless_failed(&self, ready: bool) -> Option<Result<()>> {
        match &*self.failed.borrow() {
            Some(error) => Some(Err(latched(error))),
            None => ready.then_some(Ok(())),
        }
    }

    /// Marks the device as failed because of `error`: it refuses writes, and all waiters are woken.
    pub(super) fn fail(&self, error: &Error) {
        self.failed.borrow_mut().get_or_insert_with(|| error.clone());
        for queue in [&self.room, &self.work, &self.spill_work, &self.trim_work, &self.gates] {
            queue.wake_all();
        }
    }

    /// Waits for the time of this many NVRAM accesses: one event for any number.
    pub(super) async fn pay(&self, accesses: u64) {
        let nanoseconds = accesses * self.options.nvram_access_ns;
        if nanoseconds > 0 {
            self.runtime.sleep(nanoseconds).await;
        }
    }

    /// Changes the state. Returns the number of NVRAM stores.
    pub(super) fn change(&self, change: impl FnOnce(&mut CacheState<M::Page>)) -> u64 {
        let state = &mut *self.state.borrow_mut();
        let before = state.nvram.region.stores();
        change(state);
        state.nvram.region.stores() - before
    }

    /// Reads the pages that are in frames. Returns, for the others, the FTL's page and the index in
    /// `out`.
    fn read_frames(
        &self,
        first: PageNo,
        out: &mut [M::Page],
        number: Option<u32>,
    ) -> Vec<(PageNo, usize)> {
        let state = &mut *self.state.borrow_mut();
        let mut missed = Vec::new();
        for (index, out) in out.iter_mut().enumerate() {
            let page = PageNo(first.0 + index as u64);
            let Some(found) = state.find(page, number) else {
                missed.push((page, index));
                continue;
            };
            match state.nvram.header(found).place {
                PagePlace::Frame(frame) => {
                    *out = state.nvram.frames.get(frame).expect("a frame that is used was filled");
                    state.touch(found);
                }
                PagePlace::Extended(extended) => {
                    missed.push((self.extended_page(extended), index));
                }
            }
        }
        state.statistics.pages_read += out.len() as u64;
        state.statistics.read_hits += (out.len() - missed.len()) as u64;
        missed
    }

    /// The FTL's page for slot `extended` of the extended cache.
    pub(super) fn extended_page(&self, extended: u32) -> PageNo {
        PageNo(self.limits.pages + u64::from(extended))
    }

    async fn read_all(
        &self,
        first: PageNo,
        out: &mut [M::Page],
        number: Option<u32>,
    ) -> Result<()> {
        let missed = self.read_frames(first, out, number);
        let hits = out.len() - missed.len();
        // There is no await since the frames were read, so all pages are read as of that moment,
        // even if a slot of the extended cache is freed and reused in the meantime.
        match missed[..] {
            [] => {}
            [(page, _)] if out.len() == 1 && page == first => self.ftl.read(&[page], out).await?,
            _ => self.ftl.read_at_once(missed, out).await?,
        }
        self.pay(hits as u64).await;
        Ok(())
    }
}

/// Checks `options` against the FTL. Returns the number of pages that the host sees.
pub(super) fn check<M: ZoneMedia>(ftl: &Ftl<M>, options: &TxCacheOptions) -> Result<u32> {
    options.check()?;
    let pages = ftl.options().pages.checked_sub(u64::from(options.extended_pages));
    match pages.map(u32::try_from) {
        Some(Ok(pages)) if pages > 0 => Ok(pages),
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "an FTL of {} pages has no room for an extended cache of {} and 1 to 2^32 pages",
                ftl.options().pages,
                options.extended_pages
            ),
        )),
    }
}

pub(super) fn latched(first: &Error) -> Error {
    Error::with_source(
        ErrorKind::Latched,
        "the device refuses writes until it is opened again, after an earlier failure",
        first.clone(),
    )
}

impl<R: Runtime, M: ZoneMedia> LifeCycle for TxCache<R, M> {
    fn start(self: &Rc<Self>, _runtime: &impl Runtime) {
        for _ in 0..self.options.write_backs_in_flight {
            let device = Rc::clone(self);
            self.runtime.spawn("flusher", async move { device.run_flusher().await });
        }
        let device = Rc::clone(self);
        self.runtime.spawn("spiller", async move { device.run_spiller().await });
        let device = Rc::clone(self);
        self.runtime.spawn("trimmer", async move { device.run_trimmer().await });
        self.start_ftl();
    }

    /// Aborts open transactions, writes all committed pages home and writes a checkpoint.
    async fn close(&self) -> Result<()> {
        self.check_failed()?;
        let open: Vec<TxId> = {
            let state = self.state.borrow();
            let open = |transaction: &&super::state::Transaction| {
                transaction.phase == super::state::Phase::Open
            };
            state.transactions.iter().filter(open).map(|transaction| transaction.id).collect()
        };
        for tx in open {
            self.abort(tx).await?;
        }
        let draining = Waiting::new(&self.draining, 1);
        self.work.wake_all();
        let drained = || {
            let state = self.state.borrow();
            self.unless_failed(state.in_force() == 0 && state.going_home.is_empty())
        };
        self.room.until(drained).await?;
        drop(draining);
        // A task: a checkpoint must be finished once it is begun, even if the caller drops this
        // future.
        let ftl = Rc::clone(&self.ftl);
        self.runtime.spawn("close", async move { ftl.close().await }).await
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.ftl.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        let counts = self.statistics();
        DeviceCounters {
            pages_read: counts.pages_read,
            read_hits: counts.read_hits,
            pages_written: counts.pages_written,
            flushes: counts.flushes,
            pages_spilled: counts.pages_spilled,
            ..counts.ftl.counters()
        }
    }

    fn metrics(&self, out: &mut Readings) {
        let counters = self.counters();
        counters.tell(&self.limits, out);
        counters.tell_write_cache(out);
        let spilled = "Pages of open transactions moved out of a cache too small for them";
        out.counter("tantalum_write_cache_spilled_pages_total", spilled, counters.pages_spilled);
        self.ftl.statistics().tell(out);
    }

    fn validate(&self) {
        self.validate_cache();
        self.ftl.validate();
    }
}

impl<R: Runtime, M: ZoneMedia> PageDevice for TxCache<R, M> {
    type Page = M::Page;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [M::Page], tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        let inside = match tx {
            Some(tx) => Some(self.enter(tx).await?),
            None => None,
        };
        self.read_all(first, out, inside.as_ref().map(|inside| inside.number)).await
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_write(range)?;
        self.check_failed()?;
        let inside = match tx {
            Some(tx) => Some(self.enter(tx).await?),
            None => {
                self.check_released(range)?;
                None
            }
        };
        if pages.is_empty() {
            return Ok(());
        }
        let number = inside.as_ref().map(|inside| inside.number);
        let turn = self.write_turn.acquire(1).await;
        self.wait_for_room(first, pages.len() as u32, number).await?;
        let stores = self.change(|state| {
            state.statistics.pages_written += pages.len() as u64;
            match number {
                None => state.write_outside(first, pages),
                Some(number) => {
                    for (page, content) in (first.0..).map(PageNo).zip(pages) {
                        state.write_inside(number, page, content.clone());
                    }
                }
            }
        });
        drop(turn);
        self.after_change();
        let accesses = match self.options.transactions_max {
            0 => NV_CACHE_WRITE_ACCESSES * pages.len() as u64,
            _ => stores,
        };
        self.pay(accesses).await;
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.state.borrow_mut().statistics.flushes += 1;
        self.check_failed()
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.check_failed()?;
        self.check_released(range)?;
        if range.pages == 0 { Ok(()) } else { self.trim_range(range).await }
    }

    async fn begin(&self) -> Result<TxId> {
        self.begin_as(None).await
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        let ending = self.end(tx).await?;
        let ready = match self.check_failed() {
            Ok(()) => self.wait_for_trim(ending.number).await,
            Err(error) => Err(error),
        };
        let stores = self.change(|state| match ready {
            Ok(()) => state.commit(ending.number),
            Err(_) => state.abort(ending.number),
        });
        drop(ending);
        self.after_change();
        self.pay(stores).await;
        ready
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        let ending = self.end(tx).await?;
        let stores = self.change(|state| state.abort(ending.number));
        drop(ending);
        self.after_change();
        self.pay(stores).await;
        Ok(())
    }

    async fn until_released(&self, range: PageRange) {
        self.room.until(|| self.check_released(range).ok()).await;
    }
}
