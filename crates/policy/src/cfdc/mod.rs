//! CFDC (clean first, dirty clustered): a working region under any policy keeps the hot pages.
//! Pages that leave it wait in a priority region, which evicts clean pages first and then dirty
//! ones cluster by cluster.
//!
//! Source: Ou, "Caching for flash-based databases and flash-based caching for databases"
//! (dissertation, TU Kaiserslautern), section 3.2, Algorithms 1 and 2, formulas 3.1 and 3.2; Ou,
//! Härder, Jin, "CFDC: a flash-aware replacement policy for database buffer management", DaMoN 2009.
//!
//! ```text
//! mod              page flow between the regions: Algorithm 1
//! priority_region  one list of clean pages, one per cluster of dirty ones: Algorithm 2
//! clusters         clusters by number, with IPD and timestamp: formula 3.1
//! tournament       finds the cluster of the lowest priority exactly, although priorities change: formula 3.2
//! singles          clusters of one page, whose order does not change with time
//! ```
//!
//! Points on which the text is silent or contradicts itself:
//! - A victim cluster keeps the lowest priority until it is empty, even if pages join it or one of its
//!   pages is hit in the meantime (the text recomputes the IPD at a hit). So there is at most one
//!   victim cluster.
//! - A cluster whose timestamp is the current time has an infinite priority. Of equal priorities
//!   the older timestamp goes first, then the lower cluster number.
//! - A page that leaves its cluster other than by a hit changes the IPD, but not the timestamp.
//! - A page written back while it stays becomes the newest clean page.
//! - The working region has at least one page.
//! - A base policy that evicts several pages at once fills the priority region; if that is full, it
//!   evicts page by page.
//!
//! By the clock of formula 3.2 the order of two clusters changes with time; the tournament still finds
//! the lowest priority exactly.
//!
//! Weak if the window does not fit the load: for reads only, the priority region just takes room
//! from the working region, and the best window is 0 (section 5.3.4). It ignores the cost of a read
//! compared with a write.
mod clusters;
mod priority_region;
mod singles;
mod tournament;

use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Gauge, Key, Physical, Policy, Request};
use priority_region::PriorityRegion;
use std::ops::RangeInclusive;
use tantalum_base::PageNo;

/// The division of the cache into the two regions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CfdcOptions {
    /// The paper's lambda: the priority region's share of the frames, 0 to 1.
    pub window: f64,
    /// Pages per cluster, in the range [`CfdcOptions::CLUSTER_PAGES`].
    pub cluster_pages: u32,
}

impl CfdcOptions {
    /// Allowed numbers of pages per cluster: sums of distances in a cluster stay within 24 bits.
    pub const CLUSTER_PAGES: RangeInclusive<u64> = 1..=4096;

    /// Size of the priority region in pages for a cache of `frames`, rounded down; the rest is the
    /// working region.
    pub fn priority_pages(&self, frames: u32) -> u32 {
        ((self.window * f64::from(frames)) as u32).min(frames - 1)
    }
}

/// Clean first, dirty clustered.
pub struct Cfdc<T> {
    working: Box<dyn Policy>,
    priority: PriorityRegion<T>,
    priority_pages_max: u32,
    /// Pages that the working region evicts during the current request.
    let_go: Vec<Effect>,
}

impl<T: PageTable> Cfdc<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. `working` manages the
    /// frames outside the priority region.
    pub fn new(
        frames: u32,
        pages_end: u64,
        options: CfdcOptions,
        working: Box<dyn Policy>,
    ) -> Self {
        let cluster_pages = options.cluster_pages;
        assert!(CfdcOptions::CLUSTER_PAGES.contains(&u64::from(cluster_pages)), "cluster size");
        let priority_pages_max = options.priority_pages(frames);
        assert_eq!(working.capacity_pages() + priority_pages_max, frames, "the regions are all");
        Cfdc {
            working,
            // At a hit, a page comes in before the page that was hit leaves.
            priority: PriorityRegion::new(priority_pages_max + 1, pages_end, cluster_pages),
            priority_pages_max,
            let_go: Vec::with_capacity(64),
        }
    }

    /// Lines 5 and 7 to 15: puts the pages that the working region evicted into the priority region. If that is full,
    /// it first evicts a victim. A page that is hit in the priority region leaves it after the first of these pages has
    /// come in.
    fn demote(&mut self, mut hit: u32, effects: &mut Vec<Effect>) {
        for at in 0..self.let_go.len() {
            let effect = self.let_go[at];
            let Effect::Evicted { page, dirty } = effect else {
                effects.push(effect);
                continue;
            };
            if hit == NO_FRAME && self.priority.len() == self.priority_pages_max {
                let Some(victim) = self.priority.evict() else {
                    effects.push(effect);
                    continue;
                };
                effects.push(victim.evicted());
            }
            self.priority.insert(Key::new(Request::new(page, dirty)));
            self.promote(std::mem::replace(&mut hit, NO_FRAME));
        }
        self.promote(hit);
        self.let_go.clear();
    }

    /// Moves the page in `frame` to the working region.
    fn promote(&mut self, frame: u32) {
        if frame != NO_FRAME {
            self.priority.remove(frame, true);
        }
    }
}

impl<T: PageTable> Policy for Cfdc<T> {
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.priority.find(request.page());
        // A dirty page must return dirty; a write request makes the working region mark it so.
        let dirty = frame != NO_FRAME && self.priority.is_dirty(frame);
        let request = if dirty { Request::new(request.page(), true) } else { request };
        let in_working = self.working.access(request, &mut self.let_go);
        debug_assert!(!in_working || frame == NO_FRAME, "a page is in both regions");
        if frame != NO_FRAME || !self.let_go.is_empty() {
            self.demote(frame, effects);
        }
        in_working || frame != NO_FRAME
    }

    fn contains(&self, page: PageNo) -> bool {
        self.priority.find(page) != NO_FRAME || self.working.contains(page)
    }

    /// The victim cluster first, then the clusters by rising priority, each from its oldest page on;
    /// then the write candidates of the working region.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let before = pages.len();
        if self.priority.dirty_pages() > 0 {
            pages.extend(self.priority.dirty_in_order().take(pages_max));
        }
        self.working.write_candidates(pages_max - (pages.len() - before), pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        match self.priority.find(page) {
            NO_FRAME => self.working.cleaned(page),
            frame => self.priority.clean(frame),
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        match self.priority.find(page) {
            NO_FRAME => self.working.forget(page),
            frame => {
                self.priority.remove(frame, false);
                true
            }
        }
    }

    fn measured(&mut self, operation: Physical, time_ns: u64) {
        self.working.measured(operation, time_ns);
    }

    fn search_steps(&self) -> u64 {
        self.working.search_steps()
    }

    fn gauges(&self) -> Vec<Gauge> {
        let dirty = self.priority.dirty_pages();
        let mut gauges = vec![
            Gauge::new("priority_clean_pages", f64::from(self.priority.len() - dirty)),
            Gauge::new("priority_dirty_pages", f64::from(dirty)),
            Gauge::new("priority_clusters", self.priority.clusters() as f64),
        ];
        gauges.extend(self.working.gauges());
        gauges
    }

    fn memory_bytes(&self) -> u64 {
        self.working.memory_bytes() + self.priority.memory_bytes()
    }

    fn capacity_pages(&self) -> u32 {
        self.working.capacity_pages() + self.priority_pages_max
    }

    fn dirty_pages(&self) -> u32 {
        self.working.dirty_pages() + self.priority.dirty_pages()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.working.validate();
        self.priority.validate();
        assert!(self.priority.len() <= self.priority_pages_max, "the regions stay in their bounds");
        assert!(self.let_go.is_empty(), "a page on its way");
    }
}
