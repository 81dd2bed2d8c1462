//! A trace through policies at two sizes: `cargo run -p tantalum-replay --example compare_policies TRACE`.
use std::path::Path;
use tantalum_base::Result;
use tantalum_policy::PolicySpec;
use tantalum_replay::cache_replay::{CacheReplayOptions, CacheRow, CacheTrace, replay};
use tantalum_replay::work::Work;
use tantalum_trace::OpenOptions;

/// What LRU, ARC and S3-FIFO do with a cache of 1 % and of 10 % of the trace's distinct pages.
pub fn compare(path: &Path) -> Result<Vec<CacheRow>> {
    let trace = CacheTrace::load(path, &OpenOptions::default())?;
    let share = |percent: u64| (trace.distinct_pages() * percent / 100).max(1) as u32;
    let options = CacheReplayOptions {
        policies: ["lru", "arc", "s3-fifo"]
            .map(PolicySpec::parse)
            .into_iter()
            .collect::<Result<_>>()?,
        cache_pages: vec![share(1), share(10)],
        timing: false,
        threads: 2,
    };
    replay(&trace, &options, &Work::default())
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).expect("a trace");
    for row in compare(path.as_ref())? {
        let miss_ratio = row.misses as f64 / row.requests as f64;
        println!("{:8} {:>9} pages: {miss_ratio:.4} missed", row.policy, row.cache_pages);
    }
    Ok(())
}
