//! Flash between a buffer pool and a disk: "Improving database performance using a flash-based write cache" (Ou,
//! Härder, 2012), and chapters 6 and 7 of "Caching for flash-based databases and flash-based caching for
//! databases" (Ou, 2012).
//!
//! ```text
//! load          the traces, and the sizes of the tiers for each
//! write_cache   figures 6 to 8: admission of pages, their writes, destaging
//! architecture  figures 6.1 to 6.3, table 6.1: three tiers against two of the same cost
//! measured      figures 6.4 and 6.5: the same on simulated devices
//! native        figures 7.5 to 7.9: flash used natively or through a translation layer
//! shapes        statements of the papers about them, besides the numbers
//! ```
//!
//! As in both, operations are counted and weighted with a device's time for each: a virtual execution time. For the
//! dissertation's runs on devices, they are carried out on simulated ones. The engine's own middle tier is not measured
//! here.
mod architecture;
mod load;
mod measured;
mod native;
mod shapes;
#[cfg(test)]
mod tests;
mod write_cache;

pub(super) use architecture::architecture;
pub(super) use native::native;
pub(super) use shapes::{
    ARCHITECTURE, ARCHITECTURE_NOT_MET, NATIVE, NATIVE_NOT_MET, WRITE_CACHE, WRITE_CACHE_NOT_MET,
};
pub(super) use write_cache::write_cache;

use super::Row;
use std::sync::Arc;
use tantalum_base::Result;
use tantalum_policy::PolicySpec;
use tantalum_policy::tier::TierSpec;
use tantalum_replay::cache_replay::CacheTrace;
use tantalum_replay::side_by_side::{all_done, cores, side_by_side};
use tantalum_replay::tier_replay::{TierOutcome, TierRun, replay};
use tantalum_replay::work::Work;

/// A middle tier under an LRU buffer pool.
#[derive(Clone, Debug)]
struct Setting {
    middle: String,
    top_pages: u32,
    middle_pages: u32,
    flush: bool,
}

impl Setting {
    fn run(&self) -> Result<TierRun> {
        Ok(TierRun {
            top: PolicySpec::parse("lru")?,
            top_pages: self.top_pages,
            middle: TierSpec::parse(&self.middle)?,
            middle_pages: self.middle_pages,
            flush: self.flush,
        })
    }
}

/// Runs the trace in every setting, on all cores.
fn run_all(trace: &Arc<CacheTrace>, settings: &[Setting]) -> Result<Vec<TierOutcome>> {
    let work = Work::default();
    let run = |setting: &Setting| replay(trace, &setting.run()?, &work);
    all_done(side_by_side(settings, cores(), &work, run)?)
}

/// A number of a figure.
fn number(
    figure: &'static str,
    case: String,
    (metric, unit): (&'static str, &'static str),
    paper: Option<f64>,
    measured: f64,
) -> Row {
    Row::new(figure, case, (metric, unit), paper, measured)
}

/// A cost that a paper gives in milliseconds, in nanoseconds.
const fn ns(thousandths_of_ms: u64) -> u64 {
    thousandths_of_ms * 1_000
}
