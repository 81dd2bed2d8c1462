//! The core workloads A to F of YCSB ([`crate::ycsb`]) as page requests.
//!
//! The distribution is Zipf over scrambled records; for D, the latest records are the hottest. Records of 1000 bytes
//! are stored in the order of their numbers, `records_per_page` per page; an insert is placed after the last record.
//! There are no index pages. Operations that write end with a commit point.
use super::pattern::{PAGES_MAX, Scatter};
use crate::event::PageEvent;
use crate::ycsb::{Kind, Mix, Requests, SCAN_RECORDS_MAX, THETA, Workload};
use crate::zipf::Zipf;
use std::collections::VecDeque;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// The operations of one workload.
#[derive(Clone, Debug)]
pub(super) struct Ycsb {
    mix: Mix,
    /// Whether the latest records are the hottest.
    latest: bool,
    /// Records at the start, which the distribution covers.
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
    /// Accepts `workload` (`a` to `f`), `operations`, `records`, `records_per_page` and `theta`.
    pub(super) fn of(spec: &mut Spec<'_>, seed: u64) -> Result<Ycsb> {
        let letter = spec.word("workload", &Workload::NAMES)?;
        let workload = Workload::by_name(letter).unwrap_or(Workload::A);
        let left = spec.count("operations", 0..=1 << 40, 1 << 20)?;
        let records = spec.count("records", 1..=PAGES_MAX, 1 << 20)?;
        let records_per_page = spec.count("records_per_page", 1..=1 << 16, 4)?;
        let mix = workload.mix();
        // Space for as many inserts as there are operations.
        let records_max = records + if mix.insert > 0 { left } else { 0 };
        Ok(Ycsb {
            mix,
            latest: workload.requests() == Requests::Latest,
            records,
            inserted: 0,
            records_per_page,
            pages: records_max.div_ceil(records_per_page),
            left,
            zipf: Zipf::new(records, spec.number("theta", 0.0..=4.0, THETA)?),
            scatter: Scatter::new(records),
            rng: Rng::split(seed, "ycsb"),
            queue: VecDeque::new(),
        })
    }

    /// All pages are below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// An existing record.
    fn record(&mut self) -> u64 {
        let rank = self.zipf.next(&mut self.rng) - 1;
        if self.latest { self.records + self.inserted - 1 - rank } else { self.scatter.page(rank) }
    }

    fn page(&self, record: u64) -> PageNo {
        PageNo(record / self.records_per_page)
    }

    fn operation(&mut self) {
        match self.mix.draw(&mut self.rng) {
            Kind::Read => {
                let record = self.record();
                self.read(record, 1);
            }
            Kind::Update => {
                let record = self.record();
                self.write(record);
            }
            Kind::Insert => {
                self.inserted += 1;
                self.write(self.records + self.inserted - 1);
            }
            Kind::Scan => {
                let first = self.record();
                let records = 1 + self.rng.below(SCAN_RECORDS_MAX);
                self.read(first, records.min(self.records + self.inserted - first));
            }
            Kind::ReadModifyWrite => {
                let record = self.record();
                self.read(record, 1);
                self.write(record);
            }
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
