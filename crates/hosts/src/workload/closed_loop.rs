//! A closed loop: each client waits for the end of one operation before it begins the next, whatever the operations are.
//!
//! A load draws operations and performs them ([`ClosedLoad`]). [`run_closed_loop`] has the clients, the warm-up and a histogram of
//! latencies for each kind of operation. Transactions of a [`RowStore`] run through [`transact`].
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::{Runtime, spawn_all};

use super::rows::{RowStore, RowTransaction};

/// A longer latency counts as this: an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// The operations of the clients.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait ClosedLoad: 'static {
    /// An operation to perform.
    type Operation;

    /// Number of kinds of operations, which are numbered from 0 on.
    const KINDS: usize;

    /// The next operation of a client (they are numbered from 0 on), and the number of its kind.
    fn draw(&self, client: u32) -> (usize, Self::Operation);

    /// A pause of the client before an operation of this kind. It is not part of any operation.
    async fn pause(&self, _client: u32, _kind: usize) {}

    /// Performs the operation. Returns a number that is added up by kind, for example the rows found.
    ///
    /// # Errors
    /// An error ends the run.
    async fn perform(&self, operation: Self::Operation) -> Result<u64>;
}

/// Number of clients and operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopOptions {
    /// Number of clients; each has one operation in progress.
    pub clients: u32,
    /// Operations before the measured ones, of all clients together (warm-up).
    pub warm_up: u64,
    /// Operations that are measured, of all clients together.
    pub operations: u64,
}

impl LoopOptions {
    /// # Errors
    /// `InvalidInput` if there are no clients or operations.
    pub fn check(&self) -> Result<()> {
        if self.clients == 0 || self.operations == 0 {
            let problem = format!("a load of nothing: {self:?}");
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(())
    }
}

/// The result of a run; all figures are of the measured operations only.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopReport {
    /// From the start of the first operation to the end of the last.
    pub elapsed_ns: u64,
    kinds: Vec<KindReport>,
}

#[derive(Clone, Debug, PartialEq)]
struct KindReport {
    latencies: Histogram<u64>,
    counted: u64,
}

impl LoopReport {
    fn new(kinds: usize) -> Result<Self> {
        let latencies = Histogram::<u64>::new_with_max(LATENCY_MAX_NS, 3).map_err(|error| {
            Error::with_source(ErrorKind::InvalidInput, "latency histogram", error)
        })?;
        Ok(LoopReport { elapsed_ns: 0, kinds: vec![KindReport { latencies, counted: 0 }; kinds] })
    }

    /// Latencies of the kind with this number, in nanoseconds, with three significant digits.
    pub fn latencies(&self, kind: usize) -> &Histogram<u64> {
        &self.kinds[kind].latencies
    }

    /// The load's sum for the kind with this number.
    pub fn counted(&self, kind: usize) -> u64 {
        self.kinds[kind].counted
    }

    /// Number of operations, of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latencies.len()).sum()
    }

    /// Operations per second, of all kinds.
    pub fn throughput(&self) -> f64 {
        self.operations() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// State that the clients of a run share.
struct Run<R, L> {
    runtime: R,
    load: Rc<L>,
    options: LoopOptions,
    begun: Cell<u64>,
    start_ns: Cell<u64>,
    report: RefCell<LoopReport>,
}

/// Runs the operations of a load. A pure function of the load's state, `options` and the runtime's schedule.
///
/// # Errors
/// `InvalidInput` for options that are not valid; the first error of the load.
pub async fn run_closed_loop<R: Runtime, L: ClosedLoad>(
    runtime: &R,
    load: &Rc<L>,
    options: LoopOptions,
) -> Result<LoopReport> {
    options.check()?;
    let run = Rc::new(Run {
        runtime: runtime.clone(),
        load: Rc::clone(load),
        options,
        begun: Cell::new(0),
        start_ns: Cell::new(runtime.now_ns()),
        report: RefCell::new(LoopReport::new(L::KINDS)?),
    });
    let client = |client| {
        let run = Rc::clone(&run);
        async move { run.serve(client).await }
    };
    spawn_all(runtime, "client", (0..options.clients).map(client)).await?;
    Ok(run.report.borrow().clone())
}

impl<R: Runtime, L: ClosedLoad> Run<R, L> {
    async fn serve(&self, client: u32) -> Result<()> {
        loop {
            let number = self.begun.get();
            if number == self.options.warm_up + self.options.operations {
                return Ok(());
            }
            self.begun.set(number + 1);
            let (kind, operation) = self.load.draw(client);
            self.load.pause(client, kind).await;
            let start_ns = self.runtime.now_ns();
            if number == self.options.warm_up {
                self.start_ns.set(start_ns);
            }
            let counted = self.load.perform(operation).await?;
            if number >= self.options.warm_up {
                let now_ns = self.runtime.now_ns();
                let mut report = self.report.borrow_mut();
                report.kinds[kind].latencies.saturating_record(now_ns - start_ns);
                report.kinds[kind].counted += counted;
                report.elapsed_ns = now_ns - self.start_ns.get();
            }
        }
    }
}

/// The end of a transaction's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending<T> {
    /// Commit its changes.
    Commit(T),
    /// Give them up.
    GiveUp(T),
}

/// Runs a transaction. If an older one holds a row that it requests, its work starts again when that one ends, with the same age,
/// until it succeeds; each restart adds one to `conflicts`. When this returns the changes are durable, or given up.
///
/// # Errors
/// Those of the work, except `Conflict`, with nothing changed; those of the commit.
pub async fn transact<S: RowStore, T>(
    store: &S,
    conflicts: &Cell<u64>,
    mut work: impl AsyncFnMut(&mut S::Transaction) -> Result<Ending<T>>,
) -> Result<T> {
    let mut transaction = store.begin();
    loop {
        match work(&mut transaction).await {
            Ok(Ending::Commit(done)) => {
                transaction.commit().await?;
                return Ok(done);
            }
            Ok(Ending::GiveUp(done)) => return Ok(done),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                conflicts.set(conflicts.get() + 1);
                transaction.start_again().await;
            }
            Err(error) => return Err(error),
        }
    }
}
