//! The shapes of the figures on a trace that is made up, so that they are the same wherever the tests run.
use super::super::Row;
use super::load::Load;
use super::{architecture, native, write_cache};

/// TPC-C's transactions on a tenth of the paper's pages or so.
fn tpcc() -> Load {
    Load::made_up("TPC-C", "tpcc:warehouses=2,transactions=20k", 400_000, 16)
}

/// The number of `metric` in the one row whose case begins so.
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
    let rows = write_cache::of(&tpcc(), &mut |_| ()).unwrap();
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

#[test]
fn three_tiers_are_faster_than_two_of_the_same_cost_and_take_less_energy() {
    let rows = architecture::of("Figure 6.1", &tpcc(), &mut |_| ()).unwrap();
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

#[test]
fn native_use_collects_less_and_hits_a_little_less() {
    let rows = native::of(&tpcc(), (0.02216, 0.13079), &mut |_| ()).unwrap();
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
