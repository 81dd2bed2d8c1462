//! A trace through two tiers of caches over a home: a buffer pool that asks a flash cache for what it misses.
//!
//! ```text
//! tiers       who asks whom: the two deciders
//! on_devices  each operation carried out on simulated devices, in virtual time
//! contents    what each page must hold, in memory and below
//! ```
//!
//! [`replay`] counts, without a device and without time: a [`CostModel`](tantalum_policy::tier::CostModel) says what
//! the counts take. [`replay_on_devices`] decides the same, and measures.
mod contents;
mod on_devices;
#[cfg(test)]
mod tests;
mod tiers;

pub use on_devices::{TierDevices, TierMeasured, TierWaits, replay_on_devices};

use tantalum_base::Result;
use tantalum_policy::tier::{TierCounts, TierSpec};
use tantalum_policy::{PolicySpec, Request, Workload};
use tantalum_runtime::supervision;

use crate::cache_replay::CacheTrace;
use crate::work::{TOLD_EVERY, Work};
use tiers::Tiers;

/// What is run.
#[derive(Clone, Debug)]
pub struct TierRun {
    /// Replacement in the buffer pool.
    pub top: PolicySpec,
    /// Pages of the buffer pool.
    pub top_pages: u32,
    /// The flash cache.
    pub middle: TierSpec,
    /// Pages of it.
    pub middle_pages: u32,
    /// At the end, everything that is newer in one of the tiers goes home.
    pub flush: bool,
}

/// What it took.
#[derive(Clone, Debug, PartialEq)]
pub struct TierOutcome {
    /// Requests of the trace.
    pub requests: u64,
    /// Of these, found in the buffer pool.
    pub top_hits: u64,
    /// What the flash cache did.
    pub counts: TierCounts,
    /// Blocks collected, by the number of their valid pages; empty where no blocks are seen.
    pub collected: Vec<u64>,
    /// Erases of each block.
    pub erases: Vec<u64>,
}

/// What a pool of `pages` pages asks the tier below for: reads of what it misses, writes of what it evicts dirty.
///
/// # Errors
/// As the policy's registry.
pub fn requests_below(trace: &CacheTrace, top: &PolicySpec, pages: u32) -> Result<Vec<Request>> {
    let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
    let mut top = top.build(pages, workload)?;
    let (mut below, mut effects) = (Vec::new(), Vec::new());
    for request in &trace.requests {
        if !top.access(*request, &mut effects) {
            below.push(Request::new(request.page(), false));
        }
        let written = effects.drain(..).filter(|effect| effect.writes());
        below.extend(written.map(|effect| Request::new(effect.page(), true)));
    }
    Ok(below)
}

/// Runs `trace` through the two tiers, both empty at the start, and tells `work` how far it is.
///
/// # Errors
/// As the policy's registry; `Interrupted` where runs are asked to end.
pub fn replay(trace: &CacheTrace, run: &TierRun, work: &Work) -> Result<TierOutcome> {
    let mut tiers = Tiers::new(trace, run)?;
    let (mut top_hits, mut effects) = (0, Vec::new());
    for some in trace.requests.chunks(TOLD_EVERY) {
        supervision::check_stop()?;
        for request in some {
            top_hits += u64::from(tiers.access(*request, &mut effects));
            for effect in effects.drain(..) {
                tiers.leaves(effect);
            }
        }
        work.add_requests(some.len());
    }
    if run.flush {
        tiers.flush();
    }
    Ok(TierOutcome::of(trace, &tiers, top_hits))
}

impl TierOutcome {
    fn of(trace: &CacheTrace, tiers: &Tiers, top_hits: u64) -> TierOutcome {
        let blocks = tiers.middle.blocks();
        TierOutcome {
            requests: trace.requests.len() as u64,
            top_hits,
            counts: *tiers.middle.counts(),
            collected: blocks.map_or(Vec::new(), |blocks| blocks.collected().to_vec()),
            erases: blocks.map_or(Vec::new(), |blocks| blocks.erases().to_vec()),
        }
    }
}
