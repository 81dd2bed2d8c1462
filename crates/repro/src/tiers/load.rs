//! The traces: captures of PostgreSQL in place of those of the papers, which are not public, and generators where
//! the captures are absent.
use std::sync::Arc;
use tantalum_base::Result;
use tantalum_replay::cache_replay::CacheTrace;

use super::super::Scale;
use super::super::dissertation::{self, capture};

/// Small runs have as many requests, and sizes that are so much smaller.
const SMALL_REQUESTS: usize = 60_000;
const SMALL_DIVISOR: u32 = 16;
/// What stands in for TPC-C where the capture is absent.
const TPCC_GENERATOR: &str = "tpcc:warehouses=4,transactions=150k";

fn divisor(scale: Scale) -> u32 {
    if scale == Scale::Small { SMALL_DIVISOR } else { 1 }
}

/// A trace, and what it stands for.
pub(super) struct Load {
    /// The paper's name for it.
    pub(super) name: &'static str,
    pub(super) trace: Arc<CacheTrace>,
    divisor: u32,
}

impl Load {
    /// Pages of a tier that has `pages` in the paper.
    pub(super) fn pages(&self, pages: u32) -> u32 {
        (pages / self.divisor).max(1)
    }

    /// Pages of a tier that has a `share` of the database's.
    pub(super) fn share(&self, share: f64) -> u32 {
        ((self.trace.pages_end as f64 * share) as u32 / self.divisor).max(4)
    }

    fn new(name: &'static str, file: &str, generator: &str, scale: Scale) -> Result<Load> {
        let requests = if scale == Scale::Small { SMALL_REQUESTS } else { usize::MAX };
        let trace = Arc::new(capture(file, generator, requests)?);
        Ok(Load { name, trace, divisor: divisor(scale) })
    }

    /// The first `requests` of what `generator` makes.
    #[cfg(test)]
    pub(super) fn made_up(
        name: &'static str,
        generator: &str,
        requests: usize,
        divisor: u32,
    ) -> Load {
        let mut trace = super::super::dissertation::generated(generator).unwrap();
        assert!(trace.requests.len() >= requests, "{}", trace.requests.len());
        trace.requests.truncate(requests);
        Load { name, trace: Arc::new(trace), divisor }
    }
}

/// TPC-C.
pub(super) fn tpcc(scale: Scale) -> Result<Load> {
    Load::new("TPC-C", "tpcc-pg-logical", TPCC_GENERATOR, scale)
}

/// TPC-H: queries that read.
pub(super) fn tpch(scale: Scale) -> Result<Load> {
    let generator = "self_similar:pages=200000,h=0.25,requests=4m";
    Load::new("TPC-H", "tpch-pg-logical", generator, scale)
}

/// TPC-H with its refresh functions, in place of TPC-E: many reads and some writes.
pub(super) fn tpce(scale: Scale) -> Result<Load> {
    let generator = "self_similar:pages=200000,h=0.25,requests=3500k,writes=0.19";
    Load::new("TPC-E", "tpch-refresh-pg-logical", generator, scale)
}

/// In place of the bank's trace: as many requests of TPC-C.
pub(super) fn bank(scale: Scale) -> Result<Load> {
    if scale == Scale::Small {
        return Load::new("bank", "tpcc-pg-logical", TPCC_GENERATOR, scale);
    }
    Ok(Load { name: "bank", trace: dissertation::bank(scale)?, divisor: divisor(scale) })
}
