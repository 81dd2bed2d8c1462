//! Clients that each wait for one operation before they begin the next, whatever it is that they do.
//!
//! A load draws operations and performs them ([`ClosedLoad`]); [`run_closed_loop`] has the clients, the warm-up and a histogram of
//! latencies for each kind of operation. What is a transaction of a [`RowStore`] goes through [`transact`].
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::{Runtime, spawn_all};

use super::rows::{RowStore, RowTransaction};

/// What takes longer counts as this: an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// What clients do.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait ClosedLoad: 'static {
    /// What is to be done.
    type Operation;

    /// Kinds of operations, which are numbered from 0 on.
    const KINDS: usize;

    /// The next operation of a client (they are numbered from 0 on), and the number of its kind.
    fn draw(&self, client: u32) -> (usize, Self::Operation);

    /// What a client waits for between two operations, the second of which is of this kind: no part of either.
    async fn pause(&self, _client: u32, _kind: usize) {}

    /// Does it. Returns what the load counts of operations of this kind: rows that were found, say.
    ///
    /// # Errors
    /// What ends the run.
    async fn perform(&self, operation: Self::Operation) -> Result<u64>;
}

/// Who does how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopOptions {
    /// Clients; each has one operation under way.
    pub clients: u32,
    /// Operations before the measured ones, of all clients together.
    pub warm_up: u64,
    /// Operations that are measured, of all clients together.
    pub operations: u64,
}

impl LoopOptions {
    /// # Errors
    /// `InvalidInput` where there are no clients or operations.
    pub fn check(&self) -> Result<()> {
        if self.clients == 0 || self.operations == 0 {
            let problem = format!("a load of nothing: {self:?}");
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(())
    }
}

/// What a run came to; all of the measured operations alone.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopReport {
    /// From the beginning of the first one to the end of the last.
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

    /// Latencies of the kind with this number, in nanoseconds, exact to three digits.
    pub fn latencies(&self, kind: usize) -> &Histogram<u64> {
        &self.kinds[kind].latencies
    }

    /// What the load counted of the kind with this number.
    pub fn counted(&self, kind: usize) -> u64 {
        self.kinds[kind].counted
    }

    /// How many operations, of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latencies.len()).sum()
    }

    /// Operations a second, of all kinds.
    pub fn throughput(&self) -> f64 {
        self.operations() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// What the clients of a run share.
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
/// `InvalidInput` for options that make no sense; the first of the load's.
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

/// How the work of a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending<T> {
    /// Its changes are to be made.
    Commit(T),
    /// They are not.
    GiveUp(T),
}

/// Runs a transaction. Where an older one holds a row that it wants, its work begins anew when that ends, as old as it is, until it
/// gets through; each time one is added to `conflicts`. When this returns the changes are durable, or given up.
///
/// # Errors
/// Those of the work but `Conflict`, with nothing changed; the commit's.
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
