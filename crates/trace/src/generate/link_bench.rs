//! LinkBench's transactions as page events; those that write end with a commit point.
use crate::event::PageEvent;
use crate::link_bench::LinkBench;
use std::collections::VecDeque;
use tantalum_base::{Result, Spec};

/// The events of a number of transactions.
#[derive(Clone, Debug)]
pub(super) struct LinkBenchEvents {
    bench: LinkBench,
    pages: u64,
    left: u64,
    transaction: Vec<PageEvent>,
    queue: VecDeque<PageEvent>,
}

impl LinkBenchEvents {
    /// Accepts `pages` (1m) and `theta` (0.6).
    pub(super) fn of(spec: &mut Spec<'_>, transactions: u64, seed: u64) -> Result<Self> {
        let pages =
            spec.count("pages", LinkBench::PAGES_MIN..=super::pattern::PAGES_MAX, 1 << 20)?;
        let theta = spec.number("theta", 0.0..=4.0, 0.6)?;
        Ok(LinkBenchEvents {
            bench: LinkBench::new(pages, theta, seed),
            pages,
            left: transactions,
            transaction: Vec::new(),
            queue: VecDeque::new(),
        })
    }

    /// All pages are below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }
}

impl Iterator for LinkBenchEvents {
    type Item = PageEvent;

    fn next(&mut self) -> Option<PageEvent> {
        if self.queue.is_empty() {
            self.left = self.left.checked_sub(1)?;
            let writes = self.bench.transaction(&mut self.transaction);
            self.queue.extend(self.transaction.drain(..));
            self.queue.extend(writes.then_some(PageEvent::Commit));
        }
        self.queue.pop_front()
    }
}
