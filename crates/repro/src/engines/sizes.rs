//! All sizes, in proportions that hold at any scale.
use tantalum_base::PAGE_BYTES;
use tantalum_hosts::workload::ycsb::RecordOptions;
use tantalum_hosts::workload::{pgbench, tpcc};

use super::super::Scale;

/// Device pages in a page of rows: 16 KiB; a record may have up to a quarter of it.
pub(super) const PAGE_PAGES: u32 = 4;

/// Number of clients, each with one operation in progress.
pub(super) const CLIENTS: u32 = 64;

/// Bytes of a field. With ten of them a record fills a page of the device, as the SHARE paper's documents do: by SHARE a document has pages
/// of its own.
const FIELD_BYTES: u32 = 380;

/// The sizes of the drive and the load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Number of pages of the drive.
    pub(super) drive_pages: u64,
    /// Before the measurement, the load runs until this many times the drive's pages were written.
    pub(super) ageing: f64,
    /// Number of measured operations, for a load whose operations are as small as YCSB's.
    pub(super) operations: u64,
    /// Number of power cuts.
    pub(super) cuts: u64,
}

impl Sizes {
    pub(super) fn of(scale: Scale) -> Sizes {
        let mib = |mib: u64| mib << 8;
        match scale {
            // Enough that documents are compacted meanwhile.
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

    /// Number of pages of a database: about half as many again as its rows fill.
    pub(super) fn database_pages(&self) -> u64 {
        2 * self.records() / u64::from(PAGE_PAGES)
    }

    /// Number of pages of a database in memory: about a tenth of those with rows.
    pub(super) fn pool_pages(&self) -> u32 {
        (self.database_pages() * 7 / 100) as u32
    }

    /// Number of pages that are written home together; a pool has at least four times as many.
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

    /// Bytes of a load's initial content.
    fn bytes(&self) -> u64 {
        self.records() * PAGE_BYTES as u64
    }

    /// TPC-C's rows: eight warehouses, each with its terminals, at the maximum size that fits.
    pub(super) fn warehouses(&self) -> tpcc::Population {
        let halved = |halvings| tpcc::Population { warehouses: 8, halvings };
        let fits = |population: &tpcc::Population| population.bytes() <= self.bytes();
        let smallest = halved(tpcc::Population::HALVINGS_MAX);
        (0..=tpcc::Population::HALVINGS_MAX).map(halved).find(fits).unwrap_or(smallest)
    }

    /// LinkBench's nodes: a million of them with their links occupy a gigabyte.
    pub(super) fn nodes(&self) -> u64 {
        self.bytes() / 1_000
    }

    /// pgbench's rows: as many branches as clients, as its manual recommends, with as many accounts as fit.
    pub(super) fn accounts(&self) -> pgbench::Population {
        let branches = u64::from(CLIENTS);
        let accounts = self.bytes() / u64::from(pgbench::Table::Accounts.value_bytes());
        pgbench::Population { branches, accounts_per_branch: accounts / branches }
    }
}
