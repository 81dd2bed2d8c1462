//! A lower bound on the cost of any policy for a trace if reads and writes have different costs.
//!
//! The bounded cost is `misses * read + write-backs * write`, as [`crate::Tally`] counts them. It holds
//! for any policy that brings in each missed page, with or without knowledge of the whole trace, with a
//! given number of frames that are empty at first. Pages still dirty at the end are not charged. Finding
//! the least cost itself is NP-hard (Beckmann, Gibbons, Haeupler, McGuffey, "Writeback-aware caching",
//! APOCS 2020). The bound is the higher of two that are provably no higher than the least cost:
//!
//! - **Apart**: the fewest misses ([`crate::opt`]) plus the fewest write-backs, each by a policy
//!   that minimises nothing else. The pages that a policy keeps dirty from one write to the next
//!   form a schedule for the writes alone, so no policy writes back less than OPT evicts when it
//!   sees only the writes.
//! - **Relaxed** ([`relaxation`]): both together, with frames that are not limited but rented. Tight
//!   if the two goals conflict.
//!
//! Weak if the cache is small compared with the trace's working set and writes are expensive: the
//! relaxed bound is at best that of the linear program, which may pay for fractions of pages.
pub mod relaxation;

use crate::opt::Opt;
use crate::page_table::SparseTable;
use crate::policy::{Policy, Request, Tally};
use relaxation::Relaxation;
use tantalum_base::{Error, ErrorKind, Result};

/// Parameters of the bound.
#[derive(Clone, Copy, Debug)]
pub struct CostBoundOptions {
    /// Frames of the cache.
    pub frames: u32,
    /// Cost of a read, in any unit.
    pub read_cost: u32,
    /// Cost of a write, in the same unit.
    pub write_cost: u32,
    /// Steps that improve the rents of the relaxed bound; each walks the trace once.
    pub rounds: u32,
}

/// Lower bounds for one trace, one cache size and one pair of costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostBound {
    /// No policy has fewer misses.
    pub misses_min: u64,
    /// No policy has fewer write-backs before the end of the trace.
    pub write_backs_min: u64,
    /// The cost of both minima together, as if one policy reached both.
    pub apart: u64,
    /// The bound with rented frames, rounded up because costs are whole numbers.
    pub relaxed: u64,
}

impl CostBound {
    /// No policy costs less.
    pub fn cost(&self) -> u64 {
        self.apart.max(self.relaxed)
    }
}

/// Bounds the cost of `requests`. Fails with [`ErrorKind::TooLarge`] for more than
/// [`Opt::REQUESTS_MAX`] requests, or if the sum of all costs would not fit in 61 bits.
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

/// The counts of a run of OPT.
fn best(requests: &[Request], frames: u32) -> Tally {
    let mut tally = Tally::default();
    Opt::<SparseTable>::new(frames, u64::MAX, requests).run(requests, &mut tally);
    tally
}
