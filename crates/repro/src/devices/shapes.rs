//! The data sheets' statements about the devices, and the agreement that is required.
use super::super::Relation::{Above, Below, Rising, Within};
use super::super::{Row, Rows, Shape};
use super::PAGE_BYTES;

const SHEETS: &str = "data sheets";
const SWEEP: &str = "MTRON, free parameters";

/// The value of a metric of a device, with any number of requests in flight.
fn of(rows: &Rows<'_>, device: &str, metric: &str) -> Option<f64> {
    let is_it =
        |row: &&Row| row.figure == SHEETS && row.case.starts_with(device) && row.metric == metric;
    rows.0.iter().find(is_it).map(|row| row.measured)
}

/// Pages written sequentially over pages written at random, in the same time.
fn gap(rows: &Rows<'_>, device: &str) -> Option<Vec<f64>> {
    let in_order = of(rows, device, "sequential write")? * 1e6 / PAGE_BYTES as f64;
    Some(vec![in_order / of(rows, device, "random write")?])
}

fn swept(rows: &Rows<'_>, point: &str) -> Option<f64> {
    rows.metric(SWEEP, &format!("mtron, {point}"), "random write")
}

pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        figure: SHEETS,
        claim: "what is published is met within 10 %: measured over published",
        expected: Within(0.9, 1.1),
        measure: |rows| {
            let of_sheets = rows.0.iter().filter(|row| row.figure == SHEETS);
            let ratios: Vec<f64> = of_sheets.filter_map(Row::ratio).collect();
            (!ratios.is_empty()).then_some(ratios)
        },
    },
    Shape {
        figure: SHEETS,
        claim: "log blocks have the weakness: more than a hundred pages in order in the time of one at random",
        expected: Above(100.0),
        measure: |rows| gap(rows, "mtron"),
    },
    Shape {
        figure: SHEETS,
        claim: "a page map has none of it: fewer than ten pages in order in the time of one at random",
        expected: Below(10.0),
        measure: |rows| gap(rows, "x25-m"),
    },
    Shape {
        figure: SWEEP,
        claim: "the device is a point of its own sweep: random writes there over its own",
        expected: Within(1.0, 1.0),
        measure: |rows| Some(vec![swept(rows, "logs=16")? / of(rows, "mtron, 1", "random write")?]),
    },
    Shape {
        figure: SWEEP,
        claim: "smaller blocks make random writes faster",
        expected: Rising,
        measure: |rows| {
            ["block=32", "logs=16", "block=8"].map(|point| swept(rows, point)).into_iter().collect()
        },
    },
];
