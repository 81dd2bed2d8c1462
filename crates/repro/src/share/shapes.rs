//! Statements of the paper about its figures, besides their numbers.
use super::super::Relation::{Above, Below, Falling, Within};
use super::super::{Row, Rows, Shape};
use super::postgres::{self, LOG_SAVED, OFF_OVER_ON, SHARE_OVER_ON, THROUGHPUT};

/// Figures 7 and 8: numerator and denominator.
const BY_BATCH: [(&str, &str, &str); 3] = [
    ("Figure 7a", "F", "SHARE over Original"),
    ("Figure 7b", "F", "Original over SHARE"),
    ("Figure 8", "A", "SHARE over Original"),
];

pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        figure: "Figure 5",
        claim: "SHARE does more than two times as many transactions as with the double write, at any size of buffer and page",
        expected: Above(2.0),
        measure: |rows| throughput(rows, "SHARE over DWB-On"),
    },
    Shape {
        figure: "Figure 5",
        claim: "SHARE is less than one percent from no double write, at any size of buffer and page",
        expected: Below(1.0),
        measure: |rows| throughput(rows, "SHARE beside DWB-Off"),
    },
    Shape {
        figure: "Figure 6",
        claim: "it saves more of the cleanings than of the writes, at each buffer",
        expected: Above(0.0),
        measure: |rows| savings(rows, |[writes, cleanings, _]| cleanings - writes),
    },
    Shape {
        figure: "Figure 6",
        claim: "it saves more of the copies than of the cleanings, at each buffer",
        expected: Above(0.0),
        measure: |rows| savings(rows, |[_, cleanings, copies]| copies - cleanings),
    },
    Shape {
        figure: "Figures 7 and 8",
        claim: "SHARE is ahead of the original with the smallest batch and with the largest",
        expected: Above(1.0),
        measure: |rows| by_batch(rows, |smallest, largest| vec![smallest, largest]),
    },
    Shape {
        figure: "Figures 7 and 8",
        claim: "it is further ahead with the smallest batch than with the largest",
        expected: Above(1.0),
        measure: |rows| by_batch(rows, |smallest, largest| vec![smallest / largest]),
    },
    Shape {
        figure: "Figure 7b",
        claim: "what SHARE writes is almost the same for every batch (section 5.3.2): the most over the least",
        expected: Below(1.5),
        measure: |rows| {
            let share = |row: &Row| row.case.ends_with(", SHARE");
            let written = rows.all("Figure 7b", share)?;
            let most = written.iter().copied().fold(f64::MIN, f64::max);
            Some(vec![most / written.iter().copied().fold(f64::MAX, f64::min)])
        },
    },
    Shape {
        figure: "Table 2",
        claim: "a compaction by SHARE gains more in bytes than in time, as it reads the documents",
        expected: Above(0.0),
        measure: |rows| {
            let time = "Couchbase, Original over SHARE, documents read";
            let times = rows.metric("Table 2", time, "compaction")?;
            let bytes = "Couchbase, Original over SHARE";
            Some(vec![rows.metric("Table 2", bytes, "bytes written by a compaction")? - times])
        },
    },
    Shape {
        figure: postgres::FIGURE,
        claim: "PostgreSQL does approximately twice as much without full-page writes (within a quarter), checkpoints being as far apart as it has them by itself",
        expected: Within(1.5, 2.5),
        measure: |rows| Some(vec![by_default(rows, OFF_OVER_ON, THROUGHPUT)?]),
    },
    Shape {
        figure: postgres::FIGURE,
        claim: "its log is shorter then by roughly as many pages as are written of data (within a quarter)",
        expected: Within(0.75, 1.25),
        measure: |rows| Some(vec![by_default(rows, OFF_OVER_ON, LOG_SAVED)?]),
    },
    Shape {
        figure: postgres::FIGURE,
        claim: "it gains by SHARE, too",
        expected: Above(1.0),
        measure: |rows| Some(vec![by_default(rows, SHARE_OVER_ON, THROUGHPUT)?]),
    },
    Shape {
        figure: postgres::FIGURE,
        claim: "full pages cost less the further checkpoints are apart, as they are of the first change of a page after one",
        expected: Falling,
        measure: |rows| {
            rows.all(postgres::FIGURE, |row| {
                row.metric == THROUGHPUT && postgres::is_off_over_on_beside_the_data(row)
            })
        },
    },
];

/// A number of PostgreSQL with its default settings.
fn by_default(rows: &Rows<'_>, what: &str, metric: &str) -> Option<f64> {
    rows.metric(postgres::FIGURE, &postgres::default_case(what), metric)
}

/// The rows of figures 5(a) and 5(b) with this comparison.
fn throughput(rows: &Rows<'_>, what: &str) -> Option<Vec<f64>> {
    let of = |figure| rows.all(figure, |row| row.case.ends_with(what));
    Some([of("Figure 5a")?, of("Figure 5b")?].concat())
}

/// The savings of writes, cleanings and copies, in percent, compared at each buffer size.
fn savings(rows: &Rows<'_>, compare: fn([f64; 3]) -> f64) -> Option<Vec<f64>> {
    let saved = |figure| rows.all(figure, |row| row.case.ends_with(", SHARE saves of DWB-On"));
    let (writes, cleanings, copies) =
        (saved("Figure 6a")?, saved("Figure 6b")?, saved("Figure 6c")?);
    let buffers = writes.iter().zip(cleanings).zip(copies);
    Some(
        buffers
            .map(|((writes, cleanings), copies)| compare([*writes, cleanings, copies]))
            .collect(),
    )
}

/// The ratios for batches of 1 and of 256, compared for figures 7(a), 7(b) and 8.
fn by_batch(rows: &Rows<'_>, compare: fn(f64, f64) -> Vec<f64>) -> Option<Vec<f64>> {
    let mut compared = Vec::new();
    for (figure, workload, over) in BY_BATCH {
        let of = |batch: u32| {
            rows.of(figure, &format!("Couchbase, workload {workload}, batch {batch}, {over}"))
        };
        compared.extend(compare(of(1)?, of(256)?));
    }
    Some(compared)
}

/// Not met at the small scale, nor at the full one: `docs/hosts.md` gives the reasons.
pub(crate) const NOT_MET_SMALL: &[&str] = &[
    "SHARE does more than two times as many transactions as with the double write, at any size of buffer and page",
    // For 10,000 operations; at full scale, with 40,000, they are within 0.8 percent.
    "SHARE is less than one percent from no double write, at any size of buffer and page",
];
