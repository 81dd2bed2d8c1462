//! Chapter 7: flash used through a translation layer (BL, LPD) and natively (NFA).
use tantalum_base::Result;
use tantalum_policy::PolicySpec;
use tantalum_policy::tier::{CostModel, least_time_ns};
use tantalum_replay::tier_replay::{TierOutcome, requests_below};

use super::super::{Progress, Row, Scale};
use super::load::{Load, tpcc, tpce, tpch};
use super::{Setting, ns, number, run_all};

/// Table 7.2.
const COSTS: CostModel = CostModel {
    flash_read_ns: ns(35),
    flash_sequential_write_ns: ns(350),
    flash_random_write_ns: ns(350),
    erase_ns: ns(1_500),
    disk_ns: ns(5_500),
};

/// Pages of the top and of the middle tier (section 7.4).
const TOP_PAGES: u32 = 10_000;
const MIDDLE_PAGES: u32 = 59_008;

/// The database beside which a tier has as many pages as in the dissertation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beside {
    /// Shares of the highest page number for the top and the middle tier (table 7.1).
    Highest(f64, f64),
    /// One with this many different pages in the trace (table B.1).
    Distinct(u32),
}

const TPCC: Beside = Beside::Highest(0.02216, 0.13079);
const TPCH: Beside = Beside::Highest(0.00951, 0.05611);
/// Table 7.1 has 441,138,522 as its highest page, which says little: its footnote calls this estimate coarse, as the sizes of the trace's more
/// than 20 files, and how full they are, were not known.
const TPCE: Beside = Beside::Distinct(460_064);

/// Other sizes for the three loads, and their names: by the different pages of table B.1; and TPC-E's, whose stand-in is TPC-H with refreshes, by
/// the shares of TPC-H.
const OTHERS: [(Beside, &str); 3] = [
    (Beside::Distinct(111_337), "by different pages"),
    (Beside::Distinct(1_051_591), "by different pages"),
    (TPCH, "shares of TPC-H"),
];

/// The sizes of the tiers under a load.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    top_pages: u32,
    middle_pages: u32,
}

impl Sizes {
    fn of(load: &Load, beside: Beside) -> Sizes {
        let (pages, top, middle) = match beside {
            Beside::Highest(top, middle) => (load.highest_page(), top, middle),
            Beside::Distinct(theirs) => {
                let share = |pages: u32| f64::from(pages) / f64::from(theirs);
                (load.distinct_pages(), share(TOP_PAGES), share(MIDDLE_PAGES))
            }
        };
        let of = |share: f64| ((pages as f64 * share) as u32).max(4);
        Sizes { top_pages: of(top), middle_pages: of(middle) }
    }

    /// LPD's `d`, in proportion to the middle tier.
    fn deletes(self, deletes: u32) -> u32 {
        (u64::from(deletes) * u64::from(self.middle_pages) / u64::from(MIDDLE_PAGES)) as u32
    }
}

/// Pages in a block (section 7.4).
const BLOCK_PAGES: u32 = 128;

/// Pages that LPD deletes at once (section 7.4), and the most that were tried (7.4.2).
const DELETES: u32 = 1_024;
const DELETES_MAX: u32 = 65_536;

/// Figures 7.5 to 7.9.
pub(in super::super) fn native(
    scale: Scale,
    _seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let loads = [tpcc(scale)?, tpch(scale)?, tpce(scale)?];
    for (load, beside) in loads.iter().zip([TPCC, TPCH, TPCE]) {
        of(load, beside, progress, rows)?;
    }
    progress("table 7.1: other sizes of the tiers");
    for (load, (beside, name)) in loads.iter().zip(OTHERS) {
        other_sizes(load, (beside, name), rows)?;
    }
    Ok(())
}

/// The figures of one trace. Figures 7.7 to 7.9 are of TPC-C.
pub(super) fn of(
    load: &Load,
    beside: Beside,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    progress(&format!("figures 7.5 and 7.6: {}", load.name));
    let sizes = Sizes::of(load, beside);
    let runs = run(load, sizes, &tiers(sizes))?;
    overall(load, &runs, rows);
    beyond(load, sizes, &runs[2], rows)?;
    if load.name == "TPC-C" {
        collected(&runs, rows);
        wear(&runs, rows);
        progress("figure 7.8: LPD by d");
        greediness(load, sizes, &runs[2], rows)?;
    }
    Ok(())
}

/// The three of the dissertation.
fn tiers(sizes: Sizes) -> [String; 3] {
    let deletes = sizes.deletes(DELETES);
    ["bl".to_owned(), format!("lpd:d={deletes}"), "nfa".to_owned()]
}

/// Requests per second of the middle tier: those that reach it.
fn rate(outcome: &TierOutcome) -> f64 {
    let requests = outcome.counts.reads + outcome.counts.writes;
    requests as f64 / (COSTS.time(&outcome.counts).total_ns() as f64 / 1e9)
}

/// The main numbers with tiers of other sizes.
fn other_sizes(load: &Load, (beside, name): (Beside, &str), rows: &mut Vec<Row>) -> Result<()> {
    let sizes = Sizes::of(load, beside);
    let runs = run(load, sizes, &tiers(sizes))?;
    let mut row = |what: &str, metric, measured| {
        let case = format!("{}, {name}, {what}", load.name);
        rows.push(number("Table 7.1", case, metric, None, measured));
    };
    let nfa = &runs[2];
    for (than, at) in [("BL", 0), ("LPD", 1)] {
        let gain = 100.0 * (rate(nfa) / rate(&runs[at]) - 1.0);
        row(&format!("NFA over {than}"), ("throughput gained", "%"), gain);
    }
    let blocks: u64 = nfa.collected.iter().sum();
    let less: u64 = nfa.collected[..96].iter().sum();
    let share = 100.0 * less as f64 / (blocks as f64).max(1.0);
    row("NFA, less than 96 valid pages", ("collected blocks", "%"), share);
    Ok(())
}

fn run(load: &Load, sizes: Sizes, tiers: &[String]) -> Result<Vec<TierOutcome>> {
    let settings: Vec<Setting> = tiers
        .iter()
        .map(|middle| Setting {
            middle: middle.clone(),
            top_pages: sizes.top_pages,
            middle_pages: sizes.middle_pages,
            flush: false,
        })
        .collect();
    run_all(&load.trace, &settings)
}

/// The label of the figures' x axis.
const TRACE: &str = "trace";

const NAMES: [&str; 3] = ["BL", "LPD", "NFA"];

/// Mean number of pages that a collection moves.
fn moved_by_one(outcome: &TierOutcome) -> f64 {
    outcome.counts.collected_pages as f64 / (outcome.counts.erases as f64).max(1.0)
}

/// Figures 7.5 and 7.6.
fn overall(load: &Load, runs: &[TierOutcome], rows: &mut Vec<Row>) {
    for (name, outcome) in NAMES.into_iter().zip(runs) {
        let case = format!("{}, {name}", load.name);
        let mut row = |figure, what, measured| {
            let row = number(figure, case.clone(), what, None, measured);
            rows.push(row.at("", name, (TRACE, load.name)));
        };
        row("Figure 7.5", ("throughput", "IOPS"), rate(outcome));
        let time = COSTS.time(&outcome.counts);
        row("Figure 7.6", ("garbage collection", "s"), time.collection_ns as f64 / 1e9);
        row("Figure 7.6", ("cache", "s"), time.flash_ns as f64 / 1e9);
        row("Figure 7.6", ("disk", "s"), time.disk_ns as f64 / 1e9);
        row("Figure 7.6", ("hit ratio", "ratio"), outcome.counts.hit_ratio());
        row("Figure 7.6", ("garbage collections", "blocks"), outcome.counts.erases as f64);
        row("Figure 7.6", ("moved by a collection", "pages"), moved_by_one(outcome));
    }
    // "For the TPC-C workload, NFA achieved an improvement of 43% and 66% compared with LPD and BL."
    for (than, at, paper) in [("BL", 0, 66.0), ("LPD", 1, 43.0)] {
        let paper = (load.name == "TPC-C").then_some(paper);
        let case = format!("{}, NFA over {than}", load.name);
        let gain = 100.0 * (rate(&runs[2]) / rate(&runs[at]) - 1.0);
        let row = number("Figure 7.5", case, ("throughput gained", "%"), paper, gain);
        rows.push(row.at("", format!("NFA over {than}"), (TRACE, load.name)));
    }
    // "NFA reduces the GC frequency by a factor of five": 22,106 collections, and at d = 0 five times as many.
    let paper = (load.name == "TPC-C").then_some(5.0);
    let factor = runs[0].counts.erases as f64 / (runs[2].counts.erases as f64).max(1.0);
    let case = format!("{}, BL over NFA", load.name);
    let row = number("Figure 7.6", case, ("garbage collections", "ratio"), paper, factor);
    rows.push(row.at("", "BL over NFA", (TRACE, load.name)));
}

/// Additions to the dissertation: a cache that evicts pages one by one, compared with NFA; and the lower limit
/// for any cache, which knows all future requests.
fn beyond(load: &Load, sizes: Sizes, nfa: &TierOutcome, rows: &mut Vec<Row>) -> Result<()> {
    let time = |outcome: &TierOutcome| COSTS.time(&outcome.counts).total_ns() as f64;
    let tiers = ["lazy:keep=0.7", "lazy:keep=0.8"].map(str::to_owned);
    let lazy = run(load, sizes, &tiers)?;
    for (name, outcome) in tiers.iter().zip(&lazy) {
        let case = format!("{}, {name}", load.name);
        let mut row = |what, measured| {
            let row = number("Beyond", case.clone(), what, None, measured);
            rows.push(row.at("", &**name, (TRACE, load.name)));
        };
        row(("virtual execution time", "% of NFA"), 100.0 * time(outcome) / time(nfa));
        let erases = outcome.counts.erases as f64 / (nfa.counts.erases as f64).max(1.0);
        row(("garbage collections", "% of NFA"), 100.0 * erases);
        row(("hit ratio", "ratio"), outcome.counts.hit_ratio());
    }
    let greediest = run(load, sizes, &[format!("lpd:d={}", sizes.deletes(DELETES_MAX))])?;
    for outcome in &greediest {
        let case = format!("{}, LPD, the largest d", load.name);
        let mut row = |what, measured| {
            let row = number("Beyond", case.clone(), what, None, measured);
            rows.push(row.at("", "LPD, the largest d", (TRACE, load.name)));
        };
        let erases = outcome.counts.erases as f64 / (nfa.counts.erases as f64).max(1.0);
        row(("garbage collections", "% of NFA"), 100.0 * erases);
        row(("hit ratio", "ratio"), outcome.counts.hit_ratio());
        row(("moved by a collection", "pages"), moved_by_one(outcome));
    }
    let top = PolicySpec::parse("lru")?;
    let below = requests_below(&load.trace, &top, sizes.top_pages)?;
    let flash_pages = nfa.erases.len() as u32 * BLOCK_PAGES;
    let least = least_time_ns(&below, flash_pages, &COSTS)? as f64;
    let case = format!("{}, lower bound with all requests known", load.name);
    let measured = 100.0 * least / time(nfa);
    let row = number("Beyond", case, ("virtual execution time", "% of NFA"), None, measured);
    rows.push(row.at("", "lower bound", (TRACE, load.name)));
    Ok(())
}

/// Figure 7.7: the number of valid pages in collected blocks; those that are moved, which are fewer with NFA, as it drops cold ones.
fn collected(runs: &[TierOutcome], rows: &mut Vec<Row>) {
    for (name, outcome) in NAMES.into_iter().zip(runs) {
        for (what, blocks) in [("valid", &outcome.collected), ("moved", &outcome.moved)] {
            let all: u64 = blocks.iter().sum();
            for (from, to) in [(0, 31), (32, 63), (64, 95), (96, 127), (128, 128)] {
                let some: u64 = blocks[from..=to].iter().sum();
                let case = format!("{name}, {from} to {to} {what} pages");
                let measured = 100.0 * some as f64 / (all as f64).max(1.0);
                let row = number("Figure 7.7", case, ("collected blocks", "%"), None, measured);
                let pages = if from == to { from.to_string() } else { format!("{from} to {to}") };
                let axis = "valid pages of a collected block, and those of them that are moved";
                rows.push(row.at(what, name, (axis, pages)));
            }
        }
    }
}

/// Figure 7.9: erases of the blocks.
fn wear(runs: &[TierOutcome], rows: &mut Vec<Row>) {
    for (name, TierOutcome { erases, .. }) in NAMES.into_iter().zip(runs) {
        let mut row = |metric, measured: f64| {
            let what = (metric, "erases");
            let row = number("Figure 7.9", name.to_owned(), what, None, measured);
            rows.push(row.at("", "", ("middle tier", name)));
        };
        row("least of a block", erases.iter().min().map_or(0.0, |least| *least as f64));
        row("mean", erases.iter().sum::<u64>() as f64 / erases.len().max(1) as f64);
        row("most of a block", erases.iter().max().map_or(0.0, |most| *most as f64));
    }
}

/// Figure 7.8: LPD compared with NFA, by the number of pages that it deletes at once.
fn greediness(load: &Load, sizes: Sizes, nfa: &TierOutcome, rows: &mut Vec<Row>) -> Result<()> {
    let all = [0, 64, 256, 1_024, 4_096, 16_384, DELETES_MAX];
    let tiers = all.map(|deletes| format!("lpd:d={}", sizes.deletes(deletes)));
    for (of_paper, outcome) in all.into_iter().zip(run(load, sizes, &tiers)?) {
        let deletes = sizes.deletes(of_paper);
        // "Slightly higher (by 5.84%)", "by a factor of five"; "63.1% of the NFA hit ratio", "by 21%".
        let (hits, collections) = match of_paper {
            0 => (Some(1.0584), Some(5.0)),
            DELETES_MAX => (Some(0.631), Some(1.21)),
            _ => (None, None),
        };
        let mut row = |what, paper, measured| {
            let row = number("Figure 7.8", format!("LPD, d = {deletes}"), what, paper, measured);
            rows.push(row.at("", "LPD", ("d, pages deleted at once", deletes.to_string())));
        };
        let measured = outcome.counts.hit_ratio() / nfa.counts.hit_ratio();
        row(("hit ratio", "of NFA's"), hits, measured);
        let measured = outcome.counts.erases as f64 / (nfa.counts.erases as f64).max(1.0);
        row(("garbage collections", "of NFA's"), collections, measured);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 and 59,008 pages of the highest page number in table 7.1, and a d of 1,024 beside the latter (section 7.4).
    #[test]
    fn tiers_are_as_large_beside_the_database_as_in_the_dissertation() {
        let load =
            Load::made_up("TPC-C", "uniform:pages=200000,requests=300k", 300_000, 1).unwrap();
        for (beside, theirs) in [(TPCC, 451_166.0), (TPCH, 1_051_590.0)] {
            let sizes = Sizes::of(&load, beside);
            let share = |pages: u32| f64::from(pages) / load.highest_page() as f64;
            assert!((share(sizes.top_pages) - 10_000.0 / theirs).abs() < 1e-5, "{sizes:?}");
            assert!((share(sizes.middle_pages) - 59_008.0 / theirs).abs() < 1e-5, "{sizes:?}");
            let share = f64::from(sizes.deletes(1_024)) / f64::from(sizes.middle_pages);
            assert!((share - 1_024.0 / 59_008.0).abs() < 1e-4, "{sizes:?}");
            assert!(sizes.deletes(65_536) > sizes.middle_pages && sizes.deletes(0) == 0);
        }
        // 300,000 draws leave a fifth of the pages out, and TPC-E's tiers are a share of the others.
        let sizes = Sizes::of(&load, TPCE);
        let distinct = load.distinct_pages() as f64;
        assert!((0.7..0.85).contains(&(distinct / 200_000.0)), "{distinct}");
        assert!((f64::from(sizes.middle_pages) / distinct - 59_008.0 / 460_064.0).abs() < 1e-4);
    }
}
