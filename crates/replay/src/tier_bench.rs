//! The speed of middle tiers: requests that reach them below a buffer pool, on one core.
use crate::cache_replay::CacheTrace;
use crate::device_bench::cpu_seconds;
use crate::tier_replay::requests_below;
use rustix::time::ClockId;
use tantalum_base::Result;
use tantalum_policy::tier::{MiddleTier, TierSpec};
use tantalum_policy::{PolicySpec, Request};
use tantalum_trace::{OpenOptions, shared};

/// Number of runs, of which the fastest counts.
const ROUNDS: usize = 5;

/// The targets, in millions of requests per second.
const TIERS: [(&str, Option<f64>); 9] = [
    ("loc", Some(5.0)),
    ("glb", Some(5.0)),
    ("nfa", Some(2.0)),
    ("lazy", None),
    ("bl", None),
    ("lpd", None),
    ("write_cache", None),
    ("write_cache:order=densest,coalesce=on,piggyback=on", None),
    ("write_cache:place=sequential", None),
];

/// Measures every tier on TPC-C's page requests, if the traces are there; a line of text each.
pub fn bench(mut print: impl FnMut(String)) -> Result<()> {
    let Some(path) = shared::find("traces/databases/tpcc-pg-logical.csv.zst") else {
        return Ok(());
    };
    let trace = CacheTrace::load(&path, &OpenOptions::default())?;
    let (top_pages, middle_pages) = (1_000, 20_000);
    let below = requests_below(&trace, &PolicySpec::parse("lru")?, top_pages)?;
    print(format!("{} requests below {top_pages} pages of {}", below.len(), trace.name));
    for (name, target) in TIERS {
        let spec = TierSpec::parse(name)?;
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let mut tier = spec.build(middle_pages, trace.pages_end);
            let start = cpu_seconds(ClockId::ThreadCPUTime);
            for request in &below {
                serve(&mut *tier, *request);
            }
            best = best.min(cpu_seconds(ClockId::ThreadCPUTime) - start);
        }
        let rate = below.len() as f64 / best / 1e6;
        let target = target
            .map_or(String::new(), |target| format!("   {:.2}x of {target} M", rate / target));
        print(format!("{name:52} {rate:6.1} M requests/s{target}"));
    }
    Ok(())
}

fn serve(tier: &mut dyn MiddleTier, request: Request) {
    if request.is_write() {
        tier.write(request.page());
    } else {
        tier.read(request.page());
        // As a pool would, sooner or later; only exclusive tiers react to it.
        tier.evict(request.page());
    }
}
