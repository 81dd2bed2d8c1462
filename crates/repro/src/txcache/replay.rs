//! Replays transactions in a closed loop, and checks the device's content afterwards.
use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Stamp, TxId};
use tantalum_ftl::Ftl;
use tantalum_media::ErasedZones;
use tantalum_models::nand::{Nand, NandCounters};
use tantalum_runtime::sync::{Semaphore, WaitQueue};
use tantalum_runtime::{Runtime, Virtual, spawn_all};

use super::locks::PageLocks;
use super::trace::Trace;
use tantalum_replay::device_replay::Expected;

/// Number of pages of one batch while a device is filled.
const FILL_PAGES: u64 = 1024;
/// Share of the transactions that run before the clock starts.
const WARM_UP_SHARE: f64 = 1.0 / 3.0;

/// The result of a replay; rates and counts do not include the warm-up.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// Transactions of the workload per virtual second.
    pub transactions_per_s: f64,
    /// Average number of device transactions for each of them.
    pub parts: f64,
    /// Flash pages programmed, for any reason.
    pub pages_programmed: f64,
    /// Flash pages erased.
    pub pages_erased: f64,
    /// The end time of each device transaction, including those of the warm-up, in order.
    pub ended_ns: Vec<u64>,
}

/// Fills the FTL's first `pages` pages in order, bypassing link and cache: the paper's simulator
/// starts with every page of the drive written once and only the over-provisioned blocks free.
pub(super) async fn fill(
    ftl: &Ftl<ErasedZones<Stamp>>,
    expected: &Rc<RefCell<Expected>>,
    pages: u64,
) -> Result<()> {
    let mut batch = Vec::new();
    for first in (0..pages).step_by(FILL_PAGES as usize) {
        batch.clear();
        let range = PageRange::new(PageNo(first), FILL_PAGES.min(pages - first));
        batch.extend(range.iter().map(|page| (page, expected.borrow_mut().write_one(page))));
        ftl.write(&batch, false).await?;
    }
    Ok(())
}

struct Replay<D> {
    runtime: Virtual,
    device: Rc<D>,
    trace: Rc<Trace>,
    expected: Rc<RefCell<Expected>>,
    nand: Nand<Stamp>,
    /// Limits the number of transactions that are sent concurrently, as the trace specifies.
    senders: Semaphore,
    locks: PageLocks,
    committed: WaitQueue,
    next: Cell<usize>,
    finished: Cell<usize>,
    warm_up: usize,
    start: Cell<(u64, NandCounters)>,
    ended_ns: RefCell<Vec<u64>>,
}

/// Replays `trace` on `device` and checks every page that it wrote.
///
/// # Errors
/// `Corrupt` if a page does not hold the content written last; those of the device.
pub(super) async fn replay<D: PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &Rc<D>,
    nand: &Nand<Stamp>,
    trace: &Rc<Trace>,
    expected: &Rc<RefCell<Expected>>,
) -> Result<Measured> {
    let replay = Rc::new(Replay {
        runtime: runtime.clone(),
        device: Rc::clone(device),
        trace: Rc::clone(trace),
        expected: Rc::clone(expected),
        nand: nand.clone(),
        senders: Semaphore::new("the turn to send", u64::from(trace.senders)),
        locks: PageLocks::new(),
        committed: WaitQueue::new("a commit"),
        next: Cell::new(0),
        finished: Cell::new(0),
        warm_up: (trace.transactions.len() as f64 * WARM_UP_SHARE) as usize,
        start: Cell::new((runtime.now_ns(), nand.counters())),
        ended_ns: RefCell::default(),
    });
    let transaction = |_| {
        let replay = Rc::clone(&replay);
        async move { replay.serve().await }
    };
    spawn_all(runtime, "transaction", (0..trace.outstanding).map(transaction)).await?;
    let measured = replay.measured();
    check(device, trace, expected).await?;
    Ok(measured)
}

impl<D: PageDevice<Page = Stamp>> Replay<D> {
    async fn serve(&self) -> Result<()> {
        loop {
            let sending = self.senders.acquire(1).await;
            let at = self.next.get();
            let Some(transaction) = self.trace.transactions.get(at) else { return Ok(()) };
            self.next.set(at + 1);
            if self.trace.with_work {
                self.runtime.sleep(transaction.work_ns).await;
            }
            let mut locked = self.locks.none();
            let transactional = self.device.limits().transactions_max > 0;
            let tx = if transactional { Some(self.device.begin().await?) } else { None };
            for range in &transaction.writes {
                locked.extend(*range).await;
                self.write(*range, tx).await?;
            }
            if let Some(tx) = tx {
                // Once the commit is in progress its pages are free, and the next transaction may
                // be sent.
                let mut commit = pin!(self.device.commit(tx));
                let polled = poll_once(commit.as_mut()).await;
                drop((locked, sending));
                match polled {
                    Some(result) => result?,
                    None => commit.await?,
                }
            }
            self.done();
        }
    }

    /// Writes a range; retries while a transaction whose commit is in progress still holds one of
    /// its pages.
    async fn write(&self, range: PageRange, tx: Option<TxId>) -> Result<()> {
        let mut contents = Vec::new();
        self.expected.borrow_mut().write(range, &mut contents);
        loop {
            let finished = self.finished.get();
            match self.device.write(range.first, &contents, tx).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let others = || (self.finished.get() > finished).then_some(());
                    self.committed.until(others).await;
                }
                result => return result,
            }
        }
    }

    fn done(&self) {
        self.finished.set(self.finished.get() + 1);
        self.committed.wake_all();
        self.ended_ns.borrow_mut().push(self.runtime.now_ns());
        if self.finished.get() == self.warm_up {
            self.start.set((self.runtime.now_ns(), self.nand.counters()));
        }
    }

    fn measured(&self) -> Measured {
        let (start_ns, before) = self.start.get();
        let now = self.nand.counters();
        let ended_ns = self.ended_ns.take();
        let end_ns = ended_ns.last().copied().unwrap_or(start_ns);
        let seconds = (end_ns - start_ns) as f64 / 1e9;
        let pages_per_block = f64::from(self.nand.geometry().pages_per_block);
        let transactions = (self.finished.get() - self.warm_up) as f64 / self.trace.parts;
        Measured {
            transactions_per_s: transactions / seconds,
            parts: self.trace.parts,
            pages_programmed: (now.programs - before.programs) as f64,
            pages_erased: (now.erases - before.erases) as f64 * pages_per_block,
            ended_ns,
        }
    }
}

/// Polls `future` once; returns its result if it is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        })
    })
    .await
}

/// Reads every page that the trace wrote.
async fn check<D: PageDevice<Page = Stamp>>(
    device: &Rc<D>,
    trace: &Trace,
    expected: &Rc<RefCell<Expected>>,
) -> Result<()> {
    for page in trace.written() {
        let mut out = [Stamp::zero()];
        device.read(page, &mut out, None).await?;
        expected.borrow().check(page, &out)?;
    }
    Ok(())
}
