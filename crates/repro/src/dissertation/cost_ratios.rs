//! Table 5.2 and figure 5.4: policies on the bank's trace, for writes that cost as much as reads or more.
use tantalum_base::Result;

use super::super::{Progress, Row, Scale};
use super::bank::{self, UPDATED_PAGES, with_updates, without_hint_bits, without_recency};
use super::counts::{Counts, TIME, casa_at, virtual_time};
use super::runs::CFLRU_WINDOWS;
use super::workload::oltp;
use tantalum_replay::cache_replay::{CacheRow, CacheTrace};

/// The cost of a write, in reads.
const RATIOS: [u32; 5] = [1, 4, 16, 64, 128];
/// Sizes of the buffer, in pages.
const SIZES: [u32; 2] = [1_000, 10_000];

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

/// The counts of the table.
fn count(trace: &CacheTrace) -> Result<Counts> {
    let policies: Vec<&str> = TABLE_5_2.iter().map(|(policy, _)| *policy).collect();
    Counts::of(trace, &policies, &SIZES)
}

/// The reads and writes of a policy relative to LRU, and formula 5.1 at every ratio. The traces differ, so
/// only numbers relative to LRU can be compared.
pub(super) fn cost_ratios(
    scale: Scale,
    seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let trace = bank::bank(scale, seed)?;
    progress(&format!("table 5.2 and figure 5.4: cost ratios, {}", trace.name));
    let counts = count(&trace)?;
    for at in 0..SIZES.len() {
        table(&trace.name, &counts, at, rows)?;
        figure(&trace.name, &counts, at, rows)?;
    }
    progress("figure 5.4 with other traces");
    cross_checks(scale, seed, rows)
}

/// The panel for the numbers of a size: it names the trace, which differs from the dissertation's.
fn panel(trace: &str, at: usize) -> String {
    format!("{} pages, {trace}", SIZES[at])
}

/// Table 5.2 for the size at `at`.
fn table(trace: &str, counts: &Counts, at: usize, rows: &mut Vec<Row>) -> Result<()> {
    let pages = SIZES[at];
    let (lru_reads, lru_writes) = TABLE_5_2[LRU].1[at];
    let lru = counts.get("lru", pages)?;
    rows.push(Row {
        // The share of updated pages was chosen by it.
        calibrated: true,
        ..Row::new(
            "Table 5.2",
            format!("lru, {pages} pages"),
            ("physical writes a physical read", "ratio"),
            Some(lru_writes as f64 / lru_reads as f64),
            lru.physical_writes as f64 / lru.physical_reads as f64,
        )
    });
    for (policy, theirs) in TABLE_5_2.iter().filter(|(policy, _)| *policy != "lru") {
        let (reads, writes) = theirs[at];
        let ours = counts.get(policy, pages)?;
        let mut row = |metric, of: fn(&CacheRow) -> u64, paper| {
            let measured = of(ours) as f64 / of(lru) as f64;
            let case = format!("{policy}, {pages} pages");
            let row = Row::new("Table 5.2", case, (metric, "ratio to lru"), Some(paper), measured);
            rows.push(row.at(panel(trace, at), "", ("policy", *policy)));
        };
        row("physical reads", |row| row.physical_reads, reads as f64 / lru_reads as f64);
        row("physical writes", |row| row.physical_writes, writes as f64 / lru_writes as f64);
    }
    Ok(())
}

/// Figure 5.4 for the size at `at`.
fn figure(trace: &str, counts: &Counts, at: usize, rows: &mut Vec<Row>) -> Result<()> {
    let pages = SIZES[at];
    let (lru_reads, lru_writes) = TABLE_5_2[LRU].1[at];
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
            rows.push(row.at(panel(trace, at), series, along));
        }
    }
    Ok(())
}

/// The same with 10,000 pages on other traces, which shows how much of the result depends on the stand-in.
/// The dissertation has no numbers for them.
fn cross_checks(scale: Scale, seed: u64, rows: &mut Vec<Row>) -> Result<()> {
    let mut traces = vec![("table B.1, without recency", without_recency(scale, seed)?)];
    if let Some(order) = bank::order(scale)? {
        let updated = |pages: f64| with_updates(&order, pages, seed);
        traces.push(("updates of any page alike", updated(1.0)));
        traces.push(("updates of half of the pages", updated(UPDATED_PAGES)));
        traces.push(("a page updated always or never", updated(bank::UPDATES)));
    }
    let tpcc = oltp(scale)?;
    traces.push(("TPC-C, hint bits as reads", without_hint_bits(&tpcc, seed)));
    traces.push(("TPC-C, hint bits as writes", CacheTrace::clone(&tpcc)));
    for (what, trace) in &traces {
        let counts = count(trace)?;
        let pages = if scale == Scale::Small { SIZES[0] } else { SIZES[1] };
        for ratio in [1, 4, 64] {
            let casa = casa_at(ratio);
            let cflru = counts.best(&CFLRU_WINDOWS, pages, ratio)?;
            for (policy, series) in [(casa.as_str(), "casa"), (cflru, "cflru, best window")] {
                let case = format!("{what}: {policy}, {pages} pages, cost ratio 1:{ratio}");
                let measured = counts.relative(policy, pages, ratio)?;
                let row = Row::new("Figure 5.4", case, TIME, None, measured);
                let along = ("cost of a write, in reads", ratio);
                rows.push(row.at(format!("{pages} pages, {what}"), series, along));
            }
        }
    }
    Ok(())
}
