//! Whole transactions as page events: their reads, their changes, the commit point.
use crate::event::PageEvent;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use tantalum_base::PageNo;

/// Most pages in one event.
const RUN_PAGES_MAX: u32 = 256;

/// The pages that one transaction accesses.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    /// Pages read, in order.
    pub reads: Vec<u64>,
    /// Pages changed, each once: its last version is written when the transaction commits.
    pub written: BTreeSet<u64>,
}

/// Makes transactions.
pub(super) trait Source {
    /// The next transaction; `touched` is empty.
    fn next(&mut self, touched: &mut Touched);
}

/// The events of a number of transactions of a source.
#[derive(Clone, Debug)]
pub(super) struct Transactions<S> {
    source: S,
    left: u64,
    touched: Touched,
    queue: VecDeque<PageEvent>,
}

impl<S: Source> Transactions<S> {
    pub(super) fn new(source: S, left: u64) -> Self {
        Transactions { source, left, touched: Touched::default(), queue: VecDeque::new() }
    }

    fn refill(&mut self) {
        self.touched.reads.clear();
        self.touched.written.clear();
        self.source.next(&mut self.touched);
        let reads = self.touched.reads.iter();
        self.queue.extend(reads.map(|page| PageEvent::Read { page: PageNo(*page), pages: 1 }));
        let mut run: Option<(u64, u32)> = None;
        for page in &self.touched.written {
            match &mut run {
                Some((first, pages))
                    if *first + u64::from(*pages) == *page && *pages < RUN_PAGES_MAX =>
                {
                    *pages += 1;
                }
                _ => self.queue.extend(run.replace((*page, 1)).map(write)),
            }
        }
        self.queue.extend(run.map(write));
        self.queue.push_back(PageEvent::Commit);
    }
}

fn write((first, pages): (u64, u32)) -> PageEvent {
    PageEvent::Write { page: PageNo(first), pages }
}

impl<S: Source> Iterator for Transactions<S> {
    type Item = PageEvent;

    fn next(&mut self) -> Option<PageEvent> {
        if self.queue.is_empty() {
            self.left = self.left.checked_sub(1)?;
            self.refill();
        }
        self.queue.pop_front()
    }
}
