//! How large everything is, in proportions that hold at any scale.
use tantalum_base::PAGE_BYTES;
use tantalum_hosts::workload::ycsb::RecordOptions;
use tantalum_hosts::workload::{pgbench, tpcc};

use super::super::Scale;

/// Device pages of a page of rows: 16 KiB, of which a record may have a quarter.
pub(super) const PAGE_PAGES: u32 = 4;

/// Clients, each with one operation under way.
pub(super) const CLIENTS: u32 = 64;

/// Bytes of a field. With ten of them a record fills a page of the device, as the SHARE paper's documents do: by SHARE a document has pages
/// of its own.
const FIELD_BYTES: u32 = 380;

/// How large the drive and the load are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Pages that the drive offers.
    pub(super) drive_pages: u64,
    /// The load goes on until so many times the drive's pages were written, before anything is measured.
    pub(super) ageing: f64,
    /// Operations that are measured, of a load that does as little in each as YCSB.
    pub(super) operations: u64,
    /// Power cuts.
    pub(super) cuts: u64,
}

impl Sizes {
    pub(super) fn of(scale: Scale) -> Sizes {
        let mib = |mib: u64| mib << 8;
        match scale {
            // So many that documents are compacted meanwhile.
            Scale::Small => {
                Sizes { drive_pages: mib(128), ageing: 1.2, operations: 12_000, cuts: 1 }
            }
            Scale::Full | Scale::Paper => {
                Sizes { drive_pages: mib(512), ageing: 1.5, operations: 60_000, cuts: 3 }
            }
        }
    }

    /// A quarter of the drive: the document store needs a file beside the one that it compacts, and the SHARE paper's database takes
    /// 38 % of its drive.
    pub(super) fn records(&self) -> u64 {
        self.drive_pages / 4
    }

    /// Pages of a database: about a half more than its rows fill.
    pub(super) fn database_pages(&self) -> u64 {
        2 * self.records() / u64::from(PAGE_PAGES)
    }

    /// Pages of a database in memory: a tenth of those with rows, about.
    pub(super) fn pool_pages(&self) -> u32 {
        (self.database_pages() * 7 / 100) as u32
    }

    /// Pages that go home together; a pool has four times as many at the least.
    pub(super) fn batch_pages(&self) -> u32 {
        (self.pool_pages() / 8).min(64)
    }

    /// Device pages of the redo log: an eighth of the database's.
    pub(super) fn log_pages(&self) -> u64 {
        self.database_pages() * u64::from(PAGE_PAGES) / 8
    }

    pub(super) fn record_options(&self) -> RecordOptions {
        RecordOptions { field_bytes: FIELD_BYTES, ..RecordOptions::new(self.records()) }
    }

    /// Bytes that a load begins with.
    fn bytes(&self) -> u64 {
        self.records() * PAGE_BYTES as u64
    }

    /// TPC-C's rows: eight warehouses, each with its terminals, as large as they may be.
    pub(super) fn warehouses(&self) -> tpcc::Population {
        let halved = |halvings| tpcc::Population { warehouses: 8, halvings };
        let fits = |population: &tpcc::Population| population.bytes() <= self.bytes();
        let smallest = halved(tpcc::Population::HALVINGS_MAX);
        (0..=tpcc::Population::HALVINGS_MAX).map(halved).find(fits).unwrap_or(smallest)
    }

    /// LinkBench's nodes: a million of them with their links take a gigabyte.
    pub(super) fn nodes(&self) -> u64 {
        self.bytes() / 1_000
    }

    /// pgbench's rows: as many branches as clients, as its manual asks for, with the accounts that there is room for.
    pub(super) fn accounts(&self) -> pgbench::Population {
        let branches = u64::from(CLIENTS);
        let accounts = self.bytes() / u64::from(pgbench::Table::Accounts.value_bytes());
        pgbench::Population { branches, accounts_per_branch: accounts / branches }
    }
}
