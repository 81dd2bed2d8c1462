//! A lower bound on what any policy pays for a trace, where reads and writes cost differently.
//!
//! What is bounded: `misses * read + write-backs * write`, as [`crate::Tally`] counts them, of any policy
//! that brings each missed page in, knowing the whole trace or not, with a given number of
//! frames that are empty at first. Pages still dirty at the end are not charged. To find the least cost
//! itself is hard (NP-hard: Beckmann, Gibbons, Haeupler, McGuffey, "Writeback-aware caching", APOCS
//! 2020); the bound is the better of two that are provably no higher:
//!
//! - **Apart**: the fewest misses ([`crate::opt`]) and the fewest write-backs, each by a policy that
//!   cares for nothing else. What a policy keeps dirty from one write of a page to the next is
//!   a schedule for the writes alone, so no policy writes back less than OPT evicts when it sees the
//!   writes alone.
//! - **Relaxed** ([`relaxation`]): both together, with the frames not limited but rented. Tight where
//!   the two pull in different directions.
//!
//! Weak where the cache is small beside the trace's working set and writes are dear: the relaxed
//! bound is that of the linear program at best, which may pay for halves of pages.
pub mod relaxation;

use crate::opt::Opt;
use crate::page_table::SparseTable;
use crate::policy::{Policy, Request, Tally};
use relaxation::Relaxation;
use tantalum_base::{Error, ErrorKind, Result};

/// What the bound is for.
#[derive(Clone, Copy, Debug)]
pub struct CostBoundOptions {
    /// Frames of the cache.
    pub frames: u32,
    /// Cost of a read, in any unit.
    pub read_cost: u32,
    /// Cost of a write, in the same unit.
    pub write_cost: u32,
    /// Steps by which the rents of the relaxed bound are improved; each walks the trace once.
    pub rounds: u32,
}

/// Lower bounds for one trace, one size and one pair of costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostBound {
    /// No policy misses less.
    pub misses_min: u64,
    /// No policy writes back less before the end of the trace.
    pub write_backs_min: u64,
    /// The cost of both minima, as if one policy reached them at once.
    pub apart: u64,
    /// The bound with rented frames, rounded up as costs are whole numbers.
    pub relaxed: u64,
}

impl CostBound {
    /// No policy pays less.
    pub fn cost(&self) -> u64 {
        self.apart.max(self.relaxed)
    }
}

/// Bounds the cost of `requests`. Fails with [`ErrorKind::TooLarge`] beyond
/// [`Opt::REQUESTS_MAX`] requests, or where the sum of all costs would not fit in 61 bits.
pub fn cost_bound(requests: &[Request], options: CostBoundOptions) -> Result<CostBound> {
    let CostBoundOptions { frames, read_cost, write_cost, rounds } = options;
    if requests.len() > Opt::<SparseTable>::REQUESTS_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("a cost bound takes at most {} requests", Opt::<SparseTable>::REQUESTS_MAX),
        ));
    }
    let mut relaxation = Relaxation::new(requests, frames, read_cost, write_cost)?;
    let misses_min = best(requests, frames).misses;
    let writes: Vec<Request> =
        requests.iter().copied().filter(|request| request.is_write()).collect();
    let write_backs_min = best(&writes, frames).evictions;
    let apart = misses_min * u64::from(read_cost) + write_backs_min * u64::from(write_cost);
    let relaxed = relaxation.improve(rounds);
    Ok(CostBound { misses_min, write_backs_min, apart, relaxed })
}

/// What OPT counts.
fn best(requests: &[Request], frames: u32) -> Tally {
    let mut tally = Tally::default();
    Opt::<SparseTable>::new(frames, u64::MAX, requests).run(requests, &mut tally);
    tally
}
