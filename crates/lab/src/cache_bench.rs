//! How fast policies decide: requests a second over a trace in memory, on one core.
use crate::cache_replay::{CacheTrace, timed};
use tantalum_base::Result;
use tantalum_policy::{PolicySpec, Tally, Workload};
use tantalum_trace::{Generator, OpenOptions, shared};

/// What is asked of LRU on the database trace.
pub const TARGET_REQUESTS_PER_S: f64 = 20e6;

/// Runs of which the fastest counts: what else runs on the machine only ever slows one down.
const ROUNDS: usize = 5;

/// One measurement.
#[derive(Clone, Debug)]
pub struct CacheSpeed {
    /// The trace.
    pub trace: String,
    /// The policy as it was given.
    pub policy: String,
    /// Cache size in pages.
    pub cache_pages: u32,
    /// Requests served a second, the fastest of the rounds.
    pub requests_per_s: f64,
    /// Share of the requests that hit.
    pub hit_ratio: f64,
}

/// Measures `policy` over `trace`; making it and its tables is not in the time.
pub fn measure(trace: &CacheTrace, policy: &str, cache_pages: u32) -> Result<CacheSpeed> {
    let spec = PolicySpec::parse(policy)?;
    let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
    let (mut best, mut tally) = (f64::INFINITY, Tally::default());
    for _ in 0..ROUNDS {
        let mut policy = spec.build(cache_pages, workload)?;
        tally = Tally::default();
        best = best.min(timed(|| policy.run(&trace.requests, &mut tally)));
    }
    Ok(CacheSpeed {
        trace: trace.name.clone(),
        policy: policy.to_owned(),
        cache_pages,
        requests_per_s: tally.requests as f64 / best,
        hit_ratio: tally.hit_ratio(),
    })
}

/// Measures the policies on TPC-C's page requests with 4,000 pages (left out where the large
/// traces are absent), and on a Zipf trace of 10 million requests over a million pages with a
/// tenth of them cached. The first row is the one with the target.
pub fn measure_all() -> Result<Vec<CacheSpeed>> {
    let mut rows = Vec::new();
    if let Some(path) = shared::find("traces/databases/tpcc-pg-logical.csv.zst") {
        let trace = CacheTrace::load(&path, &OpenOptions::default())?;
        for policy in ["lru", "clock", "sieve", "fifo", "opt"] {
            rows.push(measure(&trace, policy, 4_000)?);
        }
    }
    let text = "zipf:pages=1000000,requests=10000000,theta=1.0,seed=1";
    let trace = CacheTrace::collect("zipf(1.0)", Generator::parse(text)?.map(Ok))?;
    for policy in ["lru", "clock", "sieve"] {
        rows.push(measure(&trace, policy, 100_000)?);
    }
    Ok(rows)
}

/// [`measure_all`] as lines of text, each with its ratio to [`TARGET_REQUESTS_PER_S`].
pub fn bench_text() -> Result<String> {
    let mut text = String::new();
    for row in measure_all()? {
        text.push_str(&format!(
            "cache replay {:<16} {:>7} pages {:<6} {:>6.1} M requests/s  {:>5.2}x of {:.0} M  \
             hit ratio {:.4}\n",
            row.trace,
            row.cache_pages,
            row.policy,
            row.requests_per_s / 1e6,
            row.requests_per_s / TARGET_REQUESTS_PER_S,
            TARGET_REQUESTS_PER_S / 1e6,
            row.hit_ratio,
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_has_the_trace_hit_ratio() {
        let text = "scan:pages=10,requests=100";
        let events = Generator::parse(text).unwrap().map(Ok);
        let trace = CacheTrace::collect("scan", events).unwrap();
        let speed = measure(&trace, "lru", 10).unwrap();
        assert_eq!(speed.hit_ratio, 0.9);
        assert!(speed.requests_per_s > 0.0);
        assert_eq!(measure(&trace, "lru", 9).unwrap().hit_ratio, 0.0);
    }
}
