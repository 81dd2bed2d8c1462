//! CASA (cost-aware self-adaptive): a list of clean and a list of dirty pages. Their sizes follow
//! the value of a hit in each, given the costs of reads and writes.
//!
//! Source: Ou, "Caching for flash-based databases and flash-based caching for databases"
//! (dissertation, TU Kaiserslautern), section 5.2, Algorithm 3; Ou, Härder, "Clean first or dirty
//! first? A cost-aware self-adaptive buffer replacement policy", IDEAS 2010.
//!
//! Points that the text leaves open:
//! - if the dirty list is empty (after all dirty pages left), the clean list may be no longer than
//!   its target: then the oldest clean page leaves;
//! - a page that is written back while it stays becomes the oldest clean page. Its right place in the order of
//!   references could only be found by a search. On page traces of PostgreSQL under TPC-C, SAWC missed up to 8 % less
//!   with this rule than if such a page became the newest clean page.
//!
//! Weak against scans and loops, as LRU is: both lists are in the order of last use. A write that
//! hits a clean page moves no target, and reads of dirty pages have no value for it.
use crate::answers::answers_of;
use crate::cost_detection::{CostSpec, Costs};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Gauge, Key, Physical, Policy, Request};
use tantalum_base::PageNo;

/// The list of clean pages and the list of dirty ones. The dirty bit of a page's key tells which
/// one the page is in.
const CLEAN: u32 = 0;
const DIRTY: u32 = 1;

/// Clean and dirty pages in two lists of adaptive sizes.
#[derive(Debug)]
pub struct Casa<T> {
    /// Both lists in the order of last use.
    frames: FrameLists<T>,
    /// The paper's tau, from 0 to all frames: the target size of the clean list.
    clean_target_pages: f64,
    costs: Costs,
}

impl<T: PageTable> Casa<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64, cost: CostSpec) -> Self {
        Casa {
            frames: FrameLists::new(2, frames, pages_end),
            clean_target_pages: 0.0,
            costs: Costs::new(cost),
        }
    }

    fn clean_pages(&self) -> u32 {
        self.frames.len(CLEAN)
    }

    fn dirty(&self) -> u32 {
        self.frames.len(DIRTY)
    }

    pub(crate) fn frames(&self) -> &FrameLists<T> {
        &self.frames
    }

    /// Dirty pages, least recently used first.
    pub(crate) fn dirty_oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        self.frames.oldest_first(DIRTY)
    }

    /// Lines 2 to 11: a hit in `frame`.
    #[inline]
    pub(crate) fn hit(&mut self, frame: u32, request: Request) {
        let (clean, dirty) = (f64::from(self.clean_pages()), f64::from(self.dirty()));
        if self.frames.key(frame).is_dirty() {
            if request.is_write() {
                let step = self.costs.write() * (clean / dirty);
                self.clean_target_pages = (self.clean_target_pages - step).max(0.0);
            }
            self.frames.move_to_head(frame, DIRTY);
        } else if request.is_write() {
            self.frames.key_mut(frame).touch(request);
            self.frames.move_to_head(frame, DIRTY);
        } else {
            let step = self.costs.read() * (dirty / clean);
            let most = f64::from(self.frames.capacity_pages());
            self.clean_target_pages = (self.clean_target_pages + step).min(most);
            self.frames.move_to_head(frame, CLEAN);
        }
    }

    /// Lines 14 to 19: the frame to evict so that a page can come in; [`NO_FRAME`] while there are
    /// free frames.
    #[inline]
    pub(crate) fn victim(&self) -> u32 {
        if !self.frames.is_full() {
            NO_FRAME
        } else if f64::from(self.clean_pages()) > self.clean_target_pages || self.dirty() == 0 {
            self.frames.tail(CLEAN)
        } else {
            self.frames.tail(DIRTY)
        }
    }

    /// Removes the page in `frame`.
    #[inline]
    pub(crate) fn remove(&mut self, frame: u32) -> Key {
        self.frames.remove(frame)
    }

    /// Lines 23 to 26: puts the page of `request` into a free frame, which is returned.
    #[inline]
    pub(crate) fn insert(&mut self, request: Request) -> u32 {
        let list = if request.is_write() { DIRTY } else { CLEAN };
        self.frames.push(request, list)
    }

    /// The page in `frame`, which was dirty, is written back and stays.
    pub(crate) fn clean(&mut self, frame: u32) {
        self.frames.key_mut(frame).clean();
        self.frames.move_to_tail(frame, CLEAN);
    }
}

impl<T: PageTable> Policy for Casa<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            self.hit(frame, request);
            return true;
        }
        let victim = self.victim();
        if victim != NO_FRAME {
            effects.push(self.remove(victim).evicted());
        }
        self.insert(request);
        false
    }

    answers_of!(frames: contains forget capacity_pages);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        self.frames.dirty_of(self.dirty_oldest_first(), pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        let frame = self.frames.find(page);
        if frame != NO_FRAME && self.frames.key(frame).is_dirty() {
            self.clean(frame);
        }
    }

    fn measured(&mut self, operation: Physical, time_ns: u64) {
        self.costs.measured(operation, time_ns);
    }

    fn gauges(&self) -> Vec<Gauge> {
        let mut gauges = vec![
            Gauge::new("clean_pages", f64::from(self.clean_pages())),
            Gauge::new("dirty_pages", f64::from(self.dirty())),
            Gauge::new("clean_target_pages", self.clean_target_pages),
            Gauge::new("write_cost_ratio", self.costs.write() / self.costs.read()),
        ];
        if let Some((read_ns, write_ns)) = self.costs.means_ns() {
            gauges.push(Gauge::new("read_cost_ns", read_ns));
            gauges.push(Gauge::new("write_cost_ns", write_ns));
        }
        gauges
    }

    fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes() + self.costs.memory_bytes()
    }

    fn dirty_pages(&self) -> u32 {
        self.dirty()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.frames.validate();
        for (list, dirty) in [(CLEAN, false), (DIRTY, true)] {
            let mut frames = self.frames.oldest_first(list);
            assert!(frames.all(|frame| self.frames.key(frame).is_dirty() == dirty), "wrong list");
        }
        assert!((0.0..=f64::from(self.frames.capacity_pages())).contains(&self.clean_target_pages));
    }
}
