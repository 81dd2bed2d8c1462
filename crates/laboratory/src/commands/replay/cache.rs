//! Replay through caches alone: each policy with each size, without device or time.
use crate::common::{CacheSize, TraceArgs, ratios};
use std::sync::Arc;
use tantalum_console::interruption;
use tantalum_console::output::threads;
use tantalum_policy::PolicySpec;
use tantalum_replay::cache_replay::{self, CacheReplayOptions, CacheRow, CacheTrace};
use tantalum_replay::side_by_side::cores;
use tantalum_replay::work::Work;
use tantalum_report::{Report, Table, Value, config_hash, schema};

/// The caches to replay through.
#[derive(clap::Args, Debug)]
pub struct CacheArgs {
    /// Replacement policies, such as lru,clock:bits=2,opt
    #[arg(long, required_unless_present = "device", requires = "size", value_name = "POLICY,...")]
    pub policy: Vec<String>,
    /// Cache sizes: pages (4096, 4k), bytes (64MiB) or a share of the distinct pages of the trace (10%), counted before
    /// a smaller device folds them into fewer
    #[arg(
        long,
        required_unless_present = "device",
        requires = "policy",
        value_name = "SIZE,...",
        allow_negative_numbers = true
    )]
    pub size: Vec<String>,
    /// Measure the time of each run, one after the other; then `seconds` differs between reruns
    #[arg(long, requires = "policy")]
    pub timing: bool,
    /// Number of threads to use at most; by default one per core. The result does not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
}

impl CacheArgs {
    /// The policies, in the order given.
    pub fn policies(&self) -> tantalum_base::Result<Vec<PolicySpec>> {
        PolicySpec::parse_list(&self.policy.join(" "))
    }

    /// The sizes, in the order given.
    pub fn sizes(&self) -> anyhow::Result<Vec<CacheSize>> {
        CacheSize::parse_list(&self.size.join(","))
    }
}

/// Replays `trace` through every policy with every size.
pub fn run(trace: &TraceArgs, args: &CacheArgs) -> anyhow::Result<Report> {
    // Refuse what can be refused before a long trace is read.
    let (policies, sizes) = (args.policies()?, args.sizes()?);
    let seed = trace.seed()?;

    let loaded = CacheTrace::collect(&trace.name(), trace.events("events read")?)?;
    let cache_pages = trace.policy_pages(&sizes, loaded.distinct_pages())?;
    let options = CacheReplayOptions {
        policies,
        cache_pages,
        timing: args.timing,
        threads: args.threads.unwrap_or_else(cores),
    };
    let work = Arc::new(Work::default());
    let progress = crate::work::follow(&work);
    let rows = cache_replay::replay(&loaded, &options, &work)?;
    drop(progress);

    let mut parts = trace.config();
    parts.extend(options.policies.iter().map(|policy| format!("policy={}", policy.text())));
    parts.extend(options.cache_pages.iter().map(|pages| format!("cache_pages={pages}")));
    parts.push(format!("timing={}", args.timing));
    // The outer loop is over policies, so the sizes repeat in their order.
    let asked: Vec<&str> = sizes.iter().map(CacheSize::text).cycle().take(rows.len()).collect();
    let mut report = Report::new(seed, config_hash(parts), table(&rows, &asked));
    let planned = options.policies.len() * options.cache_pages.len();
    interruption::mark(&mut report, rows.len() as u64, Some(planned as u64), "runs");
    Ok(report)
}

/// The table of `rows`; `asked` is the size of each row as the user wrote it.
fn table(rows: &[CacheRow], asked: &[&str]) -> Table {
    let mut table = Table::new(schema::CACHE_REPLAY);
    for (row, asked) in rows.iter().zip(asked) {
        let (hit_ratio, miss_ratio) = ratios(row.requests, row.misses);
        let bytes_per_page = row.memory_bytes as f64 / f64::from(row.cache_pages);
        let bytes_per_page = (bytes_per_page * 10.0).round() / 10.0;
        table.push_named([
            ("trace", row.trace.as_str().into()),
            ("policy", row.policy.as_str().into()),
            ("cache_pages", row.cache_pages.into()),
            ("requests", row.requests.into()),
            ("misses", row.misses.into()),
            ("hit_ratio", hit_ratio),
            ("miss_ratio", miss_ratio),
            ("read_misses", row.read_misses.into()),
            ("write_misses", row.write_misses.into()),
            ("physical_reads", row.physical_reads.into()),
            ("physical_writes", row.physical_writes.into()),
            ("dirty_pages_at_end", row.dirty_pages_at_end.into()),
            ("bytes_per_page", Value::Real(bytes_per_page)),
            ("seconds", row.seconds.into()),
            ("cache_size", (*asked).into()),
        ]);
    }
    table
}
