//! The write cache: acknowledged pages, in runs that are written to the platters as one access.
use super::geometry::{Geometry, Place};
use std::collections::VecDeque;
use tantalum_base::{FastMap, Payload};

/// A run of pages to write.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Sequence number of the run.
    pub number: u64,
    pub first: u64,
    pub pages: u32,
    pub place: Place,
    /// Number of accesses served before this one could first be chosen.
    pub served_before: Option<u64>,
}

/// Pages that are not yet on the platters.
pub(super) struct Cache<P> {
    contents: FastMap<u64, P>,
    /// Oldest first.
    pub(super) runs: VecDeque<Run>,
    /// The run that the head is writing, with its contents.
    writing: Option<(Run, Vec<P>)>,
    numbered: u64,
    capacity: u64,
}

impl<P: Payload> Cache<P> {
    pub(super) fn new(capacity: u32) -> Self {
        Cache {
            contents: FastMap::default(),
            runs: VecDeque::new(),
            writing: None,
            numbered: 0,
            capacity: u64::from(capacity),
        }
    }

    /// Number of pages for which there is room. The run that the head is writing still takes up its
    /// room.
    pub(super) fn free(&self) -> u64 {
        let writing = self.writing.as_ref().map_or(0, |(_, contents)| contents.len() as u64);
        self.capacity.saturating_sub(self.contents.len() as u64 + writing)
    }

    pub(super) fn get(&self, page: u64) -> Option<&P> {
        self.contents.get(&page).or_else(|| {
            let (run, contents) = self.writing.as_ref()?;
            let at = page.checked_sub(run.first).filter(|at| *at < u64::from(run.pages))?;
            contents.get(at as usize)
        })
    }

    /// Adds pages to the cache. A page that is already waiting is replaced in its run; the others
    /// make new runs.
    pub(super) fn insert(&mut self, geometry: &Geometry, first: u64, pages: &[P]) {
        let mut open: Option<Run> = None;
        for (page, content) in (first..).zip(pages) {
            if self.contents.insert(page, content.clone()).is_some() {
                self.runs.extend(open.take());
            } else if let Some(run) = &mut open {
                run.pages += 1;
            } else {
                self.numbered += 1;
                let place = geometry.place(page);
                let number = self.numbered;
                open = Some(Run { number, first: page, pages: 1, place, served_before: None });
            }
        }
        self.runs.extend(open);
    }

    /// Removes the run at `index`, to which the head now goes. Returns it with its contents.
    pub(super) fn begin(&mut self, index: usize) -> Option<(Run, Vec<P>)> {
        let run = self.runs.remove(index)?;
        let pages = run.first..run.first + u64::from(run.pages);
        let contents: Vec<P> = pages.filter_map(|page| self.contents.remove(&page)).collect();
        self.writing = Some((run, contents.clone()));
        Some((run, contents))
    }

    /// The head has finished the run.
    pub(super) fn end(&mut self) {
        self.writing = None;
    }

    /// The number of the newest run.
    pub(super) fn newest(&self) -> u64 {
        self.numbered
    }

    /// Whether every run up to `number` is on the platters.
    pub(super) fn is_written(&self, number: u64) -> bool {
        let waits = self.runs.front().is_some_and(|run| run.number <= number);
        !waits && self.writing.as_ref().is_none_or(|(run, _)| run.number > number)
    }
}
