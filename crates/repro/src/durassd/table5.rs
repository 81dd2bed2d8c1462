//! Table 5: Couchbase under YCSB's workload A and under updates alone, with an fsync after every N updates.
//!
//! The paper's 100 GB on a drive of 480 GB are scaled down with the drive; keys are long enough that the tree has the paper's
//! depth of four with fewer documents. The drive holds nothing else, so no cleaning occurs.
use tantalum_base::Result;
use tantalum_hosts::docstore::Mode;
use tantalum_hosts::workload::ycsb::{Mix, RecordOptions, Workload, YcsbOptions};
use tantalum_runtime::Virtual;

use super::super::documents::{Documents, Setup};
use super::super::journal::Journal;
use super::super::{Progress, Row, Scale};

/// The columns: updates per fsync.
const BATCHES: [u32; 5] = [1, 2, 5, 10, 100];
const LAST: usize = BATCHES.len() - 1;

/// A line of the table.
struct Line {
    case: &'static str,
    mix: Mix,
    paper: [u32; 5],
}

/// One of its two parts.
struct Part {
    barrier: &'static str,
    lines: [Line; 2],
}

const UPDATES: Mix = Mix { read: 0, update: 100, insert: 0, scan: 0, read_modify_write: 0 };
const HALF: Mix = Mix { read: 50, update: 50, insert: 0, scan: 0, read_modify_write: 0 };

const PARTS: [Part; 2] = [
    Part {
        barrier: "on",
        lines: [
            Line { case: "update 100 %", mix: UPDATES, paper: [206, 398, 988, 1_954, 4_692] },
            Line { case: "update 50 %", mix: HALF, paper: [195, 390, 1_400, 2_041, 4_921] },
        ],
    },
    Part {
        barrier: "off",
        lines: [
            Line { case: "update 100 %", mix: UPDATES, paper: [2_404, 3_464, 3_826, 4_959, 5_101] },
            Line { case: "update 50 %", mix: HALF, paper: [2_406, 3_464, 4_209, 5_461, 6_208] },
        ],
    },
];

/// Sizes of a run.
struct Size {
    /// The capacity of the drive.
    capacity: &'static str,
    documents: u64,
    key_bytes: usize,
    journal_pages: u64,
    operations: u64,
}

impl Size {
    fn of(scale: Scale) -> Size {
        match scale {
            Scale::Small => Size {
                capacity: "256MiB",
                documents: 40_000,
                key_bytes: 112,
                journal_pages: 1_024,
                operations: 400,
            },
            // 100 of 480 GB.
            Scale::Full | Scale::Paper => Size {
                capacity: "2GiB",
                documents: 437_000,
                key_bytes: 48,
                journal_pages: 8_192,
                operations: 10_000,
            },
        }
    }
}

/// Measures both parts.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    for part in &PARTS {
        progress(&format!("Couchbase, barrier {}", part.barrier));
        let measured = measure(part, scale, seed)?;
        for (line, measured) in part.lines.iter().zip(measured) {
            rows.extend(line.rows(part.barrier, measured));
        }
    }
    Ok(())
}

/// Throughput of each line, by batch size.
fn measure(part: &'static Part, scale: Scale, seed: u64) -> Result<[[f64; 5]; 2]> {
    let what = format!("Couchbase, barrier {}", part.barrier);
    Virtual::alone(what, move |runtime| async move {
        let size = Size::of(scale);
        let setup = Setup {
            device: format!("durassd:capacity={},barrier={}", size.capacity, part.barrier),
            journal: (Journal::OneRecord, size.journal_pages),
            mode: Mode::Original,
            records: RecordOptions {
                key_bytes_min: size.key_bytes,
                ..RecordOptions::new(size.documents)
            },
            seed,
        };
        let documents = Documents::load(&runtime, setup).await?;
        let mut throughputs = [[0.0; 5]; 2];
        for (line, throughputs) in part.lines.iter().zip(&mut throughputs) {
            for (batch, throughput) in BATCHES.iter().zip(throughputs) {
                let load = YcsbOptions::new(Workload::A, size.operations, seed);
                let load = YcsbOptions { mix: line.mix, ..load };
                *throughput = documents.measure(load, *batch).await?.throughput;
            }
        }
        Ok(throughputs)
    })
}

impl Line {
    fn rows(&self, barrier: &str, measured: [f64; 5]) -> Vec<Row> {
        let case = format!("Couchbase, barrier {barrier}, {}", self.case);
        let mut rows = Vec::new();
        for (at, batch) in BATCHES.iter().enumerate() {
            let paper = Some(f64::from(self.paper[at]));
            let of = format!("{case}, batch {batch}");
            let row = Row::new("Table 5", of, ("throughput", "OPS"), paper, measured[at]);
            let panel = format!("barrier {barrier}");
            rows.push(row.at(panel, self.case, ("updates per fsync", *batch)));
        }
        let paper = f64::from(self.paper[LAST]) / f64::from(self.paper[0]);
        let times = measured[LAST] / measured[0];
        let of = format!("{case}, batch 100 over batch 1");
        rows.push(Row::new("Table 5", of, ("throughput", "times"), Some(paper), times));
        rows
    }
}
