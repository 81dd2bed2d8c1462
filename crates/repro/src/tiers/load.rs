//! The traces: captures of PostgreSQL in place of the papers' traces, which are not public; generators if the captures are
//! absent.
use std::collections::BTreeSet;
use std::sync::Arc;
use tantalum_base::Result;
use tantalum_replay::cache_replay::CacheTrace;

use super::super::Scale;
use super::super::dissertation::{self, capture, first, generated};

/// Small runs have this many generated requests, to databases that are smaller in proportion; the bank's has fewer, of one
/// warehouse.
const SMALL_REQUESTS: usize = 200_000;
const SMALL_DIVISOR: u32 = 16;
const SMALL_BANK_REQUESTS: usize = 60_000;
const SMALL_BANK_DIVISOR: u32 = 8;
const SMALL_TPCC: &str = "tpcc:warehouses=2,transactions=20k";
const SMALL_BANK: &str = "tpcc:warehouses=1,transactions=20k";
const SMALL_TPCH: &str = "self_similar:pages=40000,h=0.25,requests=200k";
const SMALL_TPCE: &str = "self_similar:pages=80000,h=0.25,requests=200k,writes=0.19";
/// The generator that replaces TPC-C if the capture is absent, with as many warehouses.
const TPCC_GENERATOR: &str = "tpcc:warehouses=10,transactions=150k";
/// Warehouses of the capture, and of the generator at the small scale.
const CAPTURED_WAREHOUSES: u32 = 10;
const SMALL_WAREHOUSES: u32 = 2;

/// A trace, and the trace that it stands for.
pub(super) struct Load {
    /// The paper's name for it.
    pub(super) name: &'static str,
    pub(super) trace: Arc<CacheTrace>,
    divisor: u32,
}

impl Load {
    /// Number of pages of a tier that has `pages` in the paper.
    pub(super) fn pages(&self, pages: u32) -> u32 {
        (pages / self.divisor).max(1)
    }

    /// The same load with tiers that are smaller by `divisor`.
    pub(super) fn divided_by(&self, divisor: u32) -> Load {
        Load { name: self.name, trace: Arc::clone(&self.trace), divisor }
    }

    /// The database's size in pages: the highest page number, and one for page 0.
    pub(super) fn highest_page(&self) -> u64 {
        self.trace.pages_end
    }

    /// Number of different pages in the trace.
    pub(super) fn distinct_pages(&self) -> u64 {
        let pages: BTreeSet<u64> =
            self.trace.requests.iter().map(|request| request.page().0).collect();
        pages.len() as u64
    }

    /// All of a capture.
    fn captured(name: &'static str, file: &str, generator: &str) -> Result<Load> {
        let trace = Arc::new(capture(file, generator, usize::MAX)?);
        Ok(Load { name, trace, divisor: 1 })
    }

    /// The first `requests` of `generator`, for tiers that are smaller in proportion; the same everywhere.
    pub(super) fn made_up(
        name: &'static str,
        generator: &str,
        requests: usize,
        divisor: u32,
    ) -> Result<Load> {
        let trace = Arc::new(first(generated(generator)?, requests)?);
        Ok(Load { name, trace, divisor })
    }
}

/// TPC-C.
pub(super) fn tpcc(scale: Scale) -> Result<Load> {
    match scale {
        Scale::Small => Load::made_up("TPC-C", SMALL_TPCC, SMALL_REQUESTS, SMALL_DIVISOR),
        _ => Load::captured("TPC-C", "tpcc-pg-logical", TPCC_GENERATOR),
    }
}

/// TPC-C for tiers that a paper has over this many warehouses: smaller in proportion to the warehouses.
pub(super) fn tpcc_in_place_of(warehouses: u32, scale: Scale) -> Result<Load> {
    let ours = if scale == Scale::Small { SMALL_WAREHOUSES } else { CAPTURED_WAREHOUSES };
    Ok(tpcc(scale)?.divided_by(warehouses / ours))
}

/// TPC-H: read-only queries.
pub(super) fn tpch(scale: Scale) -> Result<Load> {
    let generator = "self_similar:pages=200000,h=0.25,requests=4m";
    match scale {
        Scale::Small => Load::made_up("TPC-H", SMALL_TPCH, SMALL_REQUESTS, SMALL_DIVISOR),
        _ => Load::captured("TPC-H", "tpch-pg-logical", generator),
    }
}

/// TPC-H with its refresh functions, in place of TPC-E: many reads and some writes.
pub(super) fn tpce(scale: Scale) -> Result<Load> {
    let generator = "self_similar:pages=200000,h=0.25,requests=3500k,writes=0.19";
    match scale {
        Scale::Small => Load::made_up("TPC-E", SMALL_TPCE, SMALL_REQUESTS, SMALL_DIVISOR),
        _ => Load::captured("TPC-E", "tpch-refresh-pg-logical", generator),
    }
}

/// In place of the bank's trace: the same number of TPC-C requests. At the small scale of one warehouse, whose pages all
/// fit into the two tiers with s = 2 and the largest budget.
pub(super) fn bank(scale: Scale) -> Result<Load> {
    match scale {
        Scale::Small => Load::made_up("bank", SMALL_BANK, SMALL_BANK_REQUESTS, SMALL_BANK_DIVISOR),
        _ => Ok(Load { name: "bank", trace: dissertation::bank(scale)?, divisor: 1 }),
    }
}
