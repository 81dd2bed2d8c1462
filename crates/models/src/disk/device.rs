//! The disk as a device: commands, and one arm that serves the nearest of them first.
use super::cache::{Cache, Run};
use super::geometry::Place;
use super::mechanics::Mechanics;
use super::{DiskOptions, Platters};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tantalum_base::{
    Durability, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Payload, Result, TxId,
};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::{Semaphore, WaitQueue};
use tantalum_runtime::{DeviceCounters, DeviceKind, LifeCycle, Opening, Runtime};

/// Maximum length of a write in pages.
const WRITE_PAGES_MAX: u32 = 256;
/// If an access was passed over for this many times the queue depth, it is served next.
const PASSED_OVER_MAX: u64 = 8;

/// Counters of a disk since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Accesses that read from the platters.
    pub reads: u64,
    /// Accesses that wrote to the platters.
    pub writes: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Pages read by hosts.
    pub pages_read: u64,
    /// Of those, pages found in the write cache.
    pub pages_hit: u64,
    /// Pages written by hosts.
    pub pages_written: u64,
}

/// A command that waits for the arm.
struct Command<P> {
    first: u64,
    pages: u32,
    place: Place,
    /// The contents, if it is a write.
    contents: Option<Vec<P>>,
    /// Number of accesses served before this one could first be chosen.
    served_before: Option<u64>,
    done: Rc<Cell<bool>>,
}

/// The kind of an access of the arm.
enum Access {
    Command(Rc<Cell<bool>>),
    Run,
}

struct Work<P> {
    commands: VecDeque<Command<P>>,
    cache: Cache<P>,
    /// Number of accesses so far.
    served: u64,
    counters: DiskStatistics,
}

/// A disk. [`start`](Self::start) starts its arm.
pub struct Disk<R, P> {
    runtime: R,
    options: DiskOptions,
    limits: Limits,
    mechanics: Mechanics,
    platters: Platters<P>,
    work: RefCell<Work<P>>,
    write_turn: Semaphore,
    arrived: WaitQueue,
    finished: WaitQueue,
}

impl<R: Runtime, P: Payload> Disk<R, P> {
    /// A disk over `platters`, which may already hold data.
    ///
    /// # Errors
    /// `InvalidInput` if the options contradict each other.
    pub fn new(runtime: R, options: DiskOptions, platters: Platters<P>) -> Result<Self> {
        let mechanics = Mechanics::new(&options)?;
        let cached = options.cache_pages > 0;
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: options.pages,
            atomic_write_pages_max: match options.cache_pages {
                0 => WRITE_PAGES_MAX,
                cache_pages => WRITE_PAGES_MAX.min(cache_pages),
            },
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: if cached { Durability::Volatile } else { Durability::OnAck },
        };
        let work = Work {
            commands: VecDeque::new(),
            cache: Cache::new(options.cache_pages),
            served: 0,
            counters: DiskStatistics::default(),
        };
        Ok(Disk {
            runtime,
            options,
            limits,
            mechanics,
            platters,
            work: RefCell::new(work),
            write_turn: Semaphore::new("the writer's turn", 1),
            arrived: WaitQueue::new("something for the arm to do"),
            finished: WaitQueue::new("the arm"),
        })
    }

    /// Counters since it was opened.
    pub fn statistics(&self) -> DiskStatistics {
        self.work.borrow().counters
    }

    /// The options that it was made with.
    pub fn options(&self) -> &DiskOptions {
        &self.options
    }

    async fn run_arm(&self) {
        loop {
            let (access, place, until_ns) = self.arrived.until(|| self.next_access()).await;
            self.runtime.sleep_until(until_ns).await;
            self.platters.end_access(place.cylinder);
            match access {
                Access::Command(done) => done.set(true),
                Access::Run => self.work.borrow_mut().cache.end(),
            }
            self.finished.wake_all();
        }
    }

    /// Chooses the access that the head reaches first and sends the head there. Returns the time at
    /// which it ends.
    fn next_access(&self) -> Option<(Access, Place, u64)> {
        let work = &mut *self.work.borrow_mut();
        let now_ns = self.runtime.now_ns();
        let cylinder = self.platters.cylinder();
        let commands = work.commands.len().min(self.options.queue_depth as usize);
        let runs = work.cache.runs.len().min(self.options.queue_depth as usize - commands);
        let served = work.served;
        let wait_ns = |place: &Place, write: bool, served_before: &mut Option<u64>| {
            let passed_over = served - *served_before.get_or_insert(served);
            if passed_over > PASSED_OVER_MAX * u64::from(self.options.queue_depth) {
                return 0;
            }
            self.mechanics.positioning_ns(now_ns, cylinder, place, write)
        };
        let of_commands = work.commands.iter_mut().take(commands).map(|command| {
            wait_ns(&command.place, command.contents.is_some(), &mut command.served_before)
        });
        let of_runs = work.cache.runs.iter_mut().take(runs);
        let of_runs = of_runs.map(|run| wait_ns(&run.place, true, &mut run.served_before));
        let (at, _) = of_commands.chain(of_runs).enumerate().min_by_key(|(_, ns)| *ns)?;
        work.served += 1;
        let (access, place, pages, write) = match at.checked_sub(commands) {
            None => {
                let command = work.commands.remove(at)?;
                let write = command.contents.is_some();
                if let Some(contents) = command.contents {
                    self.platters.begin_write(command.first, contents);
                }
                (Access::Command(command.done), command.place, command.pages, write)
            }
            Some(index) => {
                let (Run { first, pages, place, .. }, contents) = work.cache.begin(index)?;
                self.platters.begin_write(first, contents);
                (Access::Run, place, pages, true)
            }
        };
        let counter = if write { &mut work.counters.writes } else { &mut work.counters.reads };
        *counter += 1;
        let positioned_ns = now_ns + self.mechanics.positioning_ns(now_ns, cylinder, &place, write);
        Some((access, place, positioned_ns + place.page_ns * u64::from(pages)))
    }

    /// Queues a command and waits for it.
    async fn serve(&self, first: u64, pages: u32, contents: Option<Vec<P>>) {
        let done = Rc::new(Cell::new(false));
        {
            let work = &mut *self.work.borrow_mut();
            work.commands.push_back(Command {
                first,
                pages,
                place: self.mechanics.geometry.place(first),
                contents,
                served_before: None,
                done: Rc::clone(&done),
            });
        }
        self.arrived.wake_all();
        self.finished.until(|| done.get().then_some(())).await;
    }

    /// Waits until everything now in the cache is on the platters.
    async fn drain(&self) {
        let newest = self.work.borrow().cache.newest();
        let written = || self.work.borrow().cache.is_written(newest).then_some(());
        self.finished.until(written).await;
    }
}

impl<R: Runtime, P: Payload> LifeCycle for Disk<R, P> {
    /// Starts the arm.
    fn start(self: &Rc<Self>, _runtime: &impl Runtime) {
        let disk = Rc::clone(self);
        drop(self.runtime.spawn("disk arm", async move { disk.run_arm().await }));
    }

    /// Writes the cache back.
    async fn close(&self) -> Result<()> {
        self.drain().await;
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        let counts = self.statistics();
        DeviceCounters {
            pages_read: counts.pages_read,
            read_hits: counts.pages_hit,
            pages_written: counts.pages_written,
            flushes: counts.flushes,
            disk_reads: counts.reads,
            disk_writes: counts.writes,
            ..DeviceCounters::default()
        }
    }

    fn metrics(&self, out: &mut Readings) {
        let counters = self.counters();
        counters.tell(&self.limits, out);
        counters.tell_write_cache(out);
        let (reads, writes) = ("Reads of the platters", "Writes to the platters");
        out.counter("tantalum_disk_reads_total", reads, counters.disk_reads);
        out.counter("tantalum_disk_writes_total", writes, counters.disk_writes);
    }

    fn validate(&self) {}
}

/// A new empty disk, or the one stored on the platters: there is nothing to recover.
impl<R: Runtime, P: Payload> DeviceKind<R, Platters<P>> for DiskOptions {
    type Device = Disk<R, P>;
    type Kept = ();
    type Report = ();

    async fn format(&self, on: Opening<R, Platters<P>, ()>) -> Result<Rc<Self::Device>> {
        on.media.forget(0..self.pages);
        Disk::new(on.runtime, *self, on.media).map(Rc::new)
    }

    async fn open(&self, on: Opening<R, Platters<P>, ()>) -> Result<(Rc<Self::Device>, ())> {
        Ok((Rc::new(Disk::new(on.runtime, *self, on.media)?), ()))
    }
}

impl<R: Runtime, P: Payload> PageDevice for Disk<R, P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [P], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        self.limits.check_range(range)?;
        let cached = {
            let work = &mut *self.work.borrow_mut();
            let hits = range.iter().filter(|page| work.cache.get(page.0).is_some()).count();
            work.counters.pages_read += range.pages;
            work.counters.pages_hit += hits as u64;
            hits == out.len()
        };
        if !cached {
            self.serve(first.0, out.len() as u32, None).await;
        }
        let work = self.work.borrow();
        for (page, out) in range.iter().zip(out) {
            let newest = work.cache.get(page.0).cloned();
            *out = newest.unwrap_or_else(|| self.platters.get(page));
        }
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[P], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_write(PageRange::new(first, pages.len() as u64))?;
        self.work.borrow_mut().counters.pages_written += pages.len() as u64;
        if pages.is_empty() {
            return Ok(());
        }
        if self.options.cache_pages == 0 {
            self.serve(first.0, pages.len() as u32, Some(pages.to_vec())).await;
            return Ok(());
        }
        let _turn = self.write_turn.acquire(1).await;
        let room = || (self.work.borrow().cache.free() >= pages.len() as u64).then_some(());
        self.finished.until(room).await;
        {
            let work = &mut *self.work.borrow_mut();
            work.cache.insert(&self.mechanics.geometry, first.0, pages);
        }
        self.arrived.wake_all();
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.work.borrow_mut().counters.flushes += 1;
        self.drain().await;
        Ok(())
    }

    /// A disk has no such command. Trimmed pages read as zeros, in order after all earlier writes.
    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.drain().await;
        self.platters.forget(range.first.0..range.end().0);
        Ok(())
    }
}
