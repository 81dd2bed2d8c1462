//! Clients run operations on a loaded graph.
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Runtime;
use tantalum_trace::link_bench::Operation;

use super::checks::Checks;
use super::graph::Graph;
use super::operations::Requests;
use crate::workload::{LoopOptions, LoopReport, RowStore, run_closed_loop};

/// The graph in an engine, from loading onwards: several runs are possible, and every read is checked.
#[derive(Debug)]
pub struct LinkBench {
    pub(super) graph: Graph,
    pub(super) checks: RefCell<Checks>,
    pub(super) loaded: Cell<bool>,
}

/// The result of a run; all figures except the conflicts are of the measured operations only.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkBenchReport {
    run: LoopReport,
    /// Number of transactions that started again because an older one held a row that they requested; including the warm-up.
    pub conflicts: u64,
}

impl LinkBench {
    /// A graph with this many nodes, which is not loaded yet. A million nodes with their links occupy about a gigabyte.
    ///
    /// # Errors
    /// `InvalidInput` for no nodes or more than 2^22.
    pub fn new(nodes: u64) -> Result<Rc<LinkBench>> {
        let graph = Graph::new(nodes)?;
        let checks = RefCell::new(Checks::new(&graph));
        Ok(Rc::new(LinkBench { graph, checks, loaded: Cell::new(false) }))
    }

    /// Runs operations on the loaded graph. A pure function of the engine's state, the options and the runtime's schedule.
    ///
    /// # Errors
    /// `InvalidInput` for options that are not valid or a graph that is not loaded; `Corrupt` if a read returns a wrong result;
    /// those of the engine.
    pub async fn run<R: Runtime, S: RowStore>(
        self: &Rc<Self>,
        runtime: &R,
        store: &S,
        options: LoopOptions,
        seed: u64,
    ) -> Result<LinkBenchReport> {
        let requests = self.requests(runtime, store, seed)?;
        let run = run_closed_loop(runtime, &requests, options).await?;
        Ok(LinkBenchReport::new(run, requests.conflicts()))
    }

    /// The operations of the clients of a run, for callers that run the clients in another way.
    ///
    /// # Errors
    /// `InvalidInput` if the graph is not loaded.
    pub fn requests<R: Runtime, S: RowStore>(
        self: &Rc<Self>,
        runtime: &R,
        store: &S,
        seed: u64,
    ) -> Result<Rc<Requests<R, S>>> {
        if !self.loaded.get() {
            return Err(Error::new(ErrorKind::InvalidInput, "the graph is not loaded"));
        }
        Ok(Rc::new(Requests::new(runtime, store, self, seed)))
    }
}

impl LinkBenchReport {
    /// The report of a run of [`Requests`].
    pub fn new(run: LoopReport, conflicts: u64) -> Self {
        LinkBenchReport { run, conflicts }
    }

    /// From the start of the first operation to the end of the last.
    pub fn elapsed_ns(&self) -> u64 {
        self.run.elapsed_ns
    }

    /// Latencies of an operation, in nanoseconds, with three significant digits.
    pub fn latencies(&self, operation: Operation) -> &Histogram<u64> {
        self.run.latencies(operation as usize)
    }

    /// Rows that an operation found, or number of its transactions that changed something.
    pub fn rows(&self, operation: Operation) -> u64 {
        self.run.counted(operation as usize)
    }

    /// Number of operations.
    pub fn operations(&self) -> u64 {
        self.run.operations()
    }

    /// Operations per second.
    pub fn throughput(&self) -> f64 {
        self.run.throughput()
    }
}
