//! Clients make payments.
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, Rng};
use tantalum_runtime::Runtime;

use super::balances::{Balances, Payment};
use super::tables::{DELTA_MAX, Population, Table, balance_of, balance_row, payment_row, wrong};
use crate::workload::{
    ClosedLoad, Ending, LoopOptions, LoopReport, RowStore, RowTransaction, run_closed_loop,
    transact,
};

/// Number of rows per transaction while loading.
const LOADED_AT_ONCE: u64 = 32;

/// A bank in an engine, from loading onwards: several runs are possible, and every read is checked.
#[derive(Debug)]
pub struct Pgbench {
    pub(super) population: Population,
    pub(super) balances: RefCell<Balances>,
    loaded: Cell<bool>,
}

/// The result of a run; all figures except the conflicts are of the measured transactions only.
#[derive(Clone, Debug, PartialEq)]
pub struct PgbenchReport {
    run: LoopReport,
    /// Number of times that a transaction started again because an older one held a row; including the warm-up.
    pub conflicts: u64,
}

impl PgbenchReport {
    /// From the start of the first transaction to the end of the last.
    pub fn elapsed_ns(&self) -> u64 {
        self.run.elapsed_ns
    }

    /// Latencies, in nanoseconds, with three significant digits.
    pub fn latencies(&self) -> &Histogram<u64> {
        self.run.latencies(0)
    }

    /// Number of transactions.
    pub fn transactions(&self) -> u64 {
        self.run.operations()
    }

    /// Transactions per second.
    pub fn throughput(&self) -> f64 {
        self.run.throughput()
    }
}

/// The transactions of the clients.
struct Clients<S> {
    store: S,
    pgbench: Rc<Pgbench>,
    rng: RefCell<Rng>,
    conflicts: Cell<u64>,
}

impl Pgbench {
    /// A bank whose rows are not loaded yet.
    ///
    /// # Errors
    /// `InvalidInput` if there are no accounts, or more than keys have room for.
    pub fn new(population: Population) -> Result<Rc<Pgbench>> {
        population.check()?;
        let balances = RefCell::new(Balances::new(&population));
        Ok(Rc::new(Pgbench { population, balances, loaded: Cell::new(false) }))
    }

    /// Inserts all rows into a database with [`TREES`](super::TREES) empty trees, each with a balance of 0.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn load<S: RowStore>(&self, store: &S) -> Result<()> {
        for table in Table::WITH_BALANCE {
            let rows = self.population.rows(table);
            for first in (0..rows).step_by(LOADED_AT_ONCE as usize) {
                let mut transaction = store.begin();
                for number in first..rows.min(first + LOADED_AT_ONCE) {
                    let row = balance_row(table, number, 0);
                    transaction.put(table.tree(), &table.key(number), row).await?;
                }
                transaction.commit().await?;
            }
        }
        self.loaded.set(true);
        Ok(())
    }

    /// Runs transactions. A pure function of the engine's state, `options`, `seed` and the runtime's schedule.
    ///
    /// # Errors
    /// `InvalidInput` for options that are not valid; `Corrupt` if a read returns a wrong result; those of the engine.
    pub async fn run<R: Runtime, S: RowStore>(
        self: &Rc<Self>,
        runtime: &R,
        store: &S,
        options: LoopOptions,
        seed: u64,
    ) -> Result<PgbenchReport> {
        if !self.loaded.get() {
            return Err(Error::new(ErrorKind::InvalidInput, "the rows are not loaded"));
        }
        let clients = Rc::new(Clients {
            store: store.clone(),
            pgbench: Rc::clone(self),
            rng: RefCell::new(Rng::split(seed, "pgbench")),
            conflicts: Cell::new(0),
        });
        let run = run_closed_loop(runtime, &clients, options).await?;
        Ok(PgbenchReport { run, conflicts: clients.conflicts.get() })
    }

    /// Locks a row for the transaction; returns its balance.
    async fn hold<T: RowTransaction>(
        &self,
        transaction: &mut T,
        table: Table,
        number: u64,
    ) -> Result<i64> {
        let found = transaction.get_for_update(table.tree(), &table.key(number)).await?;
        let row = found.ok_or_else(|| wrong(table, number, "is missing"))?;
        let balance = balance_of(table, number, &row)?;
        self.balances.borrow().check(table, number, balance)?;
        Ok(balance)
    }

    /// The script: changes three balances, reads that of the account, and records the payment. Returns its place in the
    /// history.
    async fn pay<T: RowTransaction>(&self, transaction: &mut T, payment: Payment) -> Result<u64> {
        for (table, number) in payment.rows() {
            let balance = self.hold(transaction, table, number).await? + payment.delta;
            let (tree, key) = (table.tree(), table.key(number));
            transaction.put(tree, &key, balance_row(table, number, balance)).await?;
            if table == Table::Accounts {
                let told = transaction.get(tree, &key).await?;
                let told = told.ok_or_else(|| wrong(table, number, "is missing"))?;
                if balance_of(table, number, &told)? != balance {
                    return Err(wrong(table, number, "does not have what was put into it"));
                }
            }
        }
        let place = self.balances.borrow_mut().begin(payment);
        let history = Table::History;
        let row = payment_row(payment.account, payment.delta);
        transaction.put(history.tree(), &history.key(place), row).await?;
        Ok(place)
    }
}

impl<S: RowStore> ClosedLoad for Clients<S> {
    type Operation = Payment;

    const KINDS: usize = 1;

    fn draw(&self, _client: u32) -> (usize, Payment) {
        let (population, rng) = (&self.pgbench.population, &mut *self.rng.borrow_mut());
        let payment = Payment {
            account: rng.below(population.rows(Table::Accounts)),
            branch: rng.below(population.rows(Table::Branches)),
            teller: rng.below(population.rows(Table::Tellers)),
            delta: rng.below(2 * DELTA_MAX as u64 + 1) as i64 - DELTA_MAX,
        };
        (0, payment)
    }

    async fn perform(&self, payment: Payment) -> Result<u64> {
        let pay = async |transaction: &mut S::Transaction| {
            Ok(Ending::Commit(self.pgbench.pay(transaction, payment).await?))
        };
        let place = transact(&self.store, &self.conflicts, pay).await?;
        self.pgbench.balances.borrow_mut().end(place);
        Ok(0)
    }
}
