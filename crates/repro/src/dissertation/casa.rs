//! Chapter 5: CASA and SAWC compared with policies that do not know the costs of reads and writes.
use std::sync::Arc;
use tantalum_base::Result;
use tantalum_policy::{Policy, PolicySpec, Workload};

use super::super::{Progress, Row, Scale};
use super::bank::{bank, scattered};
use super::cost_ratios::cost_ratios;
use super::counts::{Counts, TIME, casa_at, virtual_time};
use super::runs::{
    BUFFER, CFDC_WINDOWS, CFLRU_WINDOWS, case, find, four_metrics, name, over, requests_a_point,
};
use super::workload::{self, SMALL_REQUESTS, concat, oltp};
use tantalum_replay::buffer_replay::{BufferReplayRow, Sample};

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
    cost_ratios(scale, seed, progress, rows)?;
    for (device, paper) in [("wd1500hlfs", 1.5), ("x25-m", 4.5)] {
        progress(&format!("figures 5.5 and 5.6: detection, {device}"));
        detection(scale, seed, device, paper, rows)?;
    }
    progress("figure 5.7: SAWC, CASA and CFDC, TPC-C");
    clustered(scale, seed, rows)?;
    progress("figure 5.8: the same, few updates, TPC-E by its numbers");
    read_intensive(scale, seed, rows)?;
    Ok(())
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

/// The number of pages on CASA's clean list: at equal distances, and the mean over the second half of each phase.
fn clean_list(scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let (trace, ends) = concat(scale)?;
    let spec = PolicySpec::parse(&casa_at(64))?;
    let workload = Workload { pages_end: trace.pages_end, future: &[] };
    let (pages, mut effects) = (1_000, Vec::new());
    let mut policy = spec.build(pages, workload)?;
    let clean_pages = |policy: &dyn Policy| {
        let gauges = policy.gauges();
        let clean = gauges.iter().find(|gauge| gauge.name == "clean_pages");
        clean.map_or(0.0, |gauge| gauge.value)
    };
    let every = requests_a_point(trace.requests.len());
    let mut begin = 0;
    for (phase, end) in ends.into_iter().enumerate() {
        let middle = begin + (end - begin) / 2;
        let (mut sum, mut samples) = (0.0, 0u32);
        for (at, request) in trace.requests[begin..end].iter().enumerate() {
            policy.access(*request, &mut effects);
            effects.clear();
            let at = begin + at;
            if at >= middle && at % 64 == 0 {
                sum += clean_pages(&*policy);
                samples += 1;
            }
            if at % every == every - 1 {
                let case = format!("casa 1:64, {pages} pages, request {}", at + 1);
                let what = ("length of the clean list", "pages");
                let row = Row::new("Figure 5.3", case, what, None, clean_pages(&*policy));
                rows.push(row.at("", "", ("request", (at + 1) as f64)));
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

/// The costs that CASA detects on a device, with the cache off as in 5.3.3, and the benefit.
fn detection(scale: Scale, seed: u64, device: &str, paper: f64, rows: &mut Vec<Row>) -> Result<()> {
    let mut trace = scattered(&bank(scale, seed)?, seed);
    if scale == Scale::Small {
        trace.requests.truncate(SMALL_REQUESTS);
    }
    let trace = Arc::new(trace);
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
        rows.extend(casa.samples.iter().flat_map(|sample| costs_at(device, sample)));
        let ratio = casa.gauge("write_cost_ratio").unwrap_or(0.0);
        let row =
            Row::new("Figure 5.5", case(), ("detected cost ratio", "ratio"), Some(paper), ratio);
        rows.push(row.at("", "", ("device", device)));
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

/// Figure 5.5 after a number of requests: the costs of reads and writes that were assumed until then.
fn costs_at(device: &str, sample: &Sample) -> impl Iterator<Item = Row> {
    let costs = [("read_cost_ns", "cost of a read"), ("write_cost_ns", "cost of a write")];
    costs.into_iter().filter_map(move |(gauge, metric)| {
        let cost_us = sample.gauge(gauge)? / 1e3;
        let case = format!("{device}, 1000 pages, request {}", sample.requests);
        let row = Row::new("Figure 5.5", case, (metric, "us"), None, cost_us);
        Some(row.at(device, metric, ("request", sample.requests as f64)))
    })
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

/// The same for a trace with almost no writes.
fn read_intensive(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let trace = workload::read_intensive(scale, seed)?;
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
