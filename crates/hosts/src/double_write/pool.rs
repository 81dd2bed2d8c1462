//! The pool: frames, pages on their way out of them, and what is known of every page.
use std::collections::VecDeque;
use tantalum_base::{Error, FastSet, PageNo, Result};
use tantalum_policy::{Effect, Policy, PolicySpec, Request, Workload};

use super::options::DoubleWriteOptions;

/// What a fixed page needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: it is in memory.
    Nothing,
    /// It has to be read from its home.
    Read,
}

/// The buffer pool's state. Pages are the database's.
pub(super) struct Pool {
    frames: Box<dyn Policy>,
    effects: Vec<Effect>,
    /// Newest version of each page, in memory or at home.
    versions: Vec<u32>,
    /// Version that each home has since a batch ended.
    homes: Vec<u32>,
    /// Dirty pages that left their frames and wait for a batch, in that order.
    queue: VecDeque<u64>,
    queued: FastSet<u64>,
    /// Pages of the batch that is being flushed.
    in_flight: FastSet<u64>,
    /// Pages that are being read.
    loading: FastSet<u64>,
    batch_pages: usize,
    closing: bool,
    failure: Option<Error>,
}

impl Pool {
    /// An empty pool over homes that all hold version 1.
    pub(super) fn new(options: &DoubleWriteOptions) -> Result<Pool> {
        let batch_pages = options.batch_pages;
        // What waits for a batch and what is being flushed is memory of the pool, too.
        let frames = options.pool_pages - 2 * batch_pages;
        let workload = Workload { pages_end: options.database_pages, future: &[] };
        Ok(Pool {
            frames: PolicySpec::parse("lru")?.build(frames, workload)?,
            effects: Vec::new(),
            versions: vec![1; options.database_pages as usize],
            homes: vec![1; options.database_pages as usize],
            queue: VecDeque::new(),
            queued: FastSet::default(),
            in_flight: FastSet::default(),
            loading: FastSet::default(),
            batch_pages: batch_pages as usize,
            closing: false,
            failure: None,
        })
    }

    /// Whether a page may be fixed now: nobody is reading it, and there is a free frame or a clean
    /// way to one. Fails where flushing failed.
    pub(super) fn may_fix(&self, page: u64) -> Option<Result<()>> {
        if let Some(failure) = &self.failure {
            return Some(Err(failure.clone()));
        }
        // The frames of two batches are theirs: one in flight, one that fills up.
        let room = self.queue.len() + self.in_flight.len() < 2 * self.batch_pages;
        (room && !self.loading.contains(&page)).then_some(Ok(()))
    }

    /// Fixes a page, for a change of it where `write`. Where it needs to be read, it is `loading`
    /// until [`loaded`](Self::loaded). Returns also whether a batch is full now.
    pub(super) fn fix(&mut self, page: u64, write: bool) -> (Need, bool) {
        let hit = self.frames.access(Request::new(PageNo(page), write), &mut self.effects);
        for effect in self.effects.drain(..) {
            if effect.writes() && self.queued.insert(effect.page().0) {
                self.queue.push_back(effect.page().0);
            }
        }
        self.versions[page as usize] += u32::from(write);
        let in_memory = hit || self.queued.contains(&page) || self.in_flight.contains(&page);
        let full = self.queue.len() >= self.batch_pages;
        if in_memory {
            return (Need::Nothing, full);
        }
        self.loading.insert(page);
        (Need::Read, full)
    }

    /// The page was read, or could not be.
    pub(super) fn loaded(&mut self, page: u64) {
        self.loading.remove(&page);
    }

    /// A full batch to flush, with versions; what is left of one when closing, empty at the end.
    pub(super) fn take_batch(&mut self) -> Option<Vec<(u64, u32)>> {
        if self.queue.len() < self.batch_pages && !self.closing {
            return None;
        }
        let pages = self.batch_pages.min(self.queue.len());
        let batch: Vec<(u64, u32)> =
            self.queue.drain(..pages).map(|page| (page, self.versions[page as usize])).collect();
        for (page, _) in &batch {
            self.queued.remove(page);
            self.in_flight.insert(*page);
        }
        Some(batch)
    }

    /// The batch is durable at its homes.
    pub(super) fn flushed(&mut self, batch: &[(u64, u32)]) {
        for (page, version) in batch {
            self.in_flight.remove(page);
            self.homes[*page as usize] = *version;
        }
    }

    /// Flushing failed: nothing goes on.
    pub(super) fn fail(&mut self, failure: Error) {
        self.failure = Some(failure);
    }

    /// No page is fixed any more.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// What the home of `page` holds at the least, and what the newest content is.
    pub(super) fn bounds(&self, page: u64) -> (u64, u64) {
        (self.homes[page as usize].into(), self.versions[page as usize].into())
    }
}
