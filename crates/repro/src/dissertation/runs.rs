//! Policies times sizes over a device, and the rows of these runs.
use std::sync::Arc;
use tantalum_base::Result;
use tantalum_models::DeviceSpec;
use tantalum_policy::PolicySpec;

use super::super::{Row, Scale, X};
use super::remembered::{recall, remember};
use tantalum_replay::buffer_replay::{self, BufferReplayOptions, BufferReplayRow, BufferRun};
use tantalum_replay::cache_replay::CacheTrace;
use tantalum_replay::device_replay::Age;
use tantalum_replay::side_by_side::{all_done, cores};

/// Sizes of the buffer in figures 3.5, 3.8 and 4.4.
pub(super) const SIZES: [u32; 6] = [500, 1_000, 2_000, 4_000, 8_000, 16_000];

/// CFLRU and CFDC with the windows of the paper's experiments.
pub(super) const CFLRU_WINDOWS: [&str; 3] =
    ["cflru:window=0.25", "cflru:window=0.5", "cflru:window=0.75"];
pub(super) const CFDC_WINDOWS: [&str; 3] =
    ["cfdc:window=0.25,cluster=16", "cfdc:window=0.5,cluster=16", "cfdc:window=0.75,cluster=16"];

/// The sizes at `scale`.
pub(super) fn sizes(scale: Scale) -> &'static [u32] {
    if scale == Scale::Small { &SIZES[..2] } else { &SIZES }
}

/// Number of points of a curve over the requests of a trace: figures 5.3a and 5.5.
const POINTS: usize = 48;

/// Number of requests between two points of such a curve.
pub(super) fn requests_a_point(requests: usize) -> usize {
    (requests / POINTS).max(1)
}

/// Computing time of the storage engine per request. Derived: at 500 pages the bank trace needs 28.04 W (4.2.2), of which the idle
/// components use 27.1 and the busy SSD 0.8. The rest is a mainboard that is busy for about a hundredth of the time, and a run of
/// some 700 s serves 607,390 requests.
pub(in super::super) const CPU_NS: u64 = 10_000;

/// Time per page that a search visits. Derived: an access of an Intel Core2 Duo (4.1) to its second-level cache (Intel's
/// optimization reference manual), which holds the lists of 16,000 pages, has 14 cycles. A step reads the page's place in the list,
/// the page's number and the count of its block, one after the other: 42 cycles, at 2 GHz 20 ns. The overhead of Java is not known.
pub(super) const SEARCH_STEP_NS: u64 = 20;

/// Size of the database's pages in bytes (3.3).
pub(super) const PAGE_BYTES: u32 = 8 << 10;
/// Number of device pages in one of them.
pub(super) const PARTS: u32 = PAGE_BYTES / tantalum_base::PAGE_BYTES as u32;

/// `device` as the home of a database with this many pages: SSDs have exactly that capacity, a disk has its own.
fn home(device: &str, pages: u64) -> Result<DeviceSpec> {
    let (name, parameters) = device.split_once(':').unwrap_or((device, ""));
    let ssd = matches!(name, "mtron" | "x25-m");
    let size = if ssd { format!("pages={}", pages * u64::from(PARTS)) } else { String::new() };
    let mut text = name.to_owned();
    let mut joint = ':';
    for part in [size.as_str(), parameters].into_iter().filter(|part| !part.is_empty()) {
        text.push(joint);
        text.push_str(part);
        joint = ',';
    }
    DeviceSpec::parse(&text)
}

/// Runs every policy with every size over `device`, policies outermost; runs that were made before are not repeated.
pub(super) fn over(
    device: &str,
    trace: &Arc<CacheTrace>,
    policies: &[&str],
    sizes: &[u32],
    seed: u64,
) -> Result<Vec<BufferReplayRow>> {
    let spec = home(device, trace.pages_end)?;
    let mut runs = Vec::new();
    for policy in policies {
        let policy = PolicySpec::parse(policy)?;
        runs.extend(sizes.iter().map(|&buffer_pages| BufferRun {
            policy: policy.clone(),
            buffer_pages,
            device: spec.clone(),
        }));
    }
    let options = options(device, trace.requests.len(), seed);
    let known: Vec<_> = runs.iter().map(|run| recall(trace, run, &options)).collect();
    let unknown = runs.iter().zip(&known).filter(|(_, known)| known.is_none());
    let unknown: Vec<BufferRun> = unknown.map(|(run, _)| run.clone()).collect();
    let rows = all_done(buffer_replay::replay(trace, &unknown, &options, &Arc::default())?)?;
    for (run, row) in unknown.iter().zip(&rows) {
        remember(trace, run, &options, row);
    }
    let mut rows = rows.into_iter();
    Ok(known.into_iter().filter_map(|known| known.or_else(|| rows.next())).collect())
}

fn options(device: &str, requests: usize, seed: u64) -> BufferReplayOptions {
    // A device with a mapping by blocks is filled; its cost does not depend on earlier writes.
    let rounds_max = if device.starts_with("mtron") { 0 } else { 20 };
    BufferReplayOptions {
        cpu_ns: CPU_NS,
        search_step_ns: SEARCH_STEP_NS,
        page_bytes: PAGE_BYTES,
        age: Some(Age { rounds_max, ..Age::default() }),
        gauges_every: requests_a_point(requests),
        seed,
        threads: cores(),
        ..BufferReplayOptions::default()
    }
}

/// The run of `policy` with `pages`.
pub(super) fn find<'a>(
    rows: &'a [BufferReplayRow],
    policy: &str,
    pages: u32,
) -> Option<&'a BufferReplayRow> {
    rows.iter().find(|row| row.policy == policy && row.buffer_pages == pages)
}

/// The policy whose run with `pages` had the shortest time.
pub(super) fn fastest<'a>(
    rows: &'a [BufferReplayRow],
    policies: &[&str],
    pages: u32,
) -> Option<&'a BufferReplayRow> {
    let runs = policies.iter().filter_map(|policy| find(rows, policy, pages));
    runs.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
}

/// How much faster `row` is than `than`, in percent of `than`'s time: "performance gain".
pub(super) fn gain_percent(row: &BufferReplayRow, than: &BufferReplayRow) -> f64 {
    100.0 * (1.0 - row.seconds / than.seconds)
}

/// The plots of a run in figures 3.5, 3.7, 3.8 and 5.7, at `x` of `series`: time, flushes, cluster switches, hits.
pub(super) fn four_metrics(
    figure: &'static str,
    run: &BufferReplayRow,
    series: &str,
    (axis, x): (&'static str, impl Into<X>),
) -> [Row; 5] {
    let (case, x) = (case(run), x.into());
    let row = |what, measured| {
        Row::new(figure, &*case, what, None, measured).at("", series, (axis, x.clone()))
    };
    [
        row(("execution time", "s"), run.seconds),
        row(("page flushes", "pages"), run.pool.physical_writes as f64),
        row(("cluster switches (CSC)", "switches"), run.pool.cluster_switches as f64),
        row(("cluster-switch factor (CSF)", "ratio"), run.pool.cluster_switch_factor()),
        row(("hit ratio", "ratio"), run.pool.hit_ratio()),
    ]
}

/// The label of the x axis of most figures.
pub(super) const BUFFER: &str = "buffer pages";

/// The dissertation's name for a policy, without parameters.
pub(super) fn name(policy: &str) -> String {
    match policy.split_once(':') {
        Some((_, parameters)) if parameters.contains("base=lru_k") => "CFDC-k".to_owned(),
        Some((name, _)) => name.to_uppercase().replace('_', "-"),
        None => policy.to_uppercase().replace('_', "-"),
    }
}

/// `policy, 500 pages`.
pub(super) fn case(run: &BufferReplayRow) -> String {
    format!("{}, {} pages", run.policy, run.buffer_pages)
}

#[cfg(test)]
mod tests {
    use super::super::workload::generated;
    use super::*;

    #[test]
    fn rows_come_in_the_order_that_was_asked_for_whatever_was_run_before() {
        let trace = generated("zipf:pages=500,requests=3000,theta=0.8,writes=0.4,seed=12").unwrap();
        let trace = Arc::new(trace);
        let of =
            |policies: &[&str], sizes: &[u32]| over("mtron", &trace, policies, sizes, 1).unwrap();
        let first = of(&["cflru:window=0.5"], &[60, 40]);
        let all = of(&["lru", "cflru:window=0.5", "lru_wsr"], &[40, 50, 60]);
        let asked = ["lru", "cflru:window=0.5", "lru_wsr"]
            .iter()
            .flat_map(|policy| [40, 50, 60].map(|pages| ((*policy).to_owned(), pages)));
        assert!(all.iter().map(|row| (row.policy.clone(), row.buffer_pages)).eq(asked));
        assert_eq!([&all[5], &all[3]], [&first[0], &first[1]]);
        assert_ne!(all[3].pool, all[0].pool, "policies differ here");
    }
}
