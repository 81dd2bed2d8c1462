use super::*;

/// The measured number of one case.
fn measured(rows: &[Row], figure: &str, case: &str) -> f64 {
    let found = rows.iter().find(|row| row.figure == figure && row.case == case);
    found.unwrap_or_else(|| panic!("no row {figure}, {case}")).measured
}

#[test]
fn the_tables_have_the_shape_of_the_papers() {
    let mut rows = Vec::new();
    run(Scale::Small, 1, &mut |_| {}, &mut rows).unwrap();
    let one = |case: &str| measured(&rows, "Table 1", case);
    // No fsync against one a write (section 2.3: 13 to 68 times, the disk at most 7).
    let gain = |device: &str| {
        one(&format!("{device}, no fsync")) / one(&format!("{device}, fsync every 1"))
    };
    for device in ["ssd-a, cache on", "ssd-b, cache on", "durassd, cache on"] {
        assert!((12.5..68.5).contains(&gain(device)), "{device}: {}", gain(device));
    }
    assert!((2.0..7.0).contains(&gain("disk, cache on")), "{}", gain("disk, cache on"));
    assert!((0.9..1.1).contains(&gain("durassd, cache on, no barrier")));
    // Fsyncs further apart cost less, wherever they cost.
    for device in ["disk, cache off", "disk, cache on", "ssd-a, cache on", "durassd, cache off"] {
        let every = [1, 8, 64].map(|writes| one(&format!("{device}, fsync every {writes}")));
        assert!(every[0] < every[1] && every[1] < every[2], "{device}: {every:?}");
        assert!(every[2] < 1.02 * one(&format!("{device}, no fsync")), "{device}");
    }
    // 4 KiB against 16 KiB (section 2.4).
    let sizes = |case: &str| {
        let of = |size: &str| measured(&rows, "Table 2", &format!("{case}, {size}"));
        of("4 KiB") / of("16 KiB")
    };
    for (case, expected) in [
        ("durassd, read-only, 128 threads", 2.7..3.3),
        ("durassd, write-only, fsync every 1", 1.05..1.25),
        ("durassd, write-only, 128 threads, no barrier", 3.3..4.1),
        ("disk, read-only, 128 threads", 1.0..1.08),
        ("disk, write-only, 128 threads", 1.0..1.08),
    ] {
        assert!(expected.contains(&sizes(case)), "{case}: {}", sizes(case));
    }
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let run = |seed| {
        let mut rows = Vec::new();
        table1::run(Scale::Small, seed, &mut |_| {}, &mut rows).unwrap();
        rows
    };
    assert_eq!(run(3), run(3));
}

/// Batches of 100 against 1: above 20 times with barriers, 2.1 to 2.6 without (section 4.3.3). Where half of the operations read, fewer
/// flush: `docs/devices/durassd.md` says what is odd about the paper's line.
#[test]
fn larger_batches_matter_where_flushes_cost() {
    let mut rows = Vec::new();
    table5::run(Scale::Small, 1, &mut |_| {}, &mut rows).unwrap();
    let of = |barrier: &str, mix: &str, what: &str| {
        measured(&rows, "Table 5", &format!("Couchbase, barrier {barrier}, {mix}, {what}"))
    };
    let larger = |barrier: &str, mix: &str| of(barrier, mix, "batch 100 over batch 1");
    assert!((15.0..30.0).contains(&larger("on", "update 100 %")));
    assert!(larger("on", "update 50 %") > 8.0);
    for mix in ["update 100 %", "update 50 %"] {
        assert!((1.5..5.0).contains(&larger("off", mix)), "{mix}: {}", larger("off", mix));
        let without = of("off", mix, "batch 1") / of("on", mix, "batch 1");
        assert!((5.0..20.0).contains(&without), "{mix}: {without} times without barriers");
        for barrier in ["on", "off"] {
            let by_batch =
                [1, 2, 5, 10, 100].map(|batch| of(barrier, mix, &format!("batch {batch}")));
            assert!(by_batch.is_sorted(), "{barrier}, {mix}: {by_batch:?}");
        }
    }
}

/// Section 4.3.1: best against worst above 20 times, double write off about 2 times with barriers and 1.25 without, small pages above 2
/// times without barriers. Barriers cost more here than in the paper, and 16 KiB as well: `docs/devices/durassd.md` says what is known of it.
#[test]
fn link_bench_gains_by_what_the_paper_leaves_out() {
    let mut rows = Vec::new();
    link_bench::run(Scale::Small, 1, &mut |_| {}, &mut rows).unwrap();
    let times = |case: &str, expected: std::ops::Range<f64>| {
        let figure = if case.ends_with("P99") { "Table 3" } else { "Figure 5" };
        let times = measured(&rows, figure, case);
        assert!(expected.contains(&times), "{case}: {times}");
    };
    times("OFF/OFF with 4 KiB over ON/ON with 16 KiB", 20.0..50.0);
    times("barriers off over on, 4 KiB, double write on", 6.0..35.0);
    times("barriers off over on, 4 KiB, double write off", 6.0..30.0);
    times("double write off over on, 4 KiB, barriers on", 1.5..2.4);
    times("double write off over on, 4 KiB, barriers off", 1.15..1.7);
    times("4 KiB over 16 KiB, OFF/OFF", 2.0..14.0);
    for operation in ["ADD_NODE", "UPDATE_NODE", "ADD_LINK"] {
        let case = format!("ON/ON, 16 KiB over OFF/OFF, 4 KiB, {operation}, P99");
        times(&case, 20.0..200.0);
    }
    let missed = |size: &str, percent: u32| {
        let case = format!("OFF/OFF, {size}, buffer of {percent} %");
        measured(&rows, "Figure 6a", &case)
    };
    assert!(missed("4 KiB", 10) < missed("4 KiB", 7));
    assert!(missed("4 KiB", 10) < missed("16 KiB", 10));
}
