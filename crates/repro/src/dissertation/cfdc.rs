//! Chapter 3: CFDC compared with earlier algorithms, on the SSD with the random-write weakness.
use tantalum_base::Result;

use super::super::{Progress, Row, Scale};
use super::runs::{
    BUFFER, CFDC_WINDOWS, CFLRU_WINDOWS, fastest, find, four_metrics, gain_percent, name, over,
    sizes,
};
use super::workload::{bank, mixed, oltp, scans};
use tantalum_replay::buffer_replay::BufferReplayRow;

/// The SSD of section 3.3.
const DEVICE: &str = "mtron";
/// CFDC-1, CFDC-k and LRU-k, as section 3.3 calls them.
const CFDC_1: &str = "cfdc:window=0.5,cluster=16";
const CFDC_K: &str = "cfdc:window=0.5,cluster=16,base=lru_k/k=2";
const REF: &str = "ref:window=0.5,block=16,victims=4";
const CFLRU: &str = "cflru:window=0.5";
/// The seven of section 3.3, with the default window.
const POLICIES: [&str; 7] = ["lru", "lru_k:k=2", CFLRU, "lru_wsr", REF, CFDC_1, CFDC_K];

/// Figures 3.5 to 3.8.
pub(in super::super) fn cfdc(
    scale: Scale,
    seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    progress("figure 3.5: the synthetic trace");
    synthetic(scale, seed, rows)?;
    progress("figure 3.6: scans");
    scan_resistance(scale, seed, rows)?;
    progress("figure 3.7: window size, TPC-C");
    window_size(scale, seed, rows)?;
    progress("figure 3.8: in place of the bank trace");
    real_life(scale, seed, rows)?;
    Ok(())
}

/// The share of the synthetic traces that is used.
fn share(scale: Scale) -> f64 {
    if scale == Scale::Small { 0.05 } else { 1.0 }
}

fn synthetic(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let trace = mixed(share(scale), seed)?;
    let runs = over(DEVICE, &trace, &POLICIES, sizes(scale), seed)?;
    for run in &runs {
        rows.extend(four_metrics(
            "Figure 3.5",
            run,
            &name(&run.policy),
            (BUFFER, run.buffer_pages),
        ));
    }
    // "With a buffer of 4,000 page frames, the performance gain of CFDC-k over REF is 26%."
    for &pages in sizes(scale) {
        let paper = (pages == 4_000).then_some(26.0);
        gain("Figure 3.5", &runs, &[CFDC_K], &[REF], (pages, paper), rows);
        gain("Figure 3.5", &runs, &[CFDC_K], &[CFLRU], (pages, None), rows);
    }
    Ok(())
}

/// How much faster the best of `ours` is than the best of `theirs`.
fn gain(
    figure: &'static str,
    runs: &[BufferReplayRow],
    ours: &[&str],
    theirs: &[&str],
    (pages, paper): (u32, Option<f64>),
    rows: &mut Vec<Row>,
) {
    let (Some(our), Some(their)) = (fastest(runs, ours, pages), fastest(runs, theirs, pages))
    else {
        return;
    };
    let case = format!("{} over {}, {pages} pages", our.policy, their.policy);
    let series = format!("{} over {}", name(&our.policy), name(&their.policy));
    let row = Row::new(figure, case, ("gain", "%"), paper, gain_percent(our, their));
    rows.push(row.at("", series, (BUFFER, pages)));
}

/// The device if hits and clusters are counted and time does not matter: a policy's decisions do not depend on the device here, and a
/// disk is the fastest to simulate.
const COUNTED_ON: &str = "mba3147rc";

/// A buffer as large as a scan, with an increasing number of scans.
fn scan_resistance(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let (counts, span): (&[u64], _) = match scale {
        Scale::Small => (&[10, 80], "10 to 80"),
        _ => (&[200, 400, 800, 1_600], "200 to 1,600"),
    };
    let pages = 200;
    let mut hits = Vec::new();
    for &count in counts {
        let trace = scans(count, share(scale), seed)?;
        for run in over(COUNTED_ON, &trace, &POLICIES, &[pages], seed)? {
            // "From 144,926 to 143,285."
            let paper = match (run.policy == CFDC_K, count) {
                (true, 200) => Some(144_926.0),
                (true, 1_600) => Some(143_285.0),
                _ => None,
            };
            let case = format!("{}, {count} scans", run.policy);
            let found = run.pool.hits as f64;
            let row = |what, paper, measured| {
                let row = Row::new("Figure 3.6", case.clone(), what, paper, measured);
                row.at("", name(&run.policy), ("scans", count as f64))
            };
            rows.push(row(("hits", "pages"), paper, found));
            let factor = run.pool.cluster_switch_factor();
            rows.push(row(("cluster-switch factor (CSF)", "ratio"), None, factor));
            hits.push((run.policy, count, found));
        }
    }
    for policy in POLICIES {
        let mut of = hits.iter().filter(|(name, ..)| name == policy);
        let (Some((.., few)), Some((.., many))) = (of.next(), of.next_back()) else { continue };
        // "Most algorithms suffer from a drop between 5% to 7%", CFDC-k 1 %, LRU-k 2.5 %.
        let paper = match policy {
            CFDC_K => Some(1.0),
            "lru_k:k=2" => Some(2.5),
            _ => None,
        };
        let case = format!("{policy}, {span} scans");
        let lost = 100.0 * (1.0 - many / few);
        let row = Row::new("Figure 3.6", case, ("hits lost", "%"), paper, lost);
        rows.push(row.at("", "", ("policy", name(policy))));
    }
    Ok(())
}

fn window_size(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let windows: &[&str] = match scale {
        Scale::Small => &["0.1", "0.5", "0.9"],
        _ => &["0.1", "0.25", "0.5", "0.75", "0.9", "0.99"],
    };
    let trace = oltp(scale)?;
    let policies: Vec<String> = windows
        .iter()
        .flat_map(|window| {
            [
                format!("cflru:window={window}"),
                format!("ref:window={window},block=16,victims=4"),
                format!("cfdc:window={window},cluster=16"),
            ]
        })
        .collect();
    let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
    let runs = over(DEVICE, &trace, &policies, &[1_000], seed)?;
    // One run per window and algorithm, in this order.
    let windows = windows.iter().flat_map(|window| [window; 3]);
    for (run, window) in runs.iter().zip(windows) {
        let share: f64 = window.parse().expect("one of those above");
        rows.extend(four_metrics("Figure 3.7", run, &name(&run.policy), ("window", share)));
    }
    Ok(())
}

/// CFLRU, REF and CFDC with their best window; the others have none.
fn real_life(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    const REF: [&str; 3] = [
        "ref:window=0.25,block=16,victims=4",
        "ref:window=0.5,block=16,victims=4",
        "ref:window=0.75,block=16,victims=4",
    ];
    let trace = bank(scale)?;
    let mut policies = vec!["lru", "lru_wsr"];
    policies.extend(CFLRU_WINDOWS.iter().chain(&REF).chain(&CFDC_WINDOWS));
    let runs = over(DEVICE, &trace, &policies, sizes(scale), seed)?;
    for &pages in sizes(scale) {
        let best = [CFLRU_WINDOWS, REF, CFDC_WINDOWS].map(|tried| fastest(&runs, &tried, pages));
        let plain = ["lru", "lru_wsr"].map(|policy| find(&runs, policy, pages));
        for run in plain.into_iter().chain(best).flatten() {
            rows.extend(four_metrics(
                "Figure 3.8",
                run,
                &name(&run.policy),
                (BUFFER, run.buffer_pages),
            ));
        }
        // "53% for the 16,000-page setting and 33% for the 8,000-page setting."
        let paper = match pages {
            16_000 => Some(53.0),
            8_000 => Some(33.0),
            _ => None,
        };
        gain("Figure 3.8", &runs, &CFDC_WINDOWS, &CFLRU_WINDOWS, (pages, paper), rows);
        gain("Figure 3.8", &runs, &CFDC_WINDOWS, &REF, (pages, None), rows);
    }
    Ok(())
}
