//! Figures 7 and 8 and table 2: Couchbase under YCSB's workloads F and A, and its compaction (section 5.3.2).
//!
//! The paper's 250,000 documents of 4 KB on the drive of 4 GB. Each mode has a drive of its own, which is aged by the load itself;
//! figures 7 and 8 are measured on newly compacted files, and contain no compaction.
use tantalum_base::Result;
use tantalum_hosts::docstore::Mode;
use tantalum_hosts::workload::ycsb::{Mix, RecordOptions, Workload, YcsbOptions};
use tantalum_runtime::Virtual;

use super::super::documents::{Compacted, Documents, Outcome, Setup};
use super::super::journal::Journal;
use super::super::{Progress, Row, Scale};

/// Figures 7 and 8: updates per fsync, "from one to 256".
const BATCHES: [u32; 5] = [1, 4, 16, 64, 256];

/// Section 5.3.2: there workload F is only read-modify-writes.
const MIX_F: Mix = Mix { read: 0, update: 0, insert: 0, scan: 0, read_modify_write: 100 };
const MIX_A: Mix = Mix { read: 50, update: 50, insert: 0, scan: 0, read_modify_write: 0 };
const MIX_AGING: Mix = Mix { read: 0, update: 100, insert: 0, scan: 0, read_modify_write: 0 };

/// A workload, and the text's numbers for batches of 1 and of 256.
struct Load {
    name: &'static str,
    mix: Mix,
    throughput: Figure,
    written: Option<Figure>,
}

/// SHARE over Original, or the inverse: for batches of 1 and of 256.
struct Figure {
    name: &'static str,
    paper: [f64; 2],
}

const LOADS: [Load; 2] = [
    Load {
        name: "workload F",
        mix: MIX_F,
        throughput: Figure { name: "Figure 7a", paper: [3.45, 1.96] },
        written: Some(Figure { name: "Figure 7b", paper: [7.86, 1.64] }),
    },
    Load {
        name: "workload A",
        mix: MIX_A,
        throughput: Figure { name: "Figure 8", paper: [2.23, 1.61] },
        written: None,
    },
];

/// Table 2: seconds and MB of a compaction, original and by SHARE.
const COMPACTIONS: [(f64, f64); 2] = [(277.52, 1126.4), (88.38, 150.6)];

/// Sizes of a run.
#[derive(Clone, Copy)]
struct Size {
    /// Number of pages of the drive, and of the journal.
    drive_pages: u64,
    journal_pages: u64,
    documents: u64,
    /// Long enough that a smaller tree has the paper's depth, and about as many inner nodes.
    key_bytes: usize,
    /// Bytes of each of a document's ten fields, with which it fills a page.
    field_bytes: u32,
    batches: &'static [u32],
    operations: u64,
    /// The drive is aged until its capacity was written this many times.
    aged_fills: f64,
}

impl Size {
    fn of(scale: Scale) -> Size {
        match scale {
            Scale::Small => Size {
                drive_pages: 61_035,
                journal_pages: 1_024,
                documents: 15_625,
                key_bytes: 130,
                field_bytes: 395,
                batches: &[1, 256],
                operations: 1_024,
                aged_fills: 1.0,
            },
            Scale::Full | Scale::Paper => Size {
                drive_pages: 976_562,
                journal_pages: 16_384,
                documents: 250_000,
                key_bytes: 0,
                field_bytes: 400,
                batches: &BATCHES,
                operations: 10_240,
                aged_fills: 1.5,
            },
        }
    }
}

/// The results of one mode: for each workload, by batch size; then compactions, without and with reading.
struct Measured {
    loads: Vec<Vec<Outcome>>,
    compaction: Compacted,
    reading: Compacted,
}

/// Measures the three figures and the table.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let mut of = |mode: Mode| {
        progress(&format!("Couchbase, {}", mode.name()));
        measure(mode, Size::of(scale), seed)
    };
    let (original, share) = (of(Mode::Original)?, of(Mode::Share)?);
    let batches = Size::of(scale).batches;
    for (at, load) in LOADS.iter().enumerate() {
        rows.extend(load.rows(batches, &original.loads[at], &share.loads[at]));
    }
    rows.extend(compaction_rows(scale, &original, &share));
    Ok(())
}

fn measure(mode: Mode, size: Size, seed: u64) -> Result<Measured> {
    Virtual::alone(format!("Couchbase, {}", mode.name()), move |runtime| async move {
        let setup = Setup {
            // A compaction by SHARE has all documents in two files at once.
            device: format!("openssd:pages={},share-entries={}", size.drive_pages, size.documents),
            journal: (Journal::BlockAndRecord, size.journal_pages),
            mode,
            records: RecordOptions {
                field_bytes: size.field_bytes,
                key_bytes_min: size.key_bytes,
                ..RecordOptions::new(size.documents)
            },
            seed,
        };
        let documents = Documents::load(&runtime, setup).await?;
        let load = YcsbOptions::new(Workload::A, size.operations, seed);
        let aged_pages = (size.drive_pages as f64 * size.aged_fills) as u64;
        documents.age(YcsbOptions { mix: MIX_AGING, ..load }, 256, aged_pages).await?;
        let mut loads = Vec::new();
        for of in &LOADS {
            let mut outcomes = Vec::new();
            for batch in size.batches {
                let load = YcsbOptions { mix: of.mix, ..load };
                outcomes.push(documents.measure(load, *batch).await?);
            }
            loads.push(outcomes);
        }
        let compaction = documents.compact(false).await?;
        let reading = documents.compact(true).await?;
        Ok(Measured { loads, compaction, reading })
    })
}

impl Load {
    fn rows(&self, batches: &[u32], original: &[Outcome], share: &[Outcome]) -> Vec<Row> {
        let mut rows = Vec::new();
        let (metric, unit) = ("throughput", "OPS");
        let throughput = |outcome: &Outcome| outcome.throughput;
        rows.extend(self.absolute(
            self.throughput.name,
            (metric, unit),
            batches,
            original,
            share,
            throughput,
        ));
        rows.extend(self.ratios(&self.throughput, "SHARE over Original", metric, batches, |at| {
            share[at].throughput / original[at].throughput
        }));
        if let Some(figure) = &self.written {
            let metric = "pages written an operation";
            let written = |outcome: &Outcome| outcome.written_pages;
            rows.extend(self.absolute(
                figure.name,
                (metric, "pages"),
                batches,
                original,
                share,
                written,
            ));
            rows.extend(self.ratios(figure, "Original over SHARE", metric, batches, |at| {
                original[at].written_pages / share[at].written_pages
            }));
        }
        rows
    }

    fn absolute(
        &self,
        figure: &'static str,
        what: (&'static str, &'static str),
        batches: &[u32],
        original: &[Outcome],
        share: &[Outcome],
        value: fn(&Outcome) -> f64,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for (mode, outcomes) in [(Mode::Original, original), (Mode::Share, share)] {
            for (batch, outcome) in batches.iter().zip(outcomes) {
                let case = format!("Couchbase, {}, batch {batch}, {}", self.name, mode.name());
                let row = Row::new(figure, case, what, None, value(outcome));
                rows.push(row.at("", mode.name(), ("updates per fsync", *batch)));
            }
        }
        rows
    }

    /// The text has numbers for the smallest and the largest batch.
    fn ratios(
        &self,
        figure: &Figure,
        over: &str,
        metric: &'static str,
        batches: &[u32],
        ratio: impl Fn(usize) -> f64,
    ) -> Vec<Row> {
        let row = |(at, batch): (usize, &u32)| {
            let paper = match batch {
                1 => Some(figure.paper[0]),
                256 => Some(figure.paper[1]),
                _ => None,
            };
            let case = format!("Couchbase, {}, batch {batch}, {over}", self.name);
            Row::new(figure.name, case, (metric, "times"), paper, ratio(at))
        };
        batches.iter().enumerate().map(row).collect()
    }
}

/// Table 2; its absolute numbers are of the paper's 250,000 documents.
fn compaction_rows(scale: Scale, original: &Measured, share: &Measured) -> Vec<Row> {
    let [from, to] = COMPACTIONS;
    let absolute = |number: f64| (scale != Scale::Small).then_some(number);
    let (time, bytes) = (("compaction", "s"), ("bytes written by a compaction", "MB"));
    let megabytes = |compacted: &Compacted| compacted.written_bytes as f64 / (1 << 20) as f64;
    let mut rows = Vec::new();
    let mut push = |case: &str, what, paper, measured| {
        rows.push(Row::new("Table 2", format!("Couchbase, {case}"), what, paper, measured));
    };
    push("Original", time, absolute(from.0), original.compaction.seconds);
    push("SHARE, documents read", time, absolute(to.0), share.reading.seconds);
    push("SHARE", time, None, share.compaction.seconds);
    push("Original", bytes, absolute(from.1), megabytes(&original.compaction));
    push("SHARE", bytes, absolute(to.1), megabytes(&share.compaction));
    let seconds = original.compaction.seconds;
    let times = ("compaction", "times");
    let reading = seconds / share.reading.seconds;
    push("Original over SHARE, documents read", times, Some(from.0 / to.0), reading);
    push("Original over SHARE", times, None, seconds / share.compaction.seconds);
    let times = ("bytes written by a compaction", "times");
    let fewer = megabytes(&original.compaction) / megabytes(&share.compaction);
    push("Original over SHARE", times, Some(from.1 / to.1), fewer);
    rows
}
