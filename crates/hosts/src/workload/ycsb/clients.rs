//! Loads records, and runs operations of clients.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, Rng};
use tantalum_runtime::{Runtime, spawn_all};
use tantalum_trace::ycsb::{Kind, Mix};

use super::checks::Checks;
use super::chooser::{Chooser, Known};
use super::keys::key_of;
use super::options::{RecordOptions, YcsbOptions};
use super::report::YcsbReport;
use crate::workload::{ClosedLoad, KeyValueStore, LoadValue, LoopOptions, run_closed_loop};

/// The records of an engine, from loading onwards: several runs are possible, and every read is checked.
pub struct Ycsb {
    options: RecordOptions,
    known: RefCell<Known>,
    checks: RefCell<Checks>,
}

/// Record and version of a value that belongs to no record.
const NOTHING: (u64, u32) = (u64::MAX, 0);

/// The operations of the clients of a run.
struct Operations<S> {
    ycsb: Rc<Ycsb>,
    store: S,
    options: YcsbOptions,
    draws: RefCell<Draws>,
}

/// The source of operations: one sequence for all clients.
struct Draws {
    mix: Mix,
    chooser: Chooser,
    rng: Rng,
}

#[derive(Clone, Copy)]
enum Operation {
    Read(u64),
    Update(u64),
    Insert,
    Scan(u64, u64),
    ReadModifyWrite(u64),
}

impl Ycsb {
    /// Records that are not loaded yet.
    ///
    /// # Errors
    /// `InvalidInput` if there are no records, or if records are too short for their identity.
    pub fn new<V: LoadValue>(options: RecordOptions) -> Result<Rc<Ycsb>> {
        options.check(V::BYTES_MIN)?;
        let (known, checks) = (RefCell::new(Known::new()), RefCell::default());
        Ok(Rc::new(Ycsb { options, known, checks }))
    }

    /// Inserts all records, in the order of their numbers. The engine decides when they are durable.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn load<S: KeyValueStore>(&self, store: &S) -> Result<()> {
        while self.known.borrow().end() < self.options.records {
            self.insert(store).await?;
        }
        Ok(())
    }

    /// The same with this many concurrent clients, each of which waits for one record before it inserts the next.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub async fn load_by<R: Runtime, S: KeyValueStore>(
        self: &Rc<Self>,
        runtime: &R,
        store: &S,
        clients: u32,
    ) -> Result<()> {
        let client = |_| {
            let (ycsb, store) = (Rc::clone(self), store.clone());
            async move {
                while ycsb.known.borrow().begun() < ycsb.options.records {
                    ycsb.insert(&store).await?;
                }
                Ok(())
            }
        };
        spawn_all(runtime, "loading client", (0..clients).map(client)).await
    }

    /// Current number of records.
    pub fn records(&self) -> u64 {
        self.known.borrow().end()
    }

    /// Runs operations on loaded records. A pure function of the engine's state, `options` and the runtime's schedule.
    ///
    /// # Errors
    /// `InvalidInput` for options that are not valid; `Corrupt` if a read returns a wrong result; those of the engine.
    pub async fn run<R: Runtime, S: KeyValueStore>(
        self: &Rc<Self>,
        runtime: &R,
        store: &S,
        options: YcsbOptions,
    ) -> Result<YcsbReport> {
        options.check()?;
        let records = self.records();
        if records < self.options.records {
            return Err(Error::new(ErrorKind::InvalidInput, "the records are not loaded"));
        }
        let inserts = (options.warm_up + options.operations) * options.mix.insert / 100;
        let draws = Draws {
            mix: options.mix,
            chooser: Chooser::new(options.requests, records, inserts),
            rng: Rng::split(options.seed, "ycsb"),
        };
        let operations = Rc::new(Operations {
            ycsb: Rc::clone(self),
            store: store.clone(),
            options,
            draws: RefCell::new(draws),
        });
        let YcsbOptions { clients, warm_up, operations: measured, .. } = options;
        let clients = LoopOptions { clients, warm_up, operations: measured };
        Ok(YcsbReport::new(run_closed_loop(runtime, &operations, clients).await?))
    }

    /// Reads every record. After a crash, with no operation in progress: acknowledged writes are there, and a record that
    /// was being written has either its old or its new value.
    ///
    /// # Errors
    /// `Corrupt` if a read returns a wrong result; those of the engine.
    pub async fn check<S: KeyValueStore>(&self, store: &S) -> Result<()> {
        self.checks.borrow_mut().cut_off();
        for record in 0..self.records() {
            self.read(store, record).await?;
        }
        Ok(())
    }

    fn key(&self, record: u64) -> Vec<u8> {
        key_of(record, self.options.key_bytes_min)
    }

    async fn insert<S: KeyValueStore>(&self, store: &S) -> Result<()> {
        let record = self.known.borrow_mut().insert();
        self.write(store, record).await?;
        self.known.borrow_mut().inserted(record);
        Ok(())
    }

    async fn write<S: KeyValueStore>(&self, store: &S, record: u64) -> Result<()> {
        let writing = self.checks.borrow_mut().begin(record);
        let value = S::Value::made(record, writing.version, self.options.value_bytes());
        store.put(&self.key(record), value).await?;
        self.checks.borrow_mut().end(writing);
        Ok(())
    }

    async fn read<S: KeyValueStore>(&self, store: &S, record: u64) -> Result<()> {
        let floor = self.checks.borrow().floor(record);
        let found = store.get(&self.key(record)).await?;
        let told = found.map(|value| value.told(self.options.value_bytes()).unwrap_or(NOTHING));
        self.checks.borrow().check(record, floor, told)
    }

    /// Reads `records` records in order; returns how many there were.
    async fn scan<S: KeyValueStore>(&self, store: &S, first: u64, records: u64) -> Result<u64> {
        let from = self.key(first);
        let found = store.scan(&from, records as usize).await?;
        let checks = self.checks.borrow();
        let mut last: Option<&[u8]> = None;
        for (key, value) in &found {
            let (record, version) = value.told(self.options.value_bytes()).unwrap_or(NOTHING);
            checks.check(record, 0, Some((record, version)))?;
            let follows = last.map_or(**key == *from, |last| *last < **key);
            if !follows || **key != *self.key(record) {
                let context =
                    format!("a scan from record {first} on: record {record} is out of place");
                return Err(Error::new(ErrorKind::Corrupt, context));
            }
            last = Some(key);
        }
        if found.is_empty() || found.len() as u64 > records {
            let context = format!("a scan of {records} records found {}", found.len());
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        Ok(found.len() as u64)
    }
}

impl<S: KeyValueStore> ClosedLoad for Operations<S> {
    type Operation = Operation;

    const KINDS: usize = Kind::ALL.len();

    fn draw(&self, _client: u32) -> (usize, Operation) {
        let end = self.ycsb.records();
        let Draws { mix, chooser, rng } = &mut *self.draws.borrow_mut();
        let kind = mix.draw(rng);
        let operation = match kind {
            Kind::Insert => Operation::Insert,
            Kind::Read => Operation::Read(chooser.draw(end, rng)),
            Kind::Update => Operation::Update(chooser.draw(end, rng)),
            Kind::ReadModifyWrite => Operation::ReadModifyWrite(chooser.draw(end, rng)),
            Kind::Scan => {
                let first = chooser.draw(end, rng);
                Operation::Scan(first, 1 + rng.below(self.options.scan_records_max))
            }
        };
        (kind as usize, operation)
    }

    /// Returns the number of scanned records.
    async fn perform(&self, operation: Operation) -> Result<u64> {
        let (ycsb, store) = (&*self.ycsb, &self.store);
        let mut scanned = 0;
        match operation {
            Operation::Read(record) => ycsb.read(store, record).await?,
            Operation::Update(record) => ycsb.write(store, record).await?,
            Operation::Insert => ycsb.insert(store).await?,
            Operation::Scan(first, records) => scanned = ycsb.scan(store, first, records).await?,
            Operation::ReadModifyWrite(record) => {
                ycsb.read(store, record).await?;
                ycsb.write(store, record).await?;
            }
        }
        store.operation_ended().await?;
        Ok(scanned)
    }
}
