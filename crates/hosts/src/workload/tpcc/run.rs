//! Terminals run transactions.
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Runtime;

use super::expected::{Changes, Expected};
use super::population::{Initial, Population};
use super::terminals::{Input, Kind, Terminal};
use super::work::Work;
use super::{delivery, new_order, order_status, payment, stock_level};
use crate::workload::{
    ClosedLoad, Ending, LoopOptions, LoopReport, RowStore, run_closed_loop, transact,
};

/// A database of an engine, from its population onwards: several runs are possible, and every read is checked.
pub struct Tpcc {
    pub(super) expected: Expected,
    loaded: Cell<bool>,
}

/// The options of the terminals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TpccOptions {
    /// Number of terminals, each with one transaction in progress; they are assigned to the warehouses in turn.
    pub terminals: u32,
    /// Whether terminals pause for the keying and think times (clause 5.2.5). Then a warehouse with its ten terminals makes at
    /// most 12.86 new orders a minute.
    pub pauses: bool,
    /// Transactions before the measured ones (warm-up).
    pub warm_up: u64,
    /// Transactions that are measured.
    pub transactions: u64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl TpccOptions {
    /// This many terminals, without pauses.
    pub fn new(terminals: u32, transactions: u64, seed: u64) -> Self {
        TpccOptions { terminals, pauses: false, warm_up: 0, transactions, seed }
    }
}

/// The result of a run; all figures except the conflicts are of the measured transactions only.
#[derive(Clone, Debug, PartialEq)]
pub struct TpccReport {
    report: LoopReport,
    /// Number of times that a transaction started again because an older one held a row.
    pub conflicts: u64,
}

impl TpccReport {
    /// From the start of the first transaction to the end of the last.
    pub fn elapsed_ns(&self) -> u64 {
        self.report.elapsed_ns
    }

    /// Latencies of a kind of transaction, in nanoseconds, with three significant digits.
    pub fn latencies(&self, kind: Kind) -> &Histogram<u64> {
        self.report.latencies(kind as usize)
    }

    /// Number of transactions.
    pub fn transactions(&self) -> u64 {
        self.report.operations()
    }

    /// Transactions per second.
    pub fn throughput(&self) -> f64 {
        self.report.throughput()
    }

    /// New-Order transactions a minute, including those that are rolled back: tpmC (clause 5.4).
    pub fn new_orders_per_minute(&self) -> f64 {
        let orders = self.latencies(Kind::NewOrder).len() as f64;
        orders * 60e9 / self.elapsed_ns().max(1) as f64
    }

    /// Number of New-Order transactions that were rolled back because an item did not exist.
    pub fn rolled_back(&self) -> u64 {
        self.report.counted(Kind::NewOrder as usize)
    }

    /// Number of delivered orders.
    pub fn orders_delivered(&self) -> u64 {
        self.report.counted(Kind::Delivery as usize)
    }
}

impl Tpcc {
    /// A database whose rows are not loaded yet.
    ///
    /// # Errors
    /// `InvalidInput` for a population that is not valid.
    pub fn new(population: Population, seed: u64) -> Result<Rc<Tpcc>> {
        population.check()?;
        let expected = Expected::new(Initial::new(population, seed));
        Ok(Rc::new(Tpcc { expected, loaded: Cell::new(false) }))
    }

    /// Inserts all rows of the population into a database with [`TREES`](super::TREES) empty trees.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn load<S: RowStore>(&self, store: &S) -> Result<()> {
        self.expected.initial.load(store).await?;
        self.loaded.set(true);
        Ok(())
    }

    /// The numbers of rows at the start.
    pub fn population(&self) -> Population {
        self.expected.initial.population
    }

    /// Runs transactions. A pure function of the engine's state, `options` and the runtime's schedule.
    ///
    /// # Errors
    /// `InvalidInput` for options that are not valid; `Corrupt` if a read returns a wrong result; those of the engine.
    pub async fn run<R: Runtime, S: RowStore>(
        self: &Rc<Self>,
        runtime: &R,
        store: &S,
        options: TpccOptions,
    ) -> Result<TpccReport> {
        if !self.loaded.get() {
            return Err(Error::new(ErrorKind::InvalidInput, "the rows are not loaded"));
        }
        let terminal = |number| Terminal::new(&self.expected.initial, number, options.seed);
        let load = Rc::new(Load {
            runtime: runtime.clone(),
            store: store.clone(),
            tpcc: Rc::clone(self),
            pauses: options.pauses,
            terminals: RefCell::new((0..options.terminals).map(terminal).collect()),
            conflicts: Cell::new(0),
        });
        let TpccOptions { terminals, warm_up, transactions, .. } = options;
        let options = LoopOptions { clients: terminals, warm_up, operations: transactions };
        let report = run_closed_loop(runtime, &load, options).await?;
        Ok(TpccReport { report, conflicts: load.conflicts.get() })
    }
}

/// The operations of a run.
struct Load<R, S> {
    runtime: R,
    store: S,
    tpcc: Rc<Tpcc>,
    pauses: bool,
    terminals: RefCell<Vec<Terminal>>,
    conflicts: Cell<u64>,
}

impl<R: Runtime, S: RowStore> ClosedLoad for Load<R, S> {
    type Operation = Input;

    const KINDS: usize = Kind::ALL.len();

    fn draw(&self, client: u32) -> (usize, Input) {
        let (kind, input) = self.terminals.borrow_mut()[client as usize].next();
        (kind as usize, input)
    }

    async fn pause(&self, client: u32, kind: usize) {
        if self.pauses {
            let pause_ns = self.terminals.borrow_mut()[client as usize].pause_ns(Kind::ALL[kind]);
            self.runtime.sleep(pause_ns).await;
        }
    }

    async fn perform(&self, input: Input) -> Result<u64> {
        let expected = &self.tpcc.expected;
        let mut changes = Changes::new();
        let work = async |transaction: &mut S::Transaction| {
            let mut work = Work::new(transaction, expected);
            let ending = perform(&mut work, &input).await?;
            if matches!(ending, Ending::Commit(_)) {
                changes = work.into_changes();
            }
            Ok(ending)
        };
        let ended = transact(&self.store, &self.conflicts, work).await;
        match ended {
            Ok(_) => expected.end(&changes),
            Err(_) => expected.doubt(&changes),
        }
        ended
    }
}

async fn perform<T: crate::workload::RowTransaction>(
    work: &mut Work<'_, T>,
    input: &Input,
) -> Result<Ending<u64>> {
    match *input {
        Input::NewOrder { place, customer, ref lines } => {
            new_order::run(work, place, customer, lines).await
        }
        Input::Payment { place, customers, who, amount } => {
            payment::run(work, place, (customers, who), amount).await
        }
        Input::OrderStatus { place, who } => order_status::run(work, place, who).await,
        Input::Delivery { warehouse, carrier } => delivery::run(work, warehouse, carrier).await,
        Input::StockLevel { place, threshold } => stock_level::run(work, place, threshold).await,
    }
}
