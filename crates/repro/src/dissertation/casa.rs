//! Chapter 5: CASA and SAWC beside strategies that do not know what reads and writes cost.
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_policy::{PolicySpec, Workload};

use super::super::{Progress, Row, Scale};
use super::runs::{BUFFER, CFDC_WINDOWS, CFLRU_WINDOWS, case, find, four_metrics, name, over};
use super::workload::{bank, concat, oltp, read_only};
use tantalum_replay::buffer_replay::BufferReplayRow;
use tantalum_replay::cache_replay::{CacheReplayOptions, CacheRow, CacheTrace, replay};
use tantalum_replay::side_by_side::cores;
use tantalum_replay::work::Work;
use tantalum_runtime::supervision;

/// Writes that cost as much as reads, and more.
const RATIOS: [u32; 5] = [1, 4, 16, 64, 128];
/// The virtual execution time of formula 5.1, beside that of LRU.
const TIME: (&str, &str) = ("virtual execution time", "ratio to lru");

/// Figures 5.2 to 5.8 and table 5.2.
pub(in super::super) fn casa(
    scale: Scale,
    seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    progress("figure 5.2: CONCAT");
    changing_workload(scale, rows)?;
    progress("figure 5.3: the clean list");
    clean_list(scale, rows)?;
    progress("table 5.2 and figure 5.4: cost ratios");
    cost_ratios(scale, rows)?;
    for (device, paper) in [("wd1500hlfs", 1.5), ("x25-m", 4.5)] {
        progress(&format!("figures 5.5 and 5.6: detection, {device}"));
        detection(scale, seed, device, paper, rows)?;
    }
    progress("figure 5.7: SAWC, CASA and CFDC, TPC-C");
    clustered(scale, seed, rows)?;
    progress("figure 5.8: the same, read-only");
    read_intensive(scale, seed, rows)?;
    Ok(())
}

/// Formula 5.1, for writes that cost `ratio` reads.
fn virtual_time(reads: u64, writes: u64, ratio: u32) -> f64 {
    let whole = 1.0 + f64::from(ratio);
    reads as f64 / whole + writes as f64 * f64::from(ratio) / whole
}

/// Counts of every policy with every size.
struct Counts(Vec<CacheRow>);

impl Counts {
    fn of(trace: &CacheTrace, policies: &[&str], sizes: &[u32]) -> Result<Counts> {
        let policies = policies.iter().map(|policy| PolicySpec::parse(policy));
        let options = CacheReplayOptions {
            policies: policies.collect::<Result<Vec<PolicySpec>>>()?,
            cache_pages: sizes.to_vec(),
            timing: false,
            threads: cores(),
        };
        let counts = replay(trace, &options, &Work::default())?;
        supervision::check_stop()?;
        Ok(Counts(counts))
    }

    fn get(&self, policy: &str, pages: u32) -> Result<&CacheRow> {
        let found = self.0.iter().find(|row| row.policy == policy && row.cache_pages == pages);
        found.ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("{policy} was not run with {pages} pages"))
        })
    }

    /// Virtual time of `policy` over that of LRU.
    fn relative(&self, policy: &str, pages: u32, ratio: u32) -> Result<f64> {
        let time = |row: &CacheRow| virtual_time(row.physical_reads, row.physical_writes, ratio);
        Ok(time(self.get(policy, pages)?) / time(self.get("lru", pages)?))
    }

    /// The one of `policies` that is best at this ratio.
    fn best<'a>(&self, policies: &[&'a str], pages: u32, ratio: u32) -> Result<&'a str> {
        let mut best = (policies[0], f64::INFINITY);
        for policy in policies {
            let time = self.relative(policy, pages, ratio)?;
            if time < best.1 {
                best = (policy, time);
            }
        }
        Ok(best.0)
    }
}

fn casa_at(ratio: u32) -> String {
    format!("casa:cost=1:{ratio}")
}

fn changing_workload(scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let (trace, _) = concat(scale)?;
    let sizes: &[u32] = match scale {
        Scale::Small => &[1_000],
        _ => &[1_000, 2_000, 4_000, 8_000, 16_000],
    };
    let (one, many) = (casa_at(1), casa_at(64));
    let mut policies = vec!["lru", "ccflru", "lru_wsr", &one, &many];
    policies.extend(CFLRU_WINDOWS);
    let counts = Counts::of(&trace, &policies, sizes)?;
    for &pages in sizes {
        for (ratio, casa) in [(1, one.as_str()), (64, many.as_str())] {
            let cflru = counts.best(&CFLRU_WINDOWS, pages, ratio)?;
            for policy in [casa, cflru, "ccflru", "lru_wsr"] {
                // 16,000 pages: n_R of CCFLRU 4,444,570 and of LRU 1,433,996, n_W 111,891 and 128,456.
                let paper = (policy == "ccflru" && pages == 16_000).then(|| {
                    virtual_time(4_444_570, 111_891, ratio)
                        / virtual_time(1_433_996, 128_456, ratio)
                });
                let case = format!("{policy}, {pages} pages, cost ratio 1:{ratio}");
                let measured = counts.relative(policy, pages, ratio)?;
                let row = Row::new("Figure 5.2", case, TIME, paper, measured);
                rows.push(row.at(format!("writes cost {ratio}"), name(policy), (BUFFER, pages)));
            }
        }
    }
    Ok(())
}

/// How many pages CASA keeps on its clean list: the mean over the second half of each phase.
fn clean_list(scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let (trace, ends) = concat(scale)?;
    let spec = PolicySpec::parse(&casa_at(64))?;
    let workload = Workload { pages_end: trace.pages_end, future: &[] };
    let (pages, mut effects) = (1_000, Vec::new());
    let mut policy = spec.build(pages, workload)?;
    let mut begin = 0;
    for (phase, end) in ends.into_iter().enumerate() {
        let middle = begin + (end - begin) / 2;
        let (mut sum, mut samples) = (0.0, 0u32);
        for (at, request) in trace.requests[begin..end].iter().enumerate() {
            policy.access(*request, &mut effects);
            effects.clear();
            if begin + at >= middle && at % 64 == 0 {
                let gauges = policy.gauges();
                let clean = gauges.iter().find(|gauge| gauge.name == "clean_pages");
                sum += clean.map_or(0.0, |gauge| gauge.value);
                samples += 1;
            }
        }
        // "It fluctuates around 200 in the OLTP phases and stays at 1,000 in the DSS phases."
        let (load, paper) = if phase % 2 == 0 { ("OLTP", 200.0) } else { ("DSS", 1_000.0) };
        let case = format!("casa 1:64, {pages} pages, phase {}, {load}", phase + 1);
        let mean = sum / f64::from(samples.max(1));
        let row = Row::new("Figure 5.3", case, ("clean list", "pages"), Some(paper), mean);
        rows.push(row.at("", "", ("phase", format!("{}, {load}", phase + 1))));
        begin = end;
    }
    Ok(())
}

/// Table 5.2: n_R and n_W of the bank trace with 1,000 and with 10,000 pages.
const TABLE_5_2: [(&str, [(u64, u64); 2]); 11] = [
    ("ccflru", [(427_012, 71_103), (237_518, 35_642)]),
    (CFLRU_WINDOWS[0], [(393_914, 85_818), (175_448, 43_096)]),
    (CFLRU_WINDOWS[1], [(389_653, 79_408), (181_223, 39_428)]),
    (CFLRU_WINDOWS[2], [(388_917, 74_688), (195_160, 37_188)]),
    ("lru", [(403_056, 95_849), (177_861, 51_157)]),
    ("lru_wsr", [(409_469, 90_183), (186_306, 46_076)]),
    ("casa:cost=1:1", [(389_350, 77_884), (175_985, 44_975)]),
    ("casa:cost=1:4", [(398_249, 72_190), (180_558, 39_947)]),
    ("casa:cost=1:16", [(417_715, 71_359), (192_149, 37_427)]),
    ("casa:cost=1:64", [(425_993, 71_138), (211_015, 36_089)]),
    ("casa:cost=1:128", [(426_932, 71_116), (221_344, 35_666)]),
];
const LRU: usize = 4;

/// What a policy reads and writes relative to LRU, and formula 5.1 at every ratio. The traces differ:
/// relative to LRU is what may be compared.
fn cost_ratios(scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let trace = bank(scale)?;
    let sizes = [1_000, 10_000];
    let policies: Vec<&str> = TABLE_5_2.iter().map(|(policy, _)| *policy).collect();
    let counts = Counts::of(&trace, &policies, &sizes)?;
    for (at, pages) in sizes.into_iter().enumerate() {
        let (lru_reads, lru_writes) = TABLE_5_2[LRU].1[at];
        let lru = counts.get("lru", pages)?;
        for (policy, theirs) in &TABLE_5_2 {
            let (reads, writes) = theirs[at];
            let ours = counts.get(policy, pages)?;
            let case = || format!("{policy}, {pages} pages");
            let mut row = |metric, (our, lru): (u64, u64), (their, their_lru): (u64, u64)| {
                let paper = Some(their as f64 / their_lru as f64);
                let measured = our as f64 / lru as f64;
                let what = (metric, "ratio to lru");
                let row = Row::new("Table 5.2", case(), what, paper, measured);
                rows.push(row.at(format!("{pages} pages"), "", ("policy", *policy)));
            };
            let our_reads = (ours.physical_reads, lru.physical_reads);
            row("physical reads", our_reads, (reads, lru_reads));
            let our_writes = (ours.physical_writes, lru.physical_writes);
            row("physical writes", our_writes, (writes, lru_writes));
        }
        for ratio in RATIOS {
            for (policy, theirs) in &TABLE_5_2 {
                let casa = policy.starts_with("casa");
                if *policy == "lru" || (casa && *policy != casa_at(ratio)) {
                    continue;
                }
                let (reads, writes) = theirs[at];
                let paper =
                    virtual_time(reads, writes, ratio) / virtual_time(lru_reads, lru_writes, ratio);
                let case = format!("{policy}, {pages} pages, cost ratio 1:{ratio}");
                let measured = counts.relative(policy, pages, ratio)?;
                let row = Row::new("Figure 5.4", case, TIME, Some(paper), measured);
                let series = if casa { "casa" } else { policy };
                let along = ("cost of a write, in reads", ratio);
                rows.push(row.at(format!("{pages} pages"), series, along));
            }
        }
    }
    Ok(())
}

/// What CASA finds out about a device, with the cache off as in 5.3.3, and what that is worth.
fn detection(scale: Scale, seed: u64, device: &str, paper: f64, rows: &mut Vec<Row>) -> Result<()> {
    let trace = bank(scale)?;
    let sizes: &[u32] = if scale == Scale::Small { &[1_000] } else { &[1_000, 10_000] };
    let mut policies = vec!["lru", "casa", "ccflru", "lru_wsr"];
    policies.extend(CFLRU_WINDOWS);
    let runs = over(&format!("{device}:storage-cache=off"), &trace, &policies, sizes, seed)?;
    if let Some(casa) = find(&runs, "casa", 1_000) {
        let case = || format!("{device}, 1000 pages");
        for (gauge, metric) in [
            ("read_cost_ns", "detected cost of a read"),
            ("write_cost_ns", "detected cost of a write"),
        ] {
            let cost_us = casa.gauge(gauge).unwrap_or(0.0) / 1e3;
            let row = Row::new("Figure 5.5", case(), (metric, "us"), None, cost_us);
            rows.push(row.at("", "", ("device", device)));
        }
        let ratio = casa.gauge("write_cost_ratio").unwrap_or(0.0);
        let row =
            Row::new("Figure 5.5", case(), ("detected cost ratio", "ratio"), Some(paper), ratio);
        // The program times of the X25-M were set by it.
        let row = row.at("", "", ("device", device));
        rows.push(Row { calibrated: device == "x25-m", ..row });
    }
    for run in runs.iter().filter(|run| run.policy != "lru") {
        let Some(lru) = find(&runs, "lru", run.buffer_pages) else { continue };
        let case = format!("{device}, {}", case(run));
        let time = ("execution time", "ratio to lru");
        let row = Row::new("Figure 5.6", case, time, None, run.seconds / lru.seconds);
        rows.push(row.at(device, &*run.policy, (BUFFER, run.buffer_pages)));
    }
    Ok(())
}

/// SAWC, CASA and CFDC on the SSD with the random-write weakness.
fn clustered(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let trace = oltp(scale)?;
    let sizes: &[u32] = match scale {
        Scale::Small => &[1_000, 2_000],
        _ => &[1_000, 2_000, 4_000, 8_000, 16_000],
    };
    let mut policies = vec!["casa", "sawc"];
    policies.extend(CFDC_WINDOWS);
    let runs = over("mtron", &trace, &policies, sizes, seed)?;
    for run in &runs {
        rows.extend(four_metrics("Figure 5.7", run, &run.policy, (BUFFER, run.buffer_pages)));
    }
    for &pages in sizes {
        let (Some(sawc), Some(casa)) = (find(&runs, "sawc", pages), find(&runs, "casa", pages))
        else {
            continue;
        };
        // "Up to 14% for the 16000-page setting", "only 58% of that of CASA", "by ~30%".
        let paper = |at_16000: f64| (pages == 16_000).then_some(at_16000);
        let case = || format!("sawc over casa, {pages} pages");
        let mut row = |metric, paper, of: fn(&BufferReplayRow) -> f64| {
            let what = (metric, "ratio");
            let row = Row::new("Figure 5.7", case(), what, paper, of(sawc) / of(casa));
            rows.push(row.at("", "sawc over casa", (BUFFER, pages)));
        };
        row("page flushes", paper(1.14), |run| run.pool.physical_writes as f64);
        row("cluster switches (CSC)", paper(0.58), |run| run.pool.cluster_switches as f64);
        row("execution time", paper(0.7), |run| run.seconds);
    }
    Ok(())
}

/// The same where next to nothing is written.
fn read_intensive(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let trace: Arc<CacheTrace> = read_only(scale)?;
    let sizes: &[u32] = match scale {
        Scale::Small => &[1_000],
        _ => &[1_000, 4_000, 16_000],
    };
    let mut policies = vec!["casa", "sawc"];
    policies.extend(CFDC_WINDOWS);
    for run in over("mtron", &trace, &policies, sizes, seed)? {
        let case = case(&run);
        let time = ("execution time", "s");
        let hits = run.pool.hit_ratio();
        for (what, measured) in [(time, run.seconds), (("hit ratio", "ratio"), hits)] {
            let row = Row::new("Figure 5.8", &*case, what, None, measured);
            rows.push(row.at("", &*run.policy, (BUFFER, run.buffer_pages)));
        }
    }
    Ok(())
}
