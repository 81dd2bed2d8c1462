//! The flash-based write cache, figures 6 to 8.
use tantalum_base::Result;
use tantalum_policy::tier::CostModel;
use tantalum_replay::tier_replay::TierOutcome;

use super::super::{Progress, Row, Scale};
use super::load::{Load, tpcc_in_place_of};
use super::{Setting, ns, number, run_all};

/// Table 2.
const HIGH_END: CostModel = CostModel {
    flash_read_ns: ns(105),
    flash_sequential_write_ns: ns(106),
    flash_random_write_ns: ns(133),
    erase_ns: 0,
    disk_ns: ns(4_464),
};
const LOW_END: CostModel = CostModel {
    flash_read_ns: ns(165),
    flash_sequential_write_ns: ns(153),
    flash_random_write_ns: ns(7_972),
    ..HIGH_END
};

/// The buffer pool that filters the trace, and the trace's warehouses (section 4). Pool and caches are as large beside a warehouse as there.
const TOP_PAGES: u32 = 10_000;
const WAREHOUSES: u32 = 100;

const AOR: &str = "write_cache:admit=read";
const AOW: &str = "write_cache";
const SEQUENTIAL: &str = "write_cache:place=sequential";
const BOTH: &str = "write_cache:coalesce=on,piggyback=on";

/// Figures 6 to 8.
pub(in super::super) fn write_cache(
    scale: Scale,
    _seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let load = tpcc_in_place_of(WAREHOUSES, scale)?;
    of(&load, progress, rows)?;
    if scale != Scale::Small {
        progress("pool and cache in other proportions to the database");
        proportions(&load, rows)?;
    }
    Ok(())
}

/// The figures of one trace.
pub(super) fn of(load: &Load, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    progress("figure 6: admission");
    admission(load, rows)?;
    progress("figure 7: sequential and random cache writes");
    placement(load, rows)?;
    progress("figure 8: tracks");
    tracks(load, rows)?;
    Ok(())
}

fn run(load: &Load, tiers: &[&str], pages: u32) -> Result<Vec<TierOutcome>> {
    let settings: Vec<Setting> = tiers
        .iter()
        .map(|tier| Setting {
            middle: (*tier).to_owned(),
            top_pages: load.pages(TOP_PAGES),
            middle_pages: load.pages(pages),
            flush: false,
        })
        .collect();
    run_all(&load.trace, &settings)
}

/// Virtual execution time in percent of that of the first.
fn relative(costs: &CostModel, outcomes: &[TierOutcome]) -> Vec<f64> {
    let ns = |outcome: &TierOutcome| costs.time(&outcome.counts).total_ns() as f64;
    outcomes.iter().map(|outcome| 100.0 * ns(outcome) / ns(&outcomes[0])).collect()
}

/// The label of the figures' x axis.
const PAGES: &str = "pages of the cache";

const TIME: (&str, &str) = ("virtual execution time", "% of no cache");

fn admission(load: &Load, rows: &mut Vec<Row>) -> Result<()> {
    for pages in [1_000, 4_000, 16_000] {
        let outcomes = run(load, &["none", AOR, AOW], pages)?;
        let times = relative(&HIGH_END, &outcomes);
        for (name, time) in ["AOR", "AOW"].into_iter().zip(&times[1..]) {
            let case = format!("{name}, {} pages", load.pages(pages));
            let row = number("Figure 6", case, TIME, None, *time);
            rows.push(row.at("", name, (PAGES, load.pages(pages))));
        }
    }
    Ok(())
}

fn placement(load: &Load, rows: &mut Vec<Row>) -> Result<()> {
    // The paper has only 4,000 pages.
    for pages in [4_000, 16_000] {
        let outcomes = run(load, &["none", SEQUENTIAL, AOW], pages)?;
        for (device, costs) in [("high-end", HIGH_END), ("low-end", LOW_END)] {
            let times = relative(&costs, &outcomes);
            for (name, time) in ["SCW", "RCW"].into_iter().zip(&times[1..]) {
                let case = format!("{name}, {device}, {} pages", load.pages(pages));
                let row = number("Figure 7", case, TIME, None, *time);
                rows.push(row.at(device, name, (PAGES, load.pages(pages))));
            }
        }
        for (name, outcome) in ["SCW", "RCW"].into_iter().zip(&outcomes[1..]) {
            let case = format!("{name}, {} pages", load.pages(pages));
            let hits = outcome.counts.hit_ratio();
            let row = number("Figure 7", case, ("hit ratio", "ratio"), None, hits);
            rows.push(row.at("", name, (PAGES, load.pages(pages))));
        }
    }
    Ok(())
}

fn tracks(load: &Load, rows: &mut Vec<Row>) -> Result<()> {
    // "Up to 12% for LRU", and "up to 18%".
    let cases = [
        ("LRU", AOW, Some(100.0)),
        ("LRU, CF", "write_cache:coalesce=on", Some(88.0)),
        ("LRU, CF+PB", BOTH, Some(82.0)),
        ("DTF, CF", "write_cache:order=densest,coalesce=on", None),
        ("DTF, CF+PB", "write_cache:order=densest,coalesce=on,piggyback=on", None),
        ("SCW, CF", "write_cache:place=sequential,coalesce=on", None),
        ("SCW, CF+PB", "write_cache:place=sequential,coalesce=on,piggyback=on", None),
    ];
    let outcomes = run(load, &cases.map(|(_, tier, _)| tier), 4_000)?;
    let seeks = |outcome: &TierOutcome| outcome.counts.seeks as f64;
    for ((name, _, paper), outcome) in cases.into_iter().zip(&outcomes) {
        let case = format!("{name}, {} pages", load.pages(4_000));
        let measured = 100.0 * seeks(outcome) / seeks(&outcomes[0]);
        let row = number("Figure 8", case, ("seeks", "% of LRU"), paper, measured);
        rows.push(row.at("", "", ("how pages go home", name)));
    }
    Ok(())
}

/// The dissertation's TPC-C of 100 warehouses has this number as its highest page (table 7.1).
const HIGHEST_PAGE_OF_100: u64 = 451_166;

/// Figures 7 and 8 with pools and caches that are larger beside the database: as in the dissertation's table 7.1, and not scaled at all. The paper
/// states only the number of warehouses.
fn proportions(load: &Load, rows: &mut Vec<Row>) -> Result<()> {
    let by_size = f64::from(TOP_PAGES) * load.highest_page() as f64 / HIGHEST_PAGE_OF_100 as f64;
    let tiers = [SEQUENTIAL, AOW, "write_cache:coalesce=on", BOTH];
    for top_pages in [load.pages(TOP_PAGES), by_size as u32, TOP_PAGES] {
        let settings = tiers.map(|middle| Setting {
            middle: middle.to_owned(),
            top_pages,
            middle_pages: (u64::from(top_pages) * 4_000 / u64::from(TOP_PAGES)) as u32,
            flush: false,
        });
        let outcomes = run_all(&load.trace, &settings)?;
        let [sequential, random, coalesced, both] = &outcomes[..] else { continue };
        let mut row = |name: &str, what, measured| {
            let case = format!("{name}, pool of {top_pages} pages");
            let row = number("Proportions", case, what, None, measured);
            rows.push(row.at("", name, ("pages of the pool", top_pages)));
        };
        let hits = random.counts.hit_ratio() / sequential.counts.hit_ratio();
        row("RCW over SCW", ("hit ratio", "ratio"), hits);
        for (name, outcome) in [("CF", coalesced), ("CF+PB", both)] {
            let seeks = 100.0 * outcome.counts.seeks as f64 / random.counts.seeks as f64;
            row(name, ("seeks", "% of LRU"), seeks);
        }
    }
    Ok(())
}
