//! The core workloads A to F of the Yahoo! Cloud Serving Benchmark as page requests.
//!
//! Source: Cooper, Silberstein, Tam, Ramakrishnan, Sears, "Benchmarking cloud serving systems with
//! YCSB", SoCC 2010, and the workload files of its distribution: shares of operations, Zipf with 0.99
//! over scrambled records, the latest records for D, scans of 1 to 100 records for E. Records of
//! 1000 bytes lie in the order of their numbers, `records_per_page` in a page; an insert goes behind
//! the last record. No index pages. Operations that write end in a commit point.
use super::pattern::{PAGES_MAX, Scatter};
use crate::event::PageEvent;
use crate::zipf::Zipf;
use std::collections::VecDeque;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// Records that a scan of workload E reads at the most.
const SCAN_RECORDS_MAX: u64 = 100;

/// Shares of the operations in percent; the rest reads a record and then updates it.
#[derive(Clone, Copy, Debug)]
struct Mix {
    read: u64,
    update: u64,
    insert: u64,
    scan: u64,
}

impl Mix {
    fn of(workload: &str) -> Mix {
        let none = Mix { read: 0, update: 0, insert: 0, scan: 0 };
        match workload {
            "a" => Mix { read: 50, update: 50, ..none },
            "b" => Mix { read: 95, update: 5, ..none },
            "c" => Mix { read: 100, ..none },
            "d" => Mix { read: 95, insert: 5, ..none },
            "e" => Mix { scan: 95, insert: 5, ..none },
            _ => Mix { read: 50, ..none },
        }
    }
}

/// The operations of one workload.
#[derive(Clone, Debug)]
pub(super) struct Ycsb {
    mix: Mix,
    /// Whether the latest records are the hottest.
    latest: bool,
    /// Records at the start, over which the distribution is.
    records: u64,
    inserted: u64,
    records_per_page: u64,
    pages: u64,
    left: u64,
    zipf: Zipf,
    scatter: Scatter,
    rng: Rng,
    queue: VecDeque<PageEvent>,
}

impl Ycsb {
    /// Takes `workload` (`a` to `f`), `operations`, `records`, `records_per_page` and `theta`.
    pub(super) fn of(spec: &mut Spec<'_>, seed: u64) -> Result<Ycsb> {
        let workload = spec.word("workload", &["a", "b", "c", "d", "e", "f"])?;
        let left = spec.count("operations", 0..=1 << 40, 1 << 20)?;
        let records = spec.count("records", 1..=PAGES_MAX, 1 << 20)?;
        let records_per_page = spec.count("records_per_page", 1..=1 << 16, 4)?;
        let mix = Mix::of(workload);
        // Room for as many inserts as there are operations.
        let records_max = records + if mix.insert > 0 { left } else { 0 };
        Ok(Ycsb {
            mix,
            latest: workload == "d",
            records,
            inserted: 0,
            records_per_page,
            pages: records_max.div_ceil(records_per_page),
            left,
            zipf: Zipf::new(records, spec.number("theta", 0.0..=4.0, 0.99)?),
            scatter: Scatter::new(records),
            rng: Rng::split(seed, "ycsb"),
            queue: VecDeque::new(),
        })
    }

    /// All pages lie below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// A record that is there.
    fn record(&mut self) -> u64 {
        let rank = self.zipf.next(&mut self.rng) - 1;
        if self.latest { self.records + self.inserted - 1 - rank } else { self.scatter.page(rank) }
    }

    fn page(&self, record: u64) -> PageNo {
        PageNo(record / self.records_per_page)
    }

    fn operation(&mut self) {
        let Mix { read, update, insert, scan, .. } = self.mix;
        let drawn = self.rng.below(100);
        if drawn < read {
            let record = self.record();
            self.read(record, 1);
        } else if drawn < read + update {
            let record = self.record();
            self.write(record);
        } else if drawn < read + update + insert {
            self.inserted += 1;
            self.write(self.records + self.inserted - 1);
        } else if drawn < read + update + insert + scan {
            let first = self.record();
            let records = 1 + self.rng.below(SCAN_RECORDS_MAX);
            self.read(first, records.min(self.records + self.inserted - first));
        } else {
            let record = self.record();
            self.read(record, 1);
            self.write(record);
        }
    }

    fn read(&mut self, first: u64, records: u64) {
        let (page, last) = (self.page(first), self.page(first + records - 1));
        let pages = (last.0 - page.0 + 1) as u32;
        self.queue.push_back(PageEvent::Read { page, pages });
    }

    fn write(&mut self, record: u64) {
        self.queue.push_back(PageEvent::Write { page: self.page(record), pages: 1 });
        self.queue.push_back(PageEvent::Commit);
    }
}

impl Iterator for Ycsb {
    type Item = PageEvent;

    fn next(&mut self) -> Option<PageEvent> {
        if self.queue.is_empty() {
            self.left = self.left.checked_sub(1)?;
            self.operation();
        }
        self.queue.pop_front()
    }
}
