//! The speed of policies, and their memory per cached page: over a trace in memory, on one core.
use crate::cache_replay::CacheTrace;
use crate::device_bench::cpu_seconds;
use rustix::time::ClockId;
use tantalum_base::Result;
use tantalum_policy::{PolicySpec, Tally, Workload};
use tantalum_trace::{Generator, OpenOptions, shared};

/// Number of runs, of which the fastest counts: other work on the machine can only slow a run down.
const ROUNDS: usize = 5;

/// A trace's name, the number of cached pages, and the targets of policies: requests per second, in
/// millions.
type Targets = (&'static str, u32, &'static [(&'static str, f64)]);

/// TPC-C's page requests, as a database sends them to its buffer manager.
const DATABASE: Targets = (
    "tpcc-pg-logical",
    4_000,
    &[
        ("lru", 40.0),
        ("clock", 40.0),
        ("sieve", 40.0),
        ("arc", 32.0),
        ("s3_fifo", 20.0),
        ("cfdc", 10.0),
        ("casa", 10.0),
    ],
);

/// A million pages, a tenth of them cached: more than the processor's caches can hold.
const ZIPF: Targets = ("zipf(1.0)", 100_000, &[("lru", 20.0)]);
const ZIPF_TEXT: &str = "zipf:pages=1000000,requests=10000000,theta=1.0,seed=1";
/// Further policies that are measured on it.
const ZIPF_POLICIES: &[&str] = &["lru", "clock", "sieve", "arc", "s3_fifo"];

/// One measurement.
#[derive(Clone, Debug)]
pub struct CacheSpeed {
    /// The trace.
    pub trace: String,
    /// The policy as it was given.
    pub policy: String,
    /// Cache size in pages.
    pub cache_pages: u32,
    /// Requests served per second of processor time, in the fastest of the rounds.
    pub requests_per_s: f64,
    /// The target, in the same unit; `None` if there is none.
    pub target_requests_per_s: Option<f64>,
    /// Share of the requests that hit.
    pub hit_ratio: f64,
    /// Memory per page of the cache at the end, including the page table and everything that the
    /// policy remembers.
    pub bytes_per_page: f64,
}

/// Measures `policy` over `trace`; the time does not include making the policy and its tables.
pub fn measure(trace: &CacheTrace, policy: &str, cache_pages: u32) -> Result<CacheSpeed> {
    let spec = PolicySpec::parse(policy)?;
    let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
    let (mut best, mut tally, mut bytes) = (f64::INFINITY, Tally::default(), 0);
    for _ in 0..ROUNDS {
        let mut policy = spec.build(cache_pages, workload)?;
        tally = Tally::default();
        // The time of this thread: it does not include waiting for a core.
        let start = cpu_seconds(ClockId::ThreadCPUTime);
        policy.run(&trace.requests, &mut tally);
        best = best.min(cpu_seconds(ClockId::ThreadCPUTime) - start);
        bytes = policy.memory_bytes();
    }
    Ok(CacheSpeed {
        trace: trace.name.clone(),
        policy: policy.to_owned(),
        cache_pages,
        requests_per_s: tally.requests as f64 / best,
        target_requests_per_s: None,
        hit_ratio: tally.hit_ratio(),
        bytes_per_page: bytes as f64 / f64::from(cache_pages),
    })
}

/// Measures every policy on TPC-C's page requests with 4,000 pages (left out if the large traces
/// are absent), and some on a Zipf trace of 10 million requests over a million pages with a tenth
/// of them cached. Calls `each` with each row.
pub fn measure_all(mut each: impl FnMut(&CacheSpeed)) -> Result<()> {
    let mut measure_one = |trace: &CacheTrace, policy: &str, targets: &Targets| -> Result<()> {
        let mut row = measure(trace, policy, targets.1)?;
        let asked = targets.2.iter().find(|(name, _)| *name == policy);
        row.target_requests_per_s = asked.map(|(_, millions)| millions * 1e6);
        each(&row);
        Ok(())
    };
    if let Some(path) = shared::find("traces/databases/tpcc-pg-logical.csv.zst") {
        let trace = CacheTrace::load(&path, &OpenOptions::default())?;
        for policy in PolicySpec::NAMES {
            measure_one(&trace, policy, &DATABASE)?;
        }
    }
    let trace = CacheTrace::collect(ZIPF.0, Generator::parse(ZIPF_TEXT)?.map(Ok))?;
    for policy in ZIPF_POLICIES {
        measure_one(&trace, policy, &ZIPF)?;
    }
    Ok(())
}

/// [`measure_all`] as lines of text, each with its ratio to the target.
pub fn bench(mut print: impl FnMut(String)) -> Result<()> {
    measure_all(|row| {
        let target = row.target_requests_per_s.map_or(String::new(), |target| {
            format!("  {:>5.2}x of {:.0} M", row.requests_per_s / target, target / 1e6)
        });
        print(format!(
            "{:<16} {:>7} pages {:<13} hits {:.4} {:>7.1} bytes/page {:>6.1} M requests/s{target}",
            row.trace,
            row.cache_pages,
            row.policy,
            row.hit_ratio,
            row.bytes_per_page,
            row.requests_per_s / 1e6,
        ));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_has_the_trace_hit_ratio_and_the_memory_of_a_page() {
        let text = "scan:pages=10,requests=100";
        let events = Generator::parse(text).unwrap().map(Ok);
        let trace = CacheTrace::collect("scan", events).unwrap();
        let speed = measure(&trace, "lru", 10).unwrap();
        assert_eq!(speed.hit_ratio, 0.9);
        assert!(speed.requests_per_s > 0.0);
        // Eleven nodes of 16 bytes, the list's length, and an array of 4 bytes per page of the
        // trace.
        assert_eq!(speed.bytes_per_page, (11.0 * 16.0 + 4.0 + 10.0 * 4.0) / 10.0);
        assert_eq!(measure(&trace, "lru", 9).unwrap().hit_ratio, 0.0);
    }

    /// The project's promise for LRU: 32 bytes per page including its page table, if pages are
    /// numbered.
    #[test]
    fn lru_takes_at_most_32_bytes_a_page() {
        for (pages, frames) in
            [(1_000u64, 999u32), (1 << 20, 1_000), (4_000, 1_000), (1 << 40, 10_000)]
        {
            let workload = Workload { pages_end: pages, future: &[] };
            let policy = PolicySpec::parse("lru").unwrap().build(frames, workload).unwrap();
            let bytes = policy.memory_bytes() as f64 / f64::from(frames);
            assert!(bytes <= 32.1, "{bytes} bytes a page of {pages} with {frames} cached");
        }
    }
}
