//! Replay through a buffer pool and a flash cache over a slow home: counts of operations, and their cost.
use super::cache::CacheArgs;
use crate::common::{CacheSize, TraceArgs};
use anyhow::Context;
use std::sync::Arc;
use tantalum_console::interruption;
use tantalum_policy::PolicySpec;
use tantalum_policy::tier::{CostModel, TierSpec};
use tantalum_replay::cache_replay::CacheTrace;
use tantalum_replay::side_by_side::{cores, side_by_side};
use tantalum_replay::tier_replay::{TierOutcome, TierRun, replay};
use tantalum_replay::work::Work;
use tantalum_report::{Report, Table, Value, config_hash, schema};

/// Columns of the table for people; the other formats have all columns.
const SHOWN: [&str; 11] = [
    "policy",
    "cache_pages",
    "tier",
    "tier_pages",
    "tier_hit_ratio",
    "flash_writes",
    "erases",
    "disk_reads",
    "disk_writes",
    "seeks",
    "seconds",
];

/// The flash caches to replay through.
#[derive(clap::Args, Debug)]
pub struct TierArgs {
    /// Flash caches between the buffer and a slow home, such as nfa,lpd:d=1024,write_cache:coalesce=on
    #[arg(long, requires_all = ["policy", "tier_size"], conflicts_with_all = ["device", "timing"],
          value_name = "TIER,...")]
    tier: Vec<String>,
    /// Sizes of the flash caches: pages, bytes or a share of the distinct pages
    #[arg(long, requires = "tier", value_name = "SIZE,...")]
    tier_size: Vec<String>,
    /// Microseconds to read a page of flash, to write one, to erase a block, and for a disk access
    #[arg(
        long,
        requires = "tier",
        value_name = "READ,WRITE,ERASE,DISK",
        default_value = "35,350,1500,5500"
    )]
    tier_costs: String,
}

impl TierArgs {
    /// Whether a tier is given.
    pub fn is_given(&self) -> bool {
        !self.tier.is_empty()
    }

    /// The tiers, in the order given.
    pub fn tiers(&self) -> tantalum_base::Result<Vec<TierSpec>> {
        TierSpec::parse_list(&self.tier.join(" "))
    }

    fn sizes(&self) -> anyhow::Result<Vec<CacheSize>> {
        CacheSize::parse_list(&self.tier_size.join(","))
    }

    /// The costs, rounded to nanoseconds.
    fn costs(&self) -> anyhow::Result<CostModel> {
        let refused = || {
            format!("--tier-costs takes four numbers of microseconds, not {:?}", self.tier_costs)
        };
        let costs: Result<Vec<f64>, _> =
            self.tier_costs.split(',').map(|cost| cost.trim().parse::<f64>()).collect();
        let costs = costs.with_context(refused)?;
        let [read, write, erase, disk] = costs[..] else { anyhow::bail!(refused()) };
        anyhow::ensure!(costs.iter().all(|cost| (0.0..=1e9).contains(cost)), refused());
        let ns = |us: f64| (us * 1e3).round() as u64;
        Ok(CostModel {
            flash_read_ns: ns(read),
            flash_sequential_write_ns: ns(write),
            flash_random_write_ns: ns(write),
            erase_ns: ns(erase),
            disk_ns: ns(disk),
        })
    }
}

/// Replays `trace` through a buffer of every policy and size over every tier and size.
pub fn run(trace: &TraceArgs, cache: &CacheArgs, tier: &TierArgs) -> anyhow::Result<Report> {
    // Refuse what can be refused before a long trace is read.
    let (policies, sizes) = (cache.policies()?, cache.sizes()?);
    let (tiers, tier_sizes, costs) = (tier.tiers()?, tier.sizes()?, tier.costs()?);
    let seed = trace.seed()?;
    let loaded = CacheTrace::collect(&trace.name(), trace.events("events read")?)?;
    let distinct = loaded.distinct_pages();
    let (cache_pages, tier_pages) =
        (trace.policy_pages(&sizes, distinct)?, trace.policy_pages(&tier_sizes, distinct)?);
    let runs = all(&policies, &cache_pages, &tiers, &tier_pages);
    let work = Arc::new(Work::default());
    work.begin("counting", runs.len(), loaded.requests.len());
    let progress = crate::work::follow(&work);
    let threads = cache.threads.unwrap_or_else(cores);
    let outcomes = side_by_side(&runs, threads, &work, |run| replay(&loaded, run, &work))?;
    drop(progress);

    let mut table = Table::new(schema::TIER_REPLAY);
    for (run, outcome) in runs.iter().zip(&outcomes) {
        let Some(outcome) = outcome else { continue };
        let mut row = values(&loaded.name, run, outcome, &costs);
        row.push(("cache_size", asked(run.top_pages, &cache_pages, &sizes)));
        row.push(("tier_size", asked(run.middle_pages, &tier_pages, &tier_sizes)));
        table.push_named(row);
    }
    let mut parts = trace.config();
    parts.extend(runs.iter().map(|run| {
        format!("{},{},{},{}", run.top.text(), run.top_pages, run.middle, run.middle_pages)
    }));
    parts.push(format!("costs={costs:?}"));
    let mut report = Report::new(seed, config_hash(parts), table);
    report.shown = SHOWN.to_vec();
    let completed = outcomes.iter().flatten().count() as u64;
    interruption::mark(&mut report, completed, Some(runs.len() as u64), "runs");
    Ok(report)
}

/// The size of `pages` as the user wrote it.
fn asked(pages: u32, all: &[u32], sizes: &[CacheSize]) -> Value {
    let at = all.iter().position(|known| *known == pages);
    at.map_or(Value::Null, |at| sizes[at].text().into())
}

/// Every combination; the policy varies slowest, the size of the tier fastest.
fn all(
    policies: &[PolicySpec],
    cache_pages: &[u32],
    tiers: &[TierSpec],
    tier_pages: &[u32],
) -> Vec<TierRun> {
    let mut runs = Vec::new();
    for top in policies {
        for &top_pages in cache_pages {
            for middle in tiers {
                runs.extend(tier_pages.iter().map(|&middle_pages| TierRun {
                    top: top.clone(),
                    top_pages,
                    middle: middle.clone(),
                    middle_pages,
                    flush: false,
                }));
            }
        }
    }
    runs
}

fn values(
    trace: &str,
    run: &TierRun,
    outcome: &TierOutcome,
    costs: &CostModel,
) -> Vec<(&'static str, Value)> {
    let counts = &outcome.counts;
    let time = costs.time(counts);
    let seconds = |ns: u64| Value::rounded(ns as f64 / 1e9, 1e9);
    vec![
        ("trace", trace.into()),
        ("policy", run.top.text().into()),
        ("cache_pages", run.top_pages.into()),
        ("tier", run.middle.to_string().as_str().into()),
        ("tier_pages", run.middle_pages.into()),
        ("requests", outcome.requests.into()),
        ("misses", (outcome.requests - outcome.top_hits).into()),
        ("tier_reads", counts.reads.into()),
        ("tier_writes", counts.writes.into()),
        ("tier_hit_ratio", Value::rounded(counts.hit_ratio(), 1e6)),
        ("flash_reads", counts.flash_reads.into()),
        ("flash_writes", (counts.flash_sequential_writes + counts.flash_random_writes).into()),
        ("pages_moved", counts.collected_pages.into()),
        ("erases", counts.erases.into()),
        ("disk_reads", counts.disk_reads.into()),
        ("disk_writes", counts.disk_writes.into()),
        ("seeks", counts.seeks.into()),
        ("seconds", seconds(time.total_ns())),
        ("collection_seconds", seconds(time.collection_ns)),
        ("disk_seconds", seconds(time.disk_ns)),
    ]
}
