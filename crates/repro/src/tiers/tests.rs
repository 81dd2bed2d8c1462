//! What runs on devices come to beside the costs of the simulations, at the small scale.
use super::super::{Row, Scale};
use super::load::bank;
use super::measured;

/// The number of `metric` in the one row whose case begins so.
fn of(rows: &[Row], figure: &str, case: &str, metric: &str) -> f64 {
    let found: Vec<&Row> = rows
        .iter()
        .filter(|row| row.figure == figure && row.case.starts_with(case) && row.metric == metric)
        .collect();
    assert_eq!(found.len(), 1, "{figure}, {case}, {metric}: {found:?}");
    found[0].measured
}

/// Budgets of 1,000 to 32,000 pages, as the small scale has them.
const BUDGETS: [u32; 6] = [125, 250, 500, 1_000, 2_000, 4_000];
const SCALES: [u32; 4] = [2, 4, 6, 8];

/// The curves of figure 6.4 beside those of figure 6.2.
#[test]
fn on_devices_the_curves_are_those_of_the_costs() {
    let mut rows = Vec::new();
    measured::of(&bank(Scale::Small).unwrap(), 1, &mut |_| (), &mut rows).unwrap();
    let figure = |case: &str, metric| of(&rows, "Figure 6.4", case, metric);
    let mut longer_s = f64::INFINITY;
    for budget in BUDGETS {
        let two_s = figure(&format!("bank, 2TA, b = {budget}"), "execution time");
        assert!(two_s < longer_s, "two tiers, b = {budget}: {two_s} and {longer_s}");
        longer_s = two_s;
        let mut saved = Vec::new();
        for algorithm in ["GLB", "LOC"] {
            for scale in SCALES {
                let case = format!("bank, {algorithm}, s = {scale}, b = {budget}");
                let measured = figure(&case, "time saved against two tiers");
                let weighed = figure(&case, "virtual time saved against two tiers");
                // Flash is at most a tenth of the time, and writes home are cheaper than their cost.
                assert!(weighed < measured && measured < weighed + 13.0, "{case}: {measured}");
                saved.push((weighed, measured, case));
            }
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
    assert!(mean("flash read") > 0.09 && mean("flash write") < 0.12);
    for case in ["bank, 2TA, b = 4000", "bank, LOC, s = 8, b = 4000"] {
        let time = |metric| of(rows, "Figure 6.4", case, metric);
        let without = time("execution time without the disk's cache");
        let apart = (without / time("virtual execution time") - 1.0).abs();
        assert!(apart < 0.1, "{case}: {without}");
        assert!(without > 1.05 * time("execution time"), "{case}: {without}");
    }
}
