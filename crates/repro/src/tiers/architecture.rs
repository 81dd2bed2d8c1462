//! Chapter 6: three tiers compared with two of the same cost.
use tantalum_base::Result;
use tantalum_policy::tier::CostModel;
use tantalum_replay::tier_replay::TierOutcome;

use super::super::{Progress, Row, Scale};
use super::load::{Load, bank, tpcc, tpce, tpch};
use super::{Setting, measured, ns, number, run_all};

/// Section 6.4.1.
pub(super) const COSTS: CostModel = CostModel {
    flash_read_ns: ns(30),
    flash_sequential_write_ns: ns(120),
    flash_random_write_ns: ns(120),
    erase_ns: 0,
    disk_ns: ns(4_500),
};

/// The price of a byte of flash relative to one of memory.
const PRICE_OF_FLASH: f64 = 0.10;
/// Bytes of a page, and of its entry in the directory.
const PAGE_BYTES: f64 = 8_192.0;
const ENTRY_BYTES: f64 = 4.0;
/// Power of memory and of flash, in watts per byte (section 6.4.1).
const MEMORY_W: f64 = 0.503e-9;
const FLASH_W: f64 = 0.873e-12;

/// Buffer pages of the two tiers: `b`.
pub(super) const BUDGETS: [u32; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/// The label of the figures' x axis.
pub(super) const BUDGET: &str = "b, buffer pages of the two tiers";
pub(super) const CONFIGURATION: &str = "configuration";
pub(super) const FLASH_PAGES: &str = "s, pages of flash for each of b";
/// Number of flash pages for each page of `b`: `s`.
const SCALES: [u32; 4] = [2, 4, 6, 8];
const ALGORITHMS: [(&str, &str); 2] = [("GLB", "glb"), ("LOC", "loc")];

/// Table 6.1, for TPC-E and b = 1000: algorithm, s, power (mW), time (s), energy (J).
const TABLE_6_1: [(&str, u32, f64, f64, f64); 9] = [
    ("2TA", 0, 4.121, 7059.0, 29.09),
    ("GLB", 2, 3.307, 5776.0, 19.10),
    ("GLB", 4, 2.493, 5304.0, 13.22),
    ("GLB", 6, 1.679, 5061.0, 8.50),
    ("GLB", 8, 0.865, 4905.0, 4.24),
    ("LOC", 2, 3.307, 6305.0, 20.85),
    ("LOC", 4, 2.493, 5372.0, 13.39),
    ("LOC", 6, 1.679, 5024.0, 8.44),
    ("LOC", 8, 0.865, 4818.0, 4.17),
];

/// A configuration of one cost: two tiers with `budget` buffer pages, or three.
pub(super) struct Configuration {
    pub(super) algorithm: &'static str,
    pub(super) scale: u32,
    pub(super) budget: u32,
    /// Pages of the buffer, not rounded (equation 6.3), and of the flash cache (6.2).
    top_pages: f64,
    middle_pages: f64,
    pub(super) setting: Setting,
}

impl Configuration {
    fn new(load: &Load, (algorithm, tier): (&'static str, &str), scale: u32, budget: u32) -> Self {
        let budget = load.pages(budget);
        let middle_pages = f64::from(budget * scale);
        let share = PRICE_OF_FLASH + ENTRY_BYTES / PAGE_BYTES;
        let top_pages = f64::from(budget) - middle_pages * share;
        let setting = Setting {
            middle: tier.to_owned(),
            top_pages: (top_pages as u32).max(1),
            middle_pages: (middle_pages as u32).max(1),
            flush: true,
        };
        Configuration { algorithm, scale, budget, top_pages, middle_pages, setting }
    }

    /// All configurations with `budget`, two tiers first.
    pub(super) fn all(load: &Load, budget: u32) -> Vec<Configuration> {
        let three = ALGORITHMS.into_iter().flat_map(|algorithm| {
            SCALES.into_iter().map(move |scale| Self::new(load, algorithm, scale, budget))
        });
        std::iter::once(Self::new(load, ("2TA", "none"), 0, budget)).chain(three).collect()
    }

    pub(super) fn name(&self) -> String {
        match self.scale {
            0 => self.algorithm.to_owned(),
            scale => format!("{}, s = {scale}", self.algorithm),
        }
    }

    /// Power of memory and flash, in watts (equation 6.8).
    pub(super) fn power_w(&self) -> f64 {
        PAGE_BYTES * (self.top_pages * MEMORY_W + self.middle_pages * FLASH_W)
    }
}

/// Virtual execution time.
pub(super) fn seconds(outcome: &TierOutcome) -> f64 {
    COSTS.time(&outcome.counts).total_ns() as f64 / 1e9
}

/// Runs all configurations with `budget`.
fn run(load: &Load, budget: u32) -> Result<Vec<(Configuration, TierOutcome)>> {
    let configurations = Configuration::all(load, budget);
    let settings: Vec<Setting> = configurations.iter().map(|it| it.setting.clone()).collect();
    let outcomes = run_all(&load.trace, &settings)?;
    Ok(configurations.into_iter().zip(outcomes).collect())
}

/// Figures 6.1 to 6.5 and table 6.1.
pub(in super::super) fn architecture(
    scale: Scale,
    seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let loads =
        [("Figure 6.1", tpce(scale)?), ("Figure 6.2", tpcc(scale)?), ("Figure 6.3", tpch(scale)?)];
    for (figure, load) in &loads {
        of(figure, load, progress, rows)?;
    }
    measured::of(&bank(scale)?, seed, progress, rows)?;
    Ok(())
}

/// The figure of one trace; with table 6.1 for the smallest budget, if the paper has the table for that
/// trace.
pub(super) fn of(
    figure: &'static str,
    load: &Load,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    for budget in BUDGETS {
        progress(&format!("{figure}: {}, b = {budget}", load.name));
        let runs = run(load, budget)?;
        times(figure, load, &runs, rows);
        if budget == BUDGETS[0] && figure == "Figure 6.1" {
            accesses(&runs, rows);
            table(&runs, rows);
        }
    }
    Ok(())
}

/// Virtual execution time, and how much faster three tiers are than two.
fn times(
    figure: &'static str,
    load: &Load,
    runs: &[(Configuration, TierOutcome)],
    rows: &mut Vec<Row>,
) {
    let two = seconds(&runs[0].1);
    for (configuration, outcome) in runs {
        let (name, budget) = (configuration.name(), configuration.budget);
        let case = format!("{}, {name}, b = {budget}", load.name);
        let time = seconds(outcome);
        let row = number(figure, case.clone(), ("virtual execution time", "s"), None, time);
        rows.push(row.at("", &*name, (BUDGET, budget)));
        // "LOC reduced the virtual execution time by 32% to 35%" on TPC-E, s = 8.
        let paper = match (figure, configuration.algorithm, configuration.scale) {
            ("Figure 6.1", "LOC", 8) => Some(33.5),
            _ => None,
        };
        if configuration.scale > 0 {
            let saved = 100.0 * (1.0 - time / two);
            let row = number(figure, case, ("time saved against two tiers", "%"), paper, saved);
            rows.push(row.at("", name, (BUDGET, budget)));
        }
    }
}

fn accesses(runs: &[(Configuration, TierOutcome)], rows: &mut Vec<Row>) {
    for (configuration, TierOutcome { counts, .. }) in runs {
        let mut row = |metric, pages: u64| {
            let what = (metric, "pages");
            let name = configuration.name();
            let row = number("Figure 6.1b", name.clone(), what, None, pages as f64);
            rows.push(row.at("", "", (CONFIGURATION, name)));
        };
        row("flash reads", counts.flash_reads);
        row("flash writes", counts.flash_random_writes);
        row("disk reads", counts.disk_reads);
        row("disk writes", counts.disk_writes);
    }
}

/// Table 6.1. Power follows from sizes, so only small runs differ from the paper there; times are of
/// another trace.
fn table(runs: &[(Configuration, TierOutcome)], rows: &mut Vec<Row>) {
    let joules = |(configuration, outcome): &(Configuration, TierOutcome)| {
        configuration.power_w() * seconds(outcome)
    };
    for run in runs {
        let (configuration, _) = run;
        let paper = TABLE_6_1
            .iter()
            .find(|row| (row.0, row.1) == (configuration.algorithm, configuration.scale));
        let Some((_, _, power_mw, time_s, energy_j)) = paper else { continue };
        let mut row = |what, paper, measured| {
            let row = number("Table 6.1", configuration.name(), what, Some(paper), measured);
            rows.push(row.at("", configuration.algorithm, (FLASH_PAGES, configuration.scale)));
        };
        row(("power of memory and flash", "mW"), *power_mw, configuration.power_w() * 1e3);
        let two = &runs[0];
        let relative = (TABLE_6_1[0].3, TABLE_6_1[0].4);
        let time = 100.0 * seconds(&run.1) / seconds(&two.1);
        row(("virtual execution time", "% of two tiers"), 100.0 * time_s / relative.0, time);
        let energy = 100.0 * joules(run) / joules(two);
        row(("energy", "% of two tiers"), 100.0 * energy_j / relative.1, energy);
    }
}
