//! A trace through two tiers of caches over a home: a buffer pool, whose misses go to a flash cache.
//!
//! ```text
//! tiers       the two deciders, and the requests between them
//! on_devices  each operation carried out on simulated devices, in virtual time
//! contents    the expected content of each page, in memory and below
//! ```
//!
//! [`replay`] counts, without a device and without time: a [`CostModel`](tantalum_policy::tier::CostModel) converts
//! the counts into time. [`replay_on_devices`] makes the same decisions, and measures the time.
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

/// The tiers of a run.
#[derive(Clone, Debug)]
pub struct TierRun {
    /// The replacement policy of the buffer pool.
    pub top: PolicySpec,
    /// Number of pages of the buffer pool.
    pub top_pages: u32,
    /// The flash cache.
    pub middle: TierSpec,
    /// Number of pages of the flash cache.
    pub middle_pages: u32,
    /// Whether everything that is newer in one of the tiers is written home at the end.
    pub flush: bool,
}

/// The counts of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TierOutcome {
    /// Number of requests of the trace.
    pub requests: u64,
    /// Number of these found in the buffer pool.
    pub top_hits: u64,
    /// The counters of the flash cache.
    pub counts: TierCounts,
    /// Number of collected blocks, by the number of their valid pages; empty if the tier has no blocks.
    pub collected: Vec<u64>,
    /// Number of collected blocks, by the number of their pages that were moved; empty if the tier has no blocks.
    pub moved: Vec<u64>,
    /// Erases of each block.
    pub erases: Vec<u64>,
}

/// The requests that a pool of `pages` pages sends to the tier below: reads of missing pages, writes of dirty
/// victims.
///
/// # Errors
/// Those of the policy's registry.
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

/// Runs `trace` through the two tiers, both empty at the start, and reports its progress to `work`.
///
/// # Errors
/// Those of the policy's registry; `Interrupted` if runs are requested to end.
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
            moved: blocks.map_or(Vec::new(), |blocks| blocks.moved().to_vec()),
            erases: blocks.map_or(Vec::new(), |blocks| blocks.erases().to_vec()),
        }
    }
}
