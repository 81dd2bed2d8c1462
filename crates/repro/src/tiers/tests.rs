//! The numbers of the figures on generated loads, so that they are the same wherever the tests run: tighter bounds than those
//! of the shapes, and runs on devices compared with the costs of the simulations.
use tantalum_replay::tier_replay::TierMeasured;

use super::super::{Row, Scale};
use super::architecture::{self, BUDGETS, COSTS, seconds};
use super::load::{Load, bank, tpcc_in_place_of};
use super::measured::{self, HOME, took_s};
use super::{native, write_cache};

/// TPC-C's transactions on about a tenth of the paper's pages.
fn tpcc() -> Load {
    Load::made_up("TPC-C", "tpcc:warehouses=2,transactions=20k", 400_000, 16).unwrap()
}

/// The number of `metric` in the one row whose case begins like this.
fn of(rows: &[Row], figure: &str, case: &str, metric: &str) -> f64 {
    let found: Vec<&Row> = rows
        .iter()
        .filter(|row| row.figure == figure && row.case.starts_with(case) && row.metric == metric)
        .collect();
    assert_eq!(found.len(), 1, "{figure}, {case}, {metric}: {found:?}");
    found[0].measured
}

#[test]
fn a_write_cache_admits_writes_and_writes_as_its_device_likes_it() {
    let mut rows = Vec::new();
    write_cache::of(&tpcc(), &mut |_| (), &mut rows).unwrap();
    let time = "virtual execution time";
    for pages in [62, 250, 1_000] {
        let time = |name| of(&rows, "Figure 6", &format!("{name}, {pages} pages"), time);
        assert!(time("AOW") < time("AOR"), "{pages} pages");
    }
    let time = |case| of(&rows, "Figure 7", case, time);
    assert!(time("RCW, high-end, 1000 pages") < time("SCW, high-end, 1000 pages"));
    assert!(time("SCW, low-end, 1000 pages") < 0.8 * time("RCW, low-end, 1000 pages"));
    let seeks = |case| of(&rows, "Figure 8", case, "seeks");
    assert!(seeks("LRU, CF, ") < 95.0 && seeks("LRU, CF+PB") < seeks("LRU, CF, "));
}

/// Section 4: a pool of 10,000 pages and a cache of 4,000 over 100 warehouses; the small load has two.
#[test]
fn the_write_cache_is_as_large_beside_a_warehouse_as_in_the_paper() {
    let load = tpcc_in_place_of(100, Scale::Small).unwrap();
    assert_eq!([10_000, 4_000].map(|pages| load.pages(pages)), [200, 80]);
}

#[test]
fn three_tiers_are_faster_than_two_of_the_same_cost_and_take_less_energy() {
    let mut rows = Vec::new();
    architecture::of("Figure 6.1", &tpcc(), &mut |_| (), &mut rows).unwrap();
    for (budget, least) in [(62, 10.0), (250, 30.0), (1_000, 50.0)] {
        for algorithm in ["GLB", "LOC"] {
            let case = format!("TPC-C, {algorithm}, s = 8, b = {budget}");
            let saved = of(&rows, "Figure 6.1", &case, "time saved against two tiers");
            assert!(saved > least, "{case}: {saved}");
        }
    }
    let table = |case, metric| of(&rows, "Table 6.1", case, metric);
    assert!((table("LOC, s = 8", "power of memory and flash") * 16.0 - 0.865).abs() < 0.05);
    assert!(table("LOC, s = 8", "energy") < 25.0);
}

const SCALES: [u32; 4] = [2, 4, 6, 8];

/// The curves of figure 6.4 compared with those of figure 6.2.
#[test]
fn on_devices_the_curves_are_those_of_the_costs() {
    let (load, mut rows) = (bank(Scale::Small).unwrap(), Vec::new());
    let mut longer_s = f64::INFINITY;
    for budget in BUDGETS {
        let runs = measured::run(&load, budget, HOME, 1).unwrap();
        measured::figures(&load, budget, &runs, 1, &mut rows).unwrap();
        let (two_s, two_weighed_s) = (took_s(&runs[0].1), seconds(&runs[0].1.outcome));
        assert!(two_s < longer_s, "two tiers, b = {budget}: {two_s} and {longer_s}");
        longer_s = two_s;
        let mut saved = Vec::new();
        for (configuration, measured) in &runs[1..] {
            let case = format!("{}, b = {budget}", configuration.name());
            let percent = |three_s: f64, two_s: f64| 100.0 * (1.0 - three_s / two_s);
            let measured_s = took_s(measured);
            let weighed = percent(seconds(&measured.outcome), two_weighed_s);
            // Flash takes longer than its costs assume: its reads meet programs.
            let dearer_s = dearer_flash_s(measured);
            assert!(dearer_s > 0.0 && dearer_s < 0.15 * measured_s, "{case}: {dearer_s} s");
            // With the assumed costs of flash, more is saved than with all assumed costs, as writes home are cheaper than
            // theirs.
            let with_its_costs = percent(measured_s - dearer_s, two_s);
            let range = weighed..weighed + 13.0;
            assert!(range.contains(&with_its_costs), "{case}: {with_its_costs} and {weighed}");
            saved.push((weighed, percent(measured_s, two_s), case));
        }
        saved.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, less) in saved.iter().enumerate() {
            for more in saved[at..].iter().filter(|more| more.0 > less.0 + 1.5) {
                assert!(more.1 > less.1, "{less:?} and {more:?}");
            }
        }
    }
    where_all_is_cached(&rows);
    what_operations_take(&rows);
}

/// The time by which flash operations exceeded the simulations' costs of them.
fn dearer_flash_s(measured: &TierMeasured) -> f64 {
    let (counts, waits) = (&measured.outcome.counts, &measured.waits);
    let reads_ns = counts.flash_reads * COSTS.flash_read_ns;
    let writes_ns = counts.flash_random_writes * COSTS.flash_random_write_ns;
    let took_ns = waits.flash_read_ns + waits.flash_write_ns;
    (took_ns as f64 - (reads_ns + writes_ns) as f64) / 1e9
}

/// With the largest budget, memory and flash hold all pages already for s = 2 (section 6.4.2).
fn where_all_is_cached(rows: &[Row]) {
    for algorithm in ["GLB", "LOC"] {
        let (mut before, mut disk) = (None::<[f64; 4]>, Vec::new());
        for scale in SCALES {
            let case = format!("{algorithm}, s = {scale}, b = 4000");
            let spent = |metric| of(rows, "Figure 6.5a", &case, metric);
            let [flash_reads, flash_writes, reads, writes] =
                ["flash reads", "flash writes", "disk reads", "disk writes"].map(spent);
            let time = of(rows, "Figure 6.4", &format!("bank, {case}"), "execution time");
            let computed = 60_000.0 * 10e-6;
            let parts = flash_reads + flash_writes + reads + writes + computed;
            assert!((time - parts).abs() < 1e-6, "{case}: {time} and {parts}");
            let energy = of(rows, "Figure 6.5b", &case, "energy");
            let power = of(rows, "Figure 6.5b", &case, "power of memory and flash");
            assert!((energy - time * power / 1e3).abs() < 1e-9, "{case}: {energy}");
            let now = [time, flash_reads, flash_writes, -energy];
            if let Some(before) = before.replace(now) {
                let grows = before.iter().zip(now).all(|(before, now)| now > *before);
                assert!(grows, "{case}: {now:?} after {before:?}");
            }
            disk.push(reads + writes);
        }
        let (least, most) = disk
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), time| (least.min(*time), most.max(*time)));
        assert!(most < 1.02 * least, "the disk is asked for the same: {disk:?}");
    }
}

/// Compared with the costs of section 6.4.1.
fn what_operations_take(rows: &[Row]) {
    let mean = |metric| of(rows, "Section 6.4.1", "LOC, s = 8, b = 4000", metric);
    let reads = mean("disk read");
    assert!((4.0..5.0).contains(&reads), "{reads} ms: a seek and half a turn");
    assert!(mean("disk write") < 0.6 * reads, "the disk's cache sorts what goes home at the end");
    // Two pages of 4 KiB: the data sheet's 115 us and the second transfer, and no more as long as the cache has room.
    assert!((0.131..0.14).contains(&mean("flash write")), "{} ms", mean("flash write"));
    // They take 0.1 ms on an idle drive, and meet programs of up to 1.44.
    assert!((0.1..0.4).contains(&mean("flash read")), "{} ms", mean("flash read"));
    for case in ["bank, 2TA, b = 4000", "bank, LOC, s = 8, b = 4000"] {
        let time = |metric| of(rows, "Figure 6.4", case, metric);
        let without = time("execution time without the disk's cache");
        let apart = (without / time("virtual execution time") - 1.0).abs();
        assert!(apart < 0.1, "{case}: {without}");
        assert!(without > 1.05 * time("execution time"), "{case}: {without}");
    }
}

#[test]
fn native_use_collects_less_and_hits_a_little_less() {
    let mut rows = Vec::new();
    native::of(&tpcc(), native::Beside::Highest(0.02216, 0.13079), &mut |_| (), &mut rows).unwrap();
    let of_tpcc = |name, metric| of(&rows, "Figure 7.6", &format!("TPC-C, {name}"), metric);
    let gain =
        |than| of(&rows, "Figure 7.5", &format!("TPC-C, NFA over {than}"), "throughput gained");
    assert!(gain("BL") > 15.0 && gain("LPD") > 0.0, "{} and {}", gain("BL"), gain("LPD"));
    assert!(of(&rows, "Figure 7.6", "TPC-C, BL over NFA", "garbage collections") > 2.0);
    let (nfa, bl) = (of_tpcc("NFA", "hit ratio"), of_tpcc("BL", "hit ratio"));
    assert!(nfa < bl && nfa > 0.85 * bl, "{nfa} and {bl}");
    let lazy = |metric| of(&rows, "Beyond", "TPC-C, lazy:keep=0.7", metric);
    assert!(lazy("virtual execution time") < 100.0 && lazy("garbage collections") < 75.0);
    let least = of(&rows, "Beyond", "TPC-C, lower bound", "virtual execution time");
    assert!(least > 20.0 && least < lazy("virtual execution time"), "{least}");
}
