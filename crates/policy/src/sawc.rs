//! SAWC (self-adaptive, write-clustered): CASA that also writes the neighbours of a dirty victim,
//! except those that are updated more often.
//!
//! Source: Ou, "Caching for flash-based databases and flash-based caching for databases"
//! (dissertation, TU Kaiserslautern), section 5.2.4, Algorithm 4.
//!
//! The paper's cluster table lists the dirty pages of a page's cluster. Here the page table is
//! searched for each page number of the cluster: the number of steps is constant for a given cluster
//! size, and no memory is needed. The paper leaves some points open. Here the neighbours are written
//! right after the victim, in the order of their numbers, and each becomes the oldest clean page (see
//! [`crate::casa`]). `freq()` counts the updates of a page since it came in; a write-back does not
//! reset the count.
//!
//! Weak if pages are updated again soon after they were written as neighbours: it writes more than
//! CASA does, in fewer and denser writes, and gains only on devices that serve these better.
use crate::answers::answers_of;
use crate::casa::Casa;
use crate::cost_detection::CostSpec;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::{FastSet, PageNo};

/// CASA with clustered writes.
#[derive(Debug)]
pub struct Sawc<T> {
    casa: Casa<T>,
    /// Updates of the page in each frame since it came in.
    updates: Vec<u32>,
    cluster_pages: u64,
    pages_end: u64,
}

impl<T: PageTable> Sawc<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. Pages whose numbers divided
    /// by `cluster_pages` are equal are neighbours.
    pub fn new(frames: u32, pages_end: u64, cost: CostSpec, cluster_pages: u32) -> Self {
        assert!(cluster_pages > 0, "a cluster has a page at least");
        let casa = Casa::new(frames, pages_end, cost);
        let updates = vec![0; casa.frames().frames_end()];
        Sawc { casa, updates, cluster_pages: u64::from(cluster_pages), pages_end }
    }

    /// The dirty neighbours of `page` that may be written along with it if it was updated `updates`
    /// times, in the order of their numbers.
    fn neighbours(&self, page: PageNo, updates: u32) -> impl Iterator<Item = u32> + '_ {
        let first = page.0 - page.0 % self.cluster_pages;
        let end = first.saturating_add(self.cluster_pages).min(self.pages_end);
        let others = (first..end).filter(move |&other| other != page.0);
        let frames = others.map(|other| self.casa.frames().find(PageNo(other)));
        frames.filter(move |&frame| {
            frame != NO_FRAME
                && self.casa.frames().key(frame).is_dirty()
                && self.updates[frame as usize] <= updates
        })
    }

    /// Algorithm 4 without its first line: writes the neighbours of `page`, which has left.
    fn write_neighbours(&mut self, page: PageNo, updates: u32, effects: &mut Vec<Effect>) {
        let from = effects.len();
        let frames = self.neighbours(page, updates);
        let pages = frames.map(|frame| self.casa.frames().key(frame).page());
        effects.extend(pages.map(|page| Effect::Cleaned { page }));
        for effect in &effects[from..] {
            self.casa.cleaned(effect.page());
        }
    }
}

impl<T: PageTable> Policy for Sawc<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.casa.frames().find(request.page());
        if frame != NO_FRAME {
            let updates = &mut self.updates[frame as usize];
            *updates = updates.saturating_add(u32::from(request.is_write()));
            self.casa.hit(frame, request);
            return true;
        }
        let victim = self.casa.victim();
        if victim != NO_FRAME {
            let old = self.casa.remove(victim);
            effects.push(old.evicted());
            if old.is_dirty() {
                self.write_neighbours(old.page(), self.updates[victim as usize], effects);
            }
        }
        let frame = self.casa.insert(request);
        self.updates[frame as usize] = u32::from(request.is_write());
        false
    }

    answers_of!(casa: contains cleaned forget measured gauges capacity_pages dirty_pages);

    /// Cluster by cluster: from the least recently used dirty page on, each with the neighbours
    /// that would be written along with it.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let end = pages.len().saturating_add(pages_max);
        let mut named = FastSet::default();
        for frame in self.casa.dirty_oldest_first() {
            let page = self.casa.frames().key(frame).page();
            if pages.len() >= end {
                return;
            }
            if named.contains(&page) {
                continue;
            }
            let frames = self.neighbours(page, self.updates[frame as usize]);
            let along = frames.map(|frame| self.casa.frames().key(frame).page());
            for page in std::iter::once(page).chain(along) {
                if pages.len() < end && named.insert(page) {
                    pages.push(page);
                }
            }
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.casa.memory_bytes() + (self.updates.len() * size_of::<u32>()) as u64
    }

    #[cfg(test)]
    fn validate(&self) {
        self.casa.validate();
        let updated = |frame| self.updates[frame as usize] > 0;
        assert!(self.casa.dirty_oldest_first().all(updated), "a dirty page without an update");
    }
}
