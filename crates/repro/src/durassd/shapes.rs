//! Statements of the paper about its tables, besides the numbers.
use tantalum_hosts::workload::link_bench::Operation;

use super::super::Relation::{Above, Below, Falling, Rising, Within};
use super::super::{Rows, Shape};

/// The lines of table 1 in which an fsync has something to wait for.
const FSYNC_COSTS: [&str; 6] = [
    "disk, cache off",
    "disk, cache on",
    "ssd-a, cache on",
    "ssd-b, cache on",
    "durassd, cache off",
    "durassd, cache on",
];

pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        figure: "Table 1",
        claim: "without fsyncs an SSD with its cache writes 13 to 68 times as much as with one a write (section 2.3)",
        expected: Within(12.5, 68.5),
        measure: |rows| {
            let devices = ["ssd-a, cache on", "ssd-b, cache on", "durassd, cache on"];
            devices.map(|device| without_fsync(rows, device)).into_iter().collect()
        },
    },
    Shape {
        figure: "Table 1",
        claim: "a disk with its cache writes at most 7 times as much without fsyncs (section 2.3)",
        expected: Within(2.0, 7.0),
        measure: |rows| Some(vec![without_fsync(rows, "disk, cache on")?]),
    },
    Shape {
        figure: "Table 1",
        claim: "without barriers fsyncs cost DuraSSD nothing",
        expected: Within(0.9, 1.1),
        measure: |rows| Some(vec![without_fsync(rows, "durassd, cache on, no barrier")?]),
    },
    Shape {
        figure: "Table 1",
        claim: "with one fsync a write DuraSSD without barriers is more than an order of magnitude ahead",
        expected: Above(10.0),
        measure: |rows| {
            let (with, without) = ("durassd, cache on", "durassd, cache on, no barrier");
            let case = |device| format!("{device}, fsync every 1");
            Some(vec![rows.over("Table 1", &case(without), &case(with))?])
        },
    },
    Shape {
        figure: "Table 1",
        claim: "fsyncs further apart (1, 8, 64 writes) cost less, wherever they cost",
        expected: Above(1.0),
        measure: |rows| {
            let mut times = Vec::new();
            for device in FSYNC_COSTS {
                let every = |writes| format!("{device}, fsync every {writes}");
                times.push(rows.over("Table 1", &every(8), &every(1))?);
                times.push(rows.over("Table 1", &every(64), &every(8))?);
            }
            Some(times)
        },
    },
    Shape {
        figure: "Table 2",
        claim: "about three times as many pages of 4 KiB as of 16 KiB are read, and with rare fsyncs written (section 2.4)",
        expected: Within(2.5, 4.0),
        measure: |rows| {
            [
                "read-only, 128 threads",
                "write-only, fsync every 256",
                "write-only, 128 threads, no barrier",
            ]
            .map(|case| smaller(rows, &format!("durassd, {case}")))
            .into_iter()
            .collect()
        },
    },
    Shape {
        figure: "Table 2",
        claim: "with an fsync each write pages of 4 KiB are only about 15 % ahead of 16 KiB (section 2.4)",
        expected: Within(1.05, 1.25),
        measure: |rows| Some(vec![smaller(rows, "durassd, write-only, fsync every 1")?]),
    },
    Shape {
        figure: "Table 2",
        claim: "on a disk pages of 4 KiB are about four percent ahead of 16 KiB (section 2.4)",
        expected: Within(1.0, 1.08),
        measure: |rows| {
            ["disk, read-only, 128 threads", "disk, write-only, 128 threads"]
                .map(|case| smaller(rows, case))
                .into_iter()
                .collect()
        },
    },
    Shape {
        figure: "Figure 5",
        claim: "the best configuration is more than 20 times as fast as the worst (section 4.3.1)",
        expected: Above(20.0),
        measure: |rows| link_bench(rows, &["OFF/OFF with 4 KiB over ON/ON with 16 KiB"]),
    },
    Shape {
        figure: "Figure 5",
        claim: "without barriers pages of 4 KiB are more than twice as fast as those of 16 KiB (section 4.3.1)",
        expected: Above(2.0),
        measure: |rows| link_bench(rows, &["4 KiB over 16 KiB, OFF/OFF"]),
    },
    Shape {
        figure: "Figure 5",
        claim: "leaving the double write out gains more where there are barriers (2 and 1.25 times, section 4.3.1)",
        expected: Falling,
        measure: |rows| {
            let off_over_on = "double write off over on, 4 KiB, barriers";
            link_bench(rows, &["on", "off"].map(|barriers| format!("{off_over_on} {barriers}")))
        },
    },
    Shape {
        figure: "Figure 6",
        claim: "smaller pages have the lower miss ratio, at each buffer",
        expected: Below(1.0),
        measure: |rows| smaller_pages_miss(rows),
    },
    Shape {
        figure: "Figure 6",
        claim: "throughput grows with the buffer, at each size of a page",
        expected: Above(1.0),
        measure: |rows| {
            let times = |size| {
                let case = |percent| format!("OFF/OFF, {size}, buffer of {percent} %");
                rows.over("Figure 6b", &case(10), &case(7))
            };
            ["4 KiB", "16 KiB"].map(times).into_iter().collect()
        },
    },
    Shape {
        figure: "Table 3",
        claim: "P99 of what writes is more than an order of magnitude lower in the best configuration than in the worst",
        expected: Above(10.0),
        measure: |rows| p99_gains(rows, |operation| WRITES.contains(operation)),
    },
    Shape {
        figure: "Table 3",
        claim: "P99 of what reads is more than an order of magnitude lower in the best configuration than in the worst",
        expected: Above(10.0),
        measure: |rows| p99_gains(rows, |operation| !WRITES.contains(operation)),
    },
    Shape {
        figure: "Table 4",
        claim: "TPC-C without barriers is an order of magnitude ahead of a barrier for each page that is written",
        expected: Within(7.0, 30.0),
        measure: |rows| {
            ["16 KiB", "8 KiB", "4 KiB"]
                .map(|size| rows.of("Table 4", &format!("TPC-C, {size}, barrier off over on")))
                .into_iter()
                .collect()
        },
    },
    Shape {
        figure: "Table 4",
        claim: "pages of 4 KiB are ahead of 16 KiB, with barriers and without",
        expected: Above(1.0),
        measure: smaller_pages_of_tpcc,
    },
    Shape {
        figure: "Table 4",
        claim: "pages of 4 KiB gain more where there are no barriers (1.8 and 2.3 times, section 4.3.2)",
        expected: Rising,
        measure: smaller_pages_of_tpcc,
    },
    Shape {
        figure: "Table 5",
        claim: "with barriers a batch of 100 is more than 20 times as fast as one of 1 (section 4.3.3)",
        expected: Above(20.0),
        measure: |rows| larger_batches(rows, "on"),
    },
    Shape {
        figure: "Table 5",
        claim: "without barriers a batch of 100 is 2.1 to 2.6 times as fast as one of 1 (section 4.3.3)",
        expected: Within(2.05, 2.65),
        measure: |rows| larger_batches(rows, "off"),
    },
    Shape {
        figure: "Table 5",
        claim: "with batches of 1 no barriers are an order of magnitude ahead of barriers",
        expected: Within(5.0, 20.0),
        measure: |rows| {
            MIXES
                .map(|mix| {
                    let case = |barrier| format!("Couchbase, barrier {barrier}, {mix}, batch 1");
                    rows.over("Table 5", &case("off"), &case("on"))
                })
                .into_iter()
                .collect()
        },
    },
    Shape {
        figure: "Table 5",
        claim: "each larger batch is faster",
        expected: Above(1.0),
        measure: |rows| {
            let mut times = Vec::new();
            for barrier in ["on", "off"] {
                for mix in MIXES {
                    let case =
                        |batch| format!("Couchbase, barrier {barrier}, {mix}, batch {batch}");
                    for pair in [1, 2, 5, 10, 100].windows(2) {
                        times.push(rows.over("Table 5", &case(pair[1]), &case(pair[0]))?);
                    }
                }
            }
            Some(times)
        },
    },
];

const MIXES: [&str; 2] = ["update 100 %", "update 50 %"];

/// Table 1: no fsync over one each write.
fn without_fsync(rows: &Rows<'_>, device: &str) -> Option<f64> {
    rows.over("Table 1", &format!("{device}, no fsync"), &format!("{device}, fsync every 1"))
}

/// Table 2: 4 KiB over 16 KiB.
fn smaller(rows: &Rows<'_>, case: &str) -> Option<f64> {
    rows.over("Table 2", &format!("{case}, 4 KiB"), &format!("{case}, 16 KiB"))
}

/// The operations of LinkBench that change something.
const WRITES: [Operation; 6] = {
    use Operation::*;
    [AddNode, DeleteNode, UpdateNode, AddLink, DeleteLink, UpdateLink]
};

/// Figure 5: the ratios of these cases.
fn link_bench(rows: &Rows<'_>, cases: &[impl AsRef<str>]) -> Option<Vec<f64>> {
    cases.iter().map(|case| rows.of("Figure 5", case.as_ref())).collect()
}

/// Figure 6a: the miss ratio with 4 KiB over that with 16 KiB, by buffer.
fn smaller_pages_miss(rows: &Rows<'_>) -> Option<Vec<f64>> {
    let times = |percent| {
        let case = |size| format!("OFF/OFF, {size}, buffer of {percent} %");
        rows.over("Figure 6a", &case("4 KiB"), &case("16 KiB"))
    };
    [7, 10].map(times).into_iter().collect()
}

/// Table 3: P99 of the worst configuration over the best one's.
fn p99_gains(rows: &Rows<'_>, counts: impl Fn(&Operation) -> bool) -> Option<Vec<f64>> {
    let gain = |operation: &Operation| {
        let case = format!("ON/ON, 16 KiB over OFF/OFF, 4 KiB, {}, P99", operation.name());
        rows.of("Table 3", &case)
    };
    Operation::ALL.iter().filter(|operation| counts(operation)).map(gain).collect()
}

/// Table 4: 4 KiB over 16 KiB, with barriers and without.
fn smaller_pages_of_tpcc(rows: &Rows<'_>) -> Option<Vec<f64>> {
    ["on", "off"]
        .map(|barrier| rows.of("Table 4", &format!("TPC-C, barrier {barrier}, 4 KiB over 16 KiB")))
        .into_iter()
        .collect()
}

/// Table 5: batches of 100 over batches of 1.
fn larger_batches(rows: &Rows<'_>, barrier: &str) -> Option<Vec<f64>> {
    let case = |mix| format!("Couchbase, barrier {barrier}, {mix}, batch 100 over batch 1");
    MIXES.map(|mix| rows.of("Table 5", &case(mix))).into_iter().collect()
}

/// Not met at the small scale (`docs/devices/durassd.md`): with pages of 4 KiB the larger buffer is 4 percent behind, as nine
/// requests in ten are hits with either; and batches of 100 are 14 to 15 times as fast as one with barriers, and updates 3.0 times
/// without.
pub(crate) const NOT_MET_SMALL: &[&str] = &[
    "throughput grows with the buffer, at each size of a page",
    "with barriers a batch of 100 is more than 20 times as fast as one of 1 (section 4.3.3)",
    "without barriers a batch of 100 is 2.1 to 2.6 times as fast as one of 1 (section 4.3.3)",
];
