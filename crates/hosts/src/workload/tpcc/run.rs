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

/// A database of an engine, from its population on: runs may follow each other, and every read is checked.
pub struct Tpcc {
    pub(super) expected: Expected,
    loaded: Cell<bool>,
}

/// What terminals do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TpccOptions {
    /// Terminals, each with one transaction under way; warehouses get one after the other.
    pub terminals: u32,
    /// Whether terminals wait as long as it takes to key a transaction in and to think about its result (clause 5.2.5). Then a
    /// warehouse with its ten terminals makes at most 12.86 new orders a minute.
    pub pauses: bool,
    /// Transactions before the measured ones.
    pub warm_up: u64,
    /// Transactions that are measured.
    pub transactions: u64,
    /// Seed of everything that is left to chance.
    pub seed: u64,
}

impl TpccOptions {
    /// As many terminals without pauses.
    pub fn new(terminals: u32, transactions: u64, seed: u64) -> Self {
        TpccOptions { terminals, pauses: false, warm_up: 0, transactions, seed }
    }
}

/// What a run came to; all of the measured transactions alone, but for the conflicts.
#[derive(Clone, Debug, PartialEq)]
pub struct TpccReport {
    report: LoopReport,
    /// How often a transaction began again because an older one held a row.
    pub conflicts: u64,
}

impl TpccReport {
    /// From the beginning of the first transaction to the end of the last.
    pub fn elapsed_ns(&self) -> u64 {
        self.report.elapsed_ns
    }

    /// Latencies of a kind of transaction, in nanoseconds, exact to three digits.
    pub fn latencies(&self, kind: Kind) -> &Histogram<u64> {
        self.report.latencies(kind as usize)
    }

    /// How many transactions.
    pub fn transactions(&self) -> u64 {
        self.report.operations()
    }

    /// Transactions a second.
    pub fn throughput(&self) -> f64 {
        self.report.throughput()
    }

    /// New-Order transactions a minute, those that are rolled back included: tpmC (clause 5.4).
    pub fn new_orders_per_minute(&self) -> f64 {
        let orders = self.latencies(Kind::NewOrder).len() as f64;
        orders * 60e9 / self.elapsed_ns().max(1) as f64
    }

    /// New-Order transactions that were rolled back, as an item was not there.
    pub fn rolled_back(&self) -> u64 {
        self.report.counted(Kind::NewOrder as usize)
    }

    /// Orders that were delivered.
    pub fn orders_delivered(&self) -> u64 {
        self.report.counted(Kind::Delivery as usize)
    }
}

impl Tpcc {
    /// Of rows that are not there yet.
    ///
    /// # Errors
    /// `InvalidInput` for a population that makes no sense.
    pub fn new(population: Population, seed: u64) -> Result<Rc<Tpcc>> {
        population.check()?;
        let expected = Expected::new(Initial::new(population, seed));
        Ok(Rc::new(Tpcc { expected, loaded: Cell::new(false) }))
    }

    /// Puts all rows of the population into a database with [`TREES`](super::TREES) empty trees.
    ///
    /// # Errors
    /// The engine's.
    pub async fn load<S: RowStore>(&self, store: &S) -> Result<()> {
        self.expected.initial.load(store).await?;
        self.loaded.set(true);
        Ok(())
    }

    /// How many rows there are at the start.
    pub fn population(&self) -> Population {
        self.expected.initial.population
    }

    /// Runs transactions. A pure function of the engine's state, `options` and the runtime's schedule.
    ///
    /// # Errors
    /// `InvalidInput` for options that make no sense; `Corrupt` where a read finds what may not be there; the engine's.
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

/// A run.
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
