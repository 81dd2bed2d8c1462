//! TPC-C's trace: the writes of PostgreSQL's storage engine to its device, recorded while TPC-C runs over it in virtual time.
//!
//! The paper records the log operations of PostgreSQL's transactions under DBT-2, with 28 warehouses and 7 connections. DBT-2's connections
//! are a pool that serves the terminals of all warehouses, ten each (TPC-C, clause 4.2.1), with their keying and think times. Here the engine
//! ([`wal_engine`]) commits by device transactions, so they correspond to its log operations: the pages that a transaction changed.
//! Rows are in clustered B+trees, not in PostgreSQL's heaps with separate indexes.
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, Result};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::wal_engine::{WalEngine, WalForm, WalOptions, WalPageOptions};
use tantalum_hosts::workload::tpcc::{Population, TREES, Tpcc, TpccOptions};
use tantalum_models::DeviceSpec;
use tantalum_replay::device_replay::Device;
use tantalum_runtime::Virtual;

use super::super::Scale;
use super::recorder::{Connections, Recorder};
use super::trace::Transaction;

/// Section IV-A.
pub(super) const CONNECTIONS: u32 = 7;
const WAREHOUSES: u16 = 28;
/// TPC-C, clause 4.2.1.
const TERMINALS_PER_WAREHOUSE: u32 = 10;
/// This number gives about the paper's 1,328,700 requests: a writing transaction has 10.6 write commands, and 91.5 % write.
const PAPER_TRANSACTIONS: u64 = 137_000;
/// PostgreSQL's pages have 8 KiB.
const DEVICE_PAGES_PER_PAGE: u32 = 2;
/// Not stated in the paper. PostgreSQL's default in 2012: 32 MB, over 28 warehouses of about 80 MB.
const DATABASE_OVER_BUFFER: u64 = 70;
/// Number of pages that leave the buffer at a time. Nothing is written then: their commits have written them.
const BATCH_PAGES: u32 = 16;
/// Size of the database relative to its rows at the start: nodes of B+trees are not full.
const ROOM_PERCENT: u64 = 150;
/// Bytes by which a new order makes the database grow, including splits of nodes.
const GROWTH_BYTES: u64 = 2_048;

type Codec = Remembered<Block<ValueStamp>>;
type Engine = WalEngine<Virtual, Recorder<Device>, ValueStamp, Codec>;

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The TxSSD on which figures 4 to 7 are measured.
    device: &'static str,
    population: Population,
    database_over_buffer: u64,
    /// Number of recorded TPC-C transactions; those that only read add nothing to the trace.
    transactions: u64,
    warm_up: u64,
}

impl Size {
    pub fn of(scale: Scale) -> Size {
        let full = |transactions| Size {
            device: "txssd:capacity=4GiB,cache=8k",
            population: Population::new(WAREHOUSES),
            database_over_buffer: DATABASE_OVER_BUFFER,
            transactions,
            warm_up: 5_000,
        };
        match scale {
            Scale::Small => Size {
                device: "txssd:pages=160k,cache=1k",
                population: Population { warehouses: WAREHOUSES, halvings: 6 },
                // With the other ratio the buffer would have fewer pages than one transaction reads.
                database_over_buffer: 4,
                transactions: 2_500,
                warm_up: 300,
            },
            Scale::Full => full(30_000),
            Scale::Paper => full(PAPER_TRANSACTIONS),
        }
    }

    fn database_pages(&self) -> u64 {
        let bytes = self.population.bytes() * ROOM_PERCENT / 100
            + (self.warm_up + self.transactions) * GROWTH_BYTES;
        bytes / self.page_bytes()
    }

    fn page_bytes(&self) -> u64 {
        u64::from(DEVICE_PAGES_PER_PAGE) * PAGE_BYTES as u64
    }

    fn options(&self) -> WalOptions {
        let buffer_bytes = self.population.bytes() / self.database_over_buffer;
        let pages = WalPageOptions {
            form: WalForm::Transactions,
            database_pages: self.database_pages(),
            device_pages_per_page: DEVICE_PAGES_PER_PAGE,
            pool_pages: (buffer_bytes / self.page_bytes()) as u32,
            batch_pages: BATCH_PAGES,
            metadata_per_page: 0.0,
            metadata_pages: 0,
        };
        WalOptions { pages, log_pages: 0, trees: TREES }
    }
}

/// Records TPC-C after loading and warm-up.
///
/// # Errors
/// `Corrupt` if a transaction read anything except committed content; those of the engine and of the device.
pub(super) fn record(size: Size, seed: u64) -> Result<Vec<Transaction>> {
    Virtual::alone("TPC-C, recorded", move |runtime| async move {
        Database::load(&runtime, size, seed).await?.record(&runtime).await
    })
}

/// A database with TPC-C's rows, warmed up.
pub(super) struct Database {
    pub engine: Rc<Engine>,
    pub device: Rc<Recorder<Device>>,
    tpcc: Rc<Tpcc>,
    size: Size,
    seed: u64,
}

impl Database {
    /// A database of `size`, on a device of its own.
    ///
    /// # Errors
    /// As for [`record`].
    pub async fn load(runtime: &Virtual, size: Size, seed: u64) -> Result<Database> {
        let device = DeviceSpec::parse(size.device)?.build(runtime, seed).await?.device;
        let device = Rc::new(Recorder::new(device));
        let engine =
            WalEngine::create(runtime, &device, &Rc::new(Codec::default()), size.options()).await?;
        let tpcc = Tpcc::new(size.population, seed)?;
        tpcc.load(&engine).await?;
        let database = Database { engine, device, tpcc, size, seed };
        database.run(runtime, size.warm_up, seed).await?;
        Ok(database)
    }

    /// The transactions sent to the device while TPC-C runs.
    ///
    /// # Errors
    /// As for [`record`].
    pub async fn record(&self, runtime: &Virtual) -> Result<Vec<Transaction>> {
        self.device.begin();
        self.run(runtime, self.size.transactions, self.seed + 1).await?;
        Ok(self.device.finish())
    }

    async fn run(&self, runtime: &Virtual, transactions: u64, seed: u64) -> Result<()> {
        let (engine, device) = (Rc::clone(&self.engine), &self.device);
        let store = Connections::new(runtime.clone(), engine, device, CONNECTIONS);
        let terminals = TERMINALS_PER_WAREHOUSE * u32::from(self.size.population.warehouses);
        let load = TpccOptions { pauses: true, ..TpccOptions::new(terminals, transactions, seed) };
        self.tpcc.run(runtime, &store, load).await?;
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tantalum_base::{PageDevice, PageNo, Stamp};
    use tantalum_trace::{OpenOptions, PageEvent, Recorder as TraceRecorder, open_pages};

    use super::super::trace::{ranges, transactions};

    fn tiny() -> Size {
        Size {
            device: "txssd:pages=16k,cache=1k",
            population: Population { warehouses: 2, halvings: 6 },
            transactions: 400,
            warm_up: 50,
            ..Size::of(Scale::Small)
        }
    }

    /// An engine with some rows, and its device.
    pub async fn tiny_database(runtime: &Virtual) -> Result<(Rc<Engine>, Rc<Recorder<Device>>)> {
        let database = Database::load(runtime, tiny(), 3).await?;
        Ok((database.engine, database.device))
    }

    fn pages(transaction: &Transaction) -> Vec<PageNo> {
        transaction.writes.iter().flat_map(|range| range.iter()).collect()
    }

    async fn content(database: &Database) -> Vec<Stamp> {
        let mut content = vec![Stamp::default(); database.device.limits().pages as usize];
        for (first, part) in (0..).step_by(64).map(PageNo).zip(content.chunks_mut(64)) {
            database.device.read(first, part, None).await.unwrap();
        }
        content
    }

    /// The device's content shows which pages were written, and the engine's counters how many, in how many commits.
    #[test]
    fn the_recorded_transactions_are_what_the_engine_wrote() {
        let run = |runtime: Virtual| async move {
            let database = Database::load(&runtime, tiny(), 3).await?;
            let (before, counted) = (content(&database).await, database.engine.statistics());
            let recorded = database.record(&runtime).await?;
            let (after, counts) = (content(&database).await, database.engine.statistics());
            let changed: BTreeSet<PageNo> = (0..)
                .map(PageNo)
                .zip(before.iter().zip(&after))
                .filter_map(|(page, (before, after))| (before != after).then_some(page))
                .collect();
            let written: BTreeSet<PageNo> = recorded.iter().flat_map(pages).collect();
            assert_eq!(written, changed);
            let home_pages = counts.pages.home_pages - counted.pages.home_pages;
            assert_eq!(recorded.iter().map(Transaction::pages).sum::<u64>(), home_pages);
            assert_eq!(recorded.len() as u64, counts.commits - counted.commits);
            assert_eq!(recorded.len() as u64, counts.device_commits - counted.device_commits);
            // 92 of 100 transactions change something, except one new order in a hundred.
            assert!((340..380).contains(&recorded.len()), "{}", recorded.len());
            assert!(recorded.iter().all(|transaction| transaction.pages() % 2 == 0));
            assert!(recorded.iter().all(|transaction| transaction.work_ns < 1_000_000_000));
            assert!(recorded.iter().filter(|transaction| transaction.work_ns > 0).count() > 300);
            Ok(())
        };
        Virtual::alone("recorded", run).unwrap();
    }

    #[test]
    fn the_same_seed_records_the_same() {
        let recorded = |seed| record(tiny(), seed).unwrap();
        assert_eq!(recorded(5), recorded(5));
        assert_ne!(recorded(5), recorded(6));
    }

    /// A page trace has no times, and a page a line.
    #[test]
    fn a_recording_comes_back_from_a_trace_file() {
        let recorded = record(tiny(), 4).unwrap();
        let path = std::env::temp_dir().join(format!("txcache-{}.csv.zst", std::process::id()));
        let file = TraceRecorder::create(&path).unwrap();
        for transaction in &recorded {
            let write = |range: &tantalum_base::PageRange| PageEvent::Write {
                page: range.first,
                pages: range.pages as u32,
            };
            let mut events: Vec<_> = transaction.writes.iter().map(write).collect();
            events.push(PageEvent::Commit);
            file.record_all(&events);
        }
        file.finish().unwrap();
        let read = transactions(open_pages(&path, &OpenOptions::default()).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let joined = |one: &Transaction| Transaction { writes: ranges(&pages(one)), work_ns: 0 };
        let read: Vec<Transaction> = read.iter().map(joined).collect();
        assert_eq!(read, recorded.iter().map(joined).collect::<Vec<_>>());
        assert!(read.len() > 300);
    }
}
