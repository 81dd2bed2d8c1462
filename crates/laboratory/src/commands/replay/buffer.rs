//! Replay through a buffer pool over simulated devices, in virtual time.
use super::cache::CacheArgs;
use super::device::{DeviceArgs, warning_of_folding};
use crate::common::{TraceArgs, check_future};
use std::sync::Arc;
use tantalum_base::PAGE_BYTES;
use tantalum_console::interruption;
use tantalum_models::DeviceSpec;
use tantalum_replay::buffer_replay::{
    BufferReplayOptions, BufferReplayRow, BufferRun, PoolOptions, replay,
};
use tantalum_replay::cache_replay::CacheTrace;
use tantalum_replay::side_by_side::cores;
use tantalum_replay::work::Work;
use tantalum_report::{Report, Table, Value, config_hash, schema};

/// Columns of the table for people; the other formats have all columns.
const SHOWN: [&str; 11] = [
    "policy",
    "cache_pages",
    "device",
    "hit_ratio",
    "physical_reads",
    "physical_writes",
    "cluster_switches",
    "seconds",
    "requests_per_s",
    "read_mean_ns",
    "write_mean_ns",
];

/// Replays `trace` through every policy with every size over every device.
pub fn run(
    trace: &TraceArgs,
    cache: &CacheArgs,
    device: &DeviceArgs,
    cpu_ns: u64,
) -> anyhow::Result<Report> {
    anyhow::ensure!(!device.transactions, "--transactions is for devices without a buffer above");
    anyhow::ensure!(!cache.timing, "--timing measures this program; --device gives virtual time");
    // Refuse what can be refused before a long trace is read.
    let (policies, sizes) = (cache.policies()?, cache.sizes()?);
    check_future(&policies, device.clients)?;
    device.devices()?;
    let loaded = CacheTrace::collect(&trace.name(), trace.events("events read")?)?;
    let distinct = loaded.distinct_pages();
    let loaded = Arc::new(loaded.with_few_gaps());
    let page_bytes = trace.page_bytes().max(PAGE_BYTES as u32);
    let parts = u64::from(page_bytes) / PAGE_BYTES as u64;
    let device_pages = loaded.pages_end.saturating_mul(parts);
    let devices = device.devices_for(device_pages)?;
    let cache_pages = trace.policy_pages(&sizes, distinct)?;
    let (mut runs, mut asked) = (Vec::new(), Vec::new());
    for policy in &policies {
        for (&buffer_pages, size) in cache_pages.iter().zip(&sizes) {
            runs.extend(devices.iter().map(|device| {
                let (policy, device) = (policy.clone(), device.clone());
                BufferRun { policy, buffer_pages, device }
            }));
            asked.resize(runs.len(), size.text());
        }
    }
    let options = BufferReplayOptions {
        clients: device.clients,
        cpu_ns,
        search_step_ns: 0,
        page_bytes,
        age: device.age(),
        pool: PoolOptions::classic(),
        gauges_every: 0,
        seed: device.device_seed,
        threads: cache.threads.unwrap_or_else(cores),
    };
    let work = Arc::new(Work::default());
    let progress = crate::work::follow(&work);
    let rows = replay(&loaded, &runs, &options, &work)?;
    drop(progress);
    for device in &devices {
        if let Some(warning) = warning_of_folding(device_pages, device) {
            eprintln!("{warning}");
        }
    }
    let mut table = Table::new(schema::BUFFER_REPLAY);
    for ((run, row), asked) in runs.iter().zip(&rows).zip(asked) {
        let Some(row) = row else { continue };
        table.push_named(values(row, device_pages, &run.device, asked));
    }
    let mut parts = trace.config();
    parts
        .extend(runs.iter().map(|run| {
            format!("{},{},{}", run.policy.text(), run.buffer_pages, run.device.name())
        }));
    parts.push(format!("options={:?}", BufferReplayOptions { threads: 0, ..options }));
    let mut report = Report::new(device.device_seed, config_hash(parts), table);
    report.shown = SHOWN.to_vec();
    let completed = rows.iter().flatten().count() as u64;
    interruption::mark(&mut report, completed, Some(runs.len() as u64), "runs");
    Ok(report)
}

fn values(
    row: &BufferReplayRow,
    trace_pages: u64,
    device: &DeviceSpec,
    asked: &str,
) -> Vec<(&'static str, Value)> {
    let mean = |ns: Option<f64>| ns.map_or(Value::Null, |ns| (ns.round() as u64).into());
    let requests_per_s =
        if row.seconds > 0.0 { row.pool.requests as f64 / row.seconds } else { 0.0 };
    vec![
        ("trace", row.trace.as_str().into()),
        ("policy", row.policy.as_str().into()),
        ("cache_pages", row.buffer_pages.into()),
        ("device", row.device.as_str().into()),
        ("trace_pages", trace_pages.into()),
        ("device_pages", device.pages().into()),
        ("clients", row.clients.into()),
        ("cpu_ns", row.cpu_ns.into()),
        ("page_bytes", row.page_bytes.into()),
        ("requests", row.pool.requests.into()),
        ("misses", row.pool.misses.into()),
        ("hit_ratio", Value::rounded(row.pool.hit_ratio(), 1e6)),
        ("physical_reads", row.pool.physical_reads.into()),
        ("physical_writes", row.pool.physical_writes.into()),
        ("dirty_pages_at_end", row.dirty_pages_at_end.into()),
        ("cluster_switches", row.pool.cluster_switches.into()),
        ("cluster_switch_factor", Value::rounded(row.pool.cluster_switch_factor(), 1e6)),
        ("seconds", Value::rounded(row.seconds, 1e9)),
        ("requests_per_s", Value::rounded(requests_per_s, 1e3)),
        ("device_busy_seconds", Value::rounded(row.device_busy_seconds, 1e9)),
        ("read_mean_ns", mean(row.read_mean_ns)),
        ("write_mean_ns", mean(row.write_mean_ns)),
        ("cache_size", asked.into()),
    ]
}
