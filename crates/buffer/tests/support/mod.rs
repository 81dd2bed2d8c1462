//! A device in memory that takes time, fails on request, and detects mistakes of a pool.
#![allow(dead_code, reason = "not every test needs all of it")]
pub mod pools;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Payload, Result, Rng,
    Stamp, TxId,
};
use tantalum_policy::{Effect, Physical, Policy, PolicySpec, Request, Workload};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// The count of a page in the middle of a change.
pub const HALF_DONE: u64 = u64::MAX;

/// Pages of stamps. Reads and writes take from 1 to `time_ns` nanoseconds each.
pub struct Memory {
    runtime: Virtual,
    limits: Limits,
    pages: RefCell<Vec<Stamp>>,
    rng: RefCell<Rng>,
    time_ns: u64,
    /// Pages with a write in flight.
    writing: RefCell<BTreeSet<u64>>,
    /// Reads and writes of these pages fail.
    pub bad_reads: RefCell<BTreeSet<u64>>,
    pub bad_writes: RefCell<BTreeSet<u64>>,
    pub flush_fails: Cell<bool>,
    /// Runs commands on the same page concurrently, in an order of its choice.
    pub reorders: Cell<bool>,
    pub reads: Cell<u64>,
    pub writes: Cell<u64>,
    pub flushes: Cell<u64>,
    /// First page and length of every write.
    pub log: RefCell<Vec<(u64, u64)>>,
    /// The pages of every batch.
    pub batches: RefCell<Vec<Vec<u64>>>,
}

impl Memory {
    pub fn new(runtime: &Virtual, pages: u64, time_ns: u64, seed: u64) -> Rc<Memory> {
        let limits = Limits {
            page_bytes: 4096,
            pages,
            atomic_write_pages_max: 8,
            transaction_pages_max: 64,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        Rc::new(Memory {
            runtime: runtime.clone(),
            limits,
            pages: RefCell::new(vec![Stamp::zero(); pages as usize]),
            rng: RefCell::new(Rng::split(seed, "memory")),
            time_ns,
            writing: RefCell::default(),
            bad_reads: RefCell::default(),
            bad_writes: RefCell::default(),
            flush_fails: Cell::new(false),
            reorders: Cell::new(false),
            reads: Cell::new(0),
            writes: Cell::new(0),
            flushes: Cell::new(0),
            log: RefCell::default(),
            batches: RefCell::default(),
        })
    }

    /// The content on the device.
    pub fn held(&self, page: u64) -> Stamp {
        self.pages.borrow()[page as usize]
    }

    async fn write_in_any_order(&self, range: PageRange, pages: &[Stamp]) -> Result<()> {
        self.take_time().await;
        fails(&self.bad_writes, range)?;
        let place = range.first.index()..range.end().index();
        self.pages.borrow_mut()[place].copy_from_slice(pages);
        self.take_time().await;
        Ok(())
    }

    async fn take_time(&self) {
        if self.time_ns > 0 {
            let time_ns = 1 + self.rng.borrow_mut().below(self.time_ns);
            self.runtime.sleep(time_ns).await;
        }
    }
}

/// Tracks a write in flight; a dropped write leaves no trace.
struct InFlight<'a>(&'a Memory, PageRange);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut writing = self.0.writing.borrow_mut();
        self.1.iter().for_each(|page| assert!(writing.remove(&page.0)));
    }
}

fn fails(bad: &RefCell<BTreeSet<u64>>, range: PageRange) -> Result<()> {
    match bad.borrow().range(range.first.0..range.end().0).next() {
        Some(page) => Err(Error::new(ErrorKind::Io, format!("page {page} is bad"))),
        None => Ok(()),
    }
}

impl PageDevice for Memory {
    type Page = Stamp;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        self.limits.check_range(range)?;
        self.reads.set(self.reads.get() + 1);
        let quiet = || {
            let written = |page: PageNo| self.writing.borrow().contains(&page.0);
            self.reorders.get() || !range.iter().any(written)
        };
        assert!(quiet(), "read of {range} while it is being written");
        if self.reorders.get() {
            self.take_time().await;
        }
        out.copy_from_slice(&self.pages.borrow()[first.index()..range.end().index()]);
        self.take_time().await;
        assert!(quiet(), "{range} began to be written while it was read");
        fails(&self.bad_reads, range)
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_range(range)?;
        assert!(pages.iter().all(|page| page.count != HALF_DONE), "{range} is half done");
        assert!(pages.len() <= self.limits.atomic_write_pages_max as usize, "over the limit");
        self.writes.set(self.writes.get() + 1);
        self.log.borrow_mut().push((first.0, range.pages));
        if self.reorders.get() {
            return self.write_in_any_order(range, pages).await;
        }
        for page in range.iter() {
            assert!(self.writing.borrow_mut().insert(page.0), "two writes of {page} in flight");
        }
        let in_flight = InFlight(self, range);
        self.take_time().await;
        drop(in_flight);
        fails(&self.bad_writes, range)?;
        self.pages.borrow_mut()[first.index()..range.end().index()].copy_from_slice(pages);
        Ok(())
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, Stamp)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits.check_scattered(&pages)?;
        self.batches.borrow_mut().push(pages.iter().map(|(page, _)| page.0).collect());
        let mut in_flight = Vec::new();
        for (page, content) in &pages {
            assert_ne!(content.count, HALF_DONE, "{page} is half done");
            assert!(self.writing.borrow_mut().insert(page.0), "two writes of {page} in flight");
            in_flight.push(InFlight(self, PageRange::new(*page, 1)));
        }
        self.take_time().await;
        drop(in_flight);
        for (page, _) in &pages {
            fails(&self.bad_writes, PageRange::new(*page, 1))?;
        }
        for (page, content) in pages {
            self.pages.borrow_mut()[page.index()] = content;
        }
        ended();
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.flushes.set(self.flushes.get() + 1);
        self.take_time().await;
        match self.flush_fails.get() {
            true => Err(Error::new(ErrorKind::Io, "the flush failed")),
            false => Ok(()),
        }
    }

    async fn trim(&self, _range: PageRange) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "trim"))
    }

    async fn share(&self, _pairs: &[(PageNo, PageNo)]) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "share"))
    }
}

/// The policy that `text` describes.
pub fn policy(text: &str, frames: u32, pages: u64) -> Box<dyn Policy> {
    let workload = Workload { pages_end: pages, future: &[] };
    PolicySpec::parse(text).unwrap().build(frames, workload).unwrap()
}

/// Records the requests to a policy. Hides durations from it: a policy that weighs times would
/// decide by them.
pub struct Recorded {
    pub inner: Box<dyn Policy>,
    pub requests: Arc<Mutex<Vec<Request>>>,
    pub measured: Arc<Mutex<Vec<(Physical, u64)>>>,
}

impl Recorded {
    pub fn new(inner: Box<dyn Policy>) -> Recorded {
        Recorded { inner, requests: Arc::default(), measured: Arc::default() }
    }
}

impl Policy for Recorded {
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        self.requests.lock().unwrap().push(request);
        self.inner.access(request, effects)
    }

    fn contains(&self, page: PageNo) -> bool {
        self.inner.contains(page)
    }

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        self.inner.write_candidates(pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        self.inner.cleaned(page);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        self.inner.forget(page)
    }

    fn measured(&mut self, operation: Physical, time_ns: u64) {
        self.measured.lock().unwrap().push((operation, time_ns));
    }

    fn capacity_pages(&self) -> u32 {
        self.inner.capacity_pages()
    }

    fn dirty_pages(&self) -> u32 {
        self.inner.dirty_pages()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

/// Runs `main` to its end on a new executor.
pub fn run<F, M>(schedule: Schedule, main: M) -> F::Output
where
    F: Future + 'static,
    M: FnOnce(Virtual) -> F,
{
    let runtime = Virtual::new(schedule);
    let done = runtime.run(main(runtime.clone()));
    let output = done.unwrap_or_else(|deadlock| panic!("{deadlock}"));
    runtime.drop_tasks();
    output
}

/// Tasks run in the order in which they become ready.
pub const FIFO: Schedule = Schedule::Fifo;
