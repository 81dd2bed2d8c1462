//! Figures 6.4 and 6.5: the configurations of figures 6.1 to 6.3 on devices, in place of costs.
//!
//! The dissertation's SSD4 is an Intel SSDSA1MH160G2GN. The nearest is `x25-m`, the SSDSA2MH160G1GN, for which table A.1
//! has the same latency. HDD2 is `wd1500hlfs`.
use tantalum_base::Result;
use tantalum_models::DeviceSpec;
use tantalum_replay::side_by_side::{all_done, cores, side_by_side};
use tantalum_replay::tier_replay::{TierDevices, TierMeasured, replay_on_devices};
use tantalum_replay::work::Work;

use super::super::dissertation::CPU_NS;
use super::super::{Progress, Row};
use super::architecture::{
    BUDGET, BUDGETS, CONFIGURATION, COSTS, Configuration, FLASH_PAGES, seconds,
};
use super::load::Load;
use super::number;

/// Number of device pages for a page of 8,192 bytes.
const DEVICE_PAGES: u32 = 2;

/// The flash, new. The largest cache occupies 2 GiB of a drive of 160 GB, and no run writes 8, so neither this nor the
/// full drive is cleaned.
const FLASH: &str = "x25-m:capacity=8GiB";
pub(super) const HOME: &str = "wd1500hlfs";
/// The same disk, but it acknowledges a write only when it is on the platters: every write is a separate access, as the
/// simulations' costs assume.
const HOME_WITHOUT_CACHE: &str = "wd1500hlfs:storage-cache=off";

/// Runs all configurations with `budget` over `home`, two tiers first.
pub(super) fn run(
    load: &Load,
    budget: u32,
    home: &str,
    seed: u64,
) -> Result<Vec<(Configuration, TierMeasured)>> {
    let configurations = Configuration::all(load, budget);
    let measured = side_by_side(&configurations, cores(), &Work::default(), |configuration| {
        let devices = TierDevices {
            flash: (configuration.scale > 0).then(|| DeviceSpec::parse(FLASH)).transpose()?,
            home: DeviceSpec::parse(home)?,
            device_pages: DEVICE_PAGES,
            cpu_ns: CPU_NS,
            seed,
        };
        replay_on_devices(&load.trace, &configuration.setting.run()?, &devices)
    })?;
    Ok(configurations.into_iter().zip(all_done(measured)?).collect())
}

pub(super) fn took_s(measured: &TierMeasured) -> f64 {
    measured.took_ns as f64 / 1e9
}

/// Figure 6.4; with the largest budget, figure 6.5.
pub(super) fn of(load: &Load, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    for budget in BUDGETS {
        progress(&format!("Figure 6.4: {}, b = {budget}", load.name));
        let runs = run(load, budget, HOME, seed)?;
        figures(load, budget, &runs, seed, rows)?;
    }
    Ok(())
}

/// The rows of the figures for `runs` of one budget.
pub(super) fn figures(
    load: &Load,
    budget: u32,
    runs: &[(Configuration, TierMeasured)],
    seed: u64,
    rows: &mut Vec<Row>,
) -> Result<()> {
    times(load, runs, rows);
    if budget == BUDGETS[5] {
        breakdown(runs, rows);
        means(runs, rows);
        energy(runs, rows);
        let runs = run(load, budget, HOME_WITHOUT_CACHE, seed)?;
        without_cache(load, &runs, rows);
    }
    Ok(())
}

/// Execution time, and how much faster three tiers are than two; compared with the simulations' costs for the same
/// operations.
fn times(load: &Load, runs: &[(Configuration, TierMeasured)], rows: &mut Vec<Row>) {
    let two = &runs[0].1;
    for (configuration, measured) in runs {
        let (name, budget) = (configuration.name(), configuration.budget);
        let case = format!("{}, {name}, b = {budget}", load.name);
        let mut row = |what, measured| {
            let row = number("Figure 6.4", case.clone(), what, None, measured);
            rows.push(row.at("", &*name, (BUDGET, budget)));
        };
        row(("execution time", "s"), took_s(measured));
        let virtual_s = seconds(&measured.outcome);
        row(("virtual execution time", "s"), virtual_s);
        if configuration.scale > 0 {
            let saved = |three: f64, two: f64| 100.0 * (1.0 - three / two);
            let what = ("time saved against two tiers", "%");
            row(what, saved(took_s(measured), took_s(two)));
            let what = ("virtual time saved against two tiers", "%");
            row(what, saved(virtual_s, seconds(&two.outcome)));
        }
    }
}

/// Execution time if no cache of the disk sorts the writes.
fn without_cache(load: &Load, runs: &[(Configuration, TierMeasured)], rows: &mut Vec<Row>) {
    for (configuration, measured) in runs {
        let case = format!("{}, {}, b = {}", load.name, configuration.name(), configuration.budget);
        let what = ("execution time without the disk's cache", "s");
        let row = number("Figure 6.4", case, what, None, took_s(measured));
        rows.push(row.at("", "", (CONFIGURATION, configuration.name())));
    }
}

/// Figure 6.5a: the parts of the time.
fn breakdown(runs: &[(Configuration, TierMeasured)], rows: &mut Vec<Row>) {
    for (configuration, TierMeasured { waits, .. }) in runs {
        let case = format!("{}, b = {}", configuration.name(), configuration.budget);
        let mut row = |metric, ns: u64| {
            let what = (metric, "s");
            let row = number("Figure 6.5a", case.clone(), what, None, ns as f64 / 1e9);
            rows.push(row.at("", "", (CONFIGURATION, configuration.name())));
        };
        row("flash reads", waits.flash_read_ns);
        row("flash writes", waits.flash_write_ns);
        row("disk reads", waits.home_read_ns);
        row("disk writes", waits.home_write_ns);
    }
}

/// Mean time of an operation, compared with its cost in the simulations (6.4.1).
fn means(runs: &[(Configuration, TierMeasured)], rows: &mut Vec<Row>) {
    for (configuration, TierMeasured { outcome, waits, .. }) in runs {
        let case = format!("{}, b = {}", configuration.name(), configuration.budget);
        let mut row = |metric, pages: u64, ns: u64, cost_ns: u64| {
            if pages > 0 {
                let (cost, mean) = (cost_ns as f64 / 1e6, ns as f64 / pages as f64 / 1e6);
                let case = case.clone();
                let row = number("Section 6.4.1", case, (metric, "ms"), Some(cost), mean);
                rows.push(row.at("", "", (CONFIGURATION, configuration.name())));
            }
        };
        let counts = &outcome.counts;
        let flash_writes = counts.flash_random_writes;
        row("flash read", counts.flash_reads, waits.flash_read_ns, COSTS.flash_read_ns);
        row("flash write", flash_writes, waits.flash_write_ns, COSTS.flash_random_write_ns);
        row("disk read", counts.disk_reads, waits.home_read_ns, COSTS.disk_ns);
        row("disk write", counts.disk_writes, waits.home_write_ns, COSTS.disk_ns);
    }
}

/// Figure 6.5b: the power of memory and flash during the execution time, as in table 6.1.
fn energy(runs: &[(Configuration, TierMeasured)], rows: &mut Vec<Row>) {
    for (configuration, measured) in runs {
        let case = format!("{}, b = {}", configuration.name(), configuration.budget);
        let power_w = configuration.power_w();
        let mut row = |what, measured| {
            let row = number("Figure 6.5b", case.clone(), what, None, measured);
            rows.push(row.at("", configuration.algorithm, (FLASH_PAGES, configuration.scale)));
        };
        row(("power of memory and flash", "mW"), power_w * 1e3);
        row(("energy", "J"), power_w * took_s(measured));
    }
}
