//! What runs on devices come to beside the costs of the simulations, at the small scale.
use tantalum_replay::tier_replay::TierMeasured;

use super::super::{Row, Scale};
use super::architecture::{BUDGETS, COSTS, seconds};
use super::load::bank;
use super::measured::{self, HOME, took_s};

/// The number of `metric` in the one row whose case begins so.
fn of(rows: &[Row], figure: &str, case: &str, metric: &str) -> f64 {
    let found: Vec<&Row> = rows
        .iter()
        .filter(|row| row.figure == figure && row.case.starts_with(case) && row.metric == metric)
        .collect();
    assert_eq!(found.len(), 1, "{figure}, {case}, {metric}: {found:?}");
    found[0].measured
}

const SCALES: [u32; 4] = [2, 4, 6, 8];

/// The curves of figure 6.4 beside those of figure 6.2.
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
            // Flash takes longer than its costs: its reads meet programs.
            let dearer_s = dearer_flash_s(measured);
            assert!(dearer_s > 0.0 && dearer_s < 0.15 * measured_s, "{case}: {dearer_s} s");
            // With the costs of flash more is saved than by all of the costs, as writes home are cheaper than theirs.
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

/// By how much operations of flash took longer than the simulations' costs of them.
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

/// Beside the costs of section 6.4.1.
fn what_operations_take(rows: &[Row]) {
    let mean = |metric| of(rows, "Section 6.4.1", "LOC, s = 8, b = 4000", metric);
    let reads = mean("disk read");
    assert!((4.0..5.0).contains(&reads), "{reads} ms: a seek and half a turn");
    assert!(mean("disk write") < 0.6 * reads, "the disk's cache sorts what goes home at the end");
    // Two pages of 4 KiB: the data sheet's 115 us and the second transfer, and no more than that while the cache has room.
    assert!((0.131..0.14).contains(&mean("flash write")), "{} ms", mean("flash write"));
    // They take 0.1 ms of an idle drive, and meet programs of up to 1.44.
    assert!((0.1..0.4).contains(&mean("flash read")), "{} ms", mean("flash read"));
    for case in ["bank, 2TA, b = 4000", "bank, LOC, s = 8, b = 4000"] {
        let time = |metric| of(rows, "Figure 6.4", case, metric);
        let without = time("execution time without the disk's cache");
        let apart = (without / time("virtual execution time") - 1.0).abs();
        assert!(apart < 0.1, "{case}: {without}");
        assert!(without > 1.05 * time("execution time"), "{case}: {without}");
    }
}
