//! W-TinyLFU: a small LRU window in front of a segmented LRU. A page that leaves the window is
//! admitted only if it was requested more often, lately, than the page that it would replace.
//!
//! Source: Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy", ACM
//! Transactions on Storage 13(4), 2017, sections 3 and 4. The window has the share `window` of the
//! cache, at least one page; four fifths of the rest are protected. There is no doorkeeper, only
//! the frequency sketch (`FrequencySketch`). It is halved first after `sample` times as many
//! requests as there are frames, then after half as many each time.
//!
//! Weak if the working set moves: formerly popular pages keep out the now popular ones until the
//! sketch has aged. Bursts longer than the window are refused (database loads with much recency,
//! for which the window's share is decisive). Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::frequency_sketch::FrequencySketch;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// New pages.
const WINDOW: u32 = 0;
/// Admitted pages.
const PROBATION: u32 = 1;
/// Pages used again after they were admitted.
const PROTECTED: u32 = 2;

/// Window TinyLFU.
#[derive(Debug)]
pub struct WTinyLfu<T> {
    /// Each list in the order of last use or arrival.
    lists: FrameLists<T>,
    sketch: FrequencySketch,
    /// Maximum number of pages in the window.
    window_max: u32,
    /// Maximum number of protected pages.
    protected_max: u32,
}

impl<T: PageTable> WTinyLfu<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. The window has the share
    /// `window_share` (0 to 1); frequencies are halved after `sample` requests per frame.
    pub fn new(frames: u32, pages_end: u64, window_share: f64, sample: u32) -> Self {
        assert!(frames > 0 && (0.0..=1.0).contains(&window_share));
        let window_max = ((f64::from(frames) * window_share) as u32).max(1);
        WTinyLfu {
            lists: FrameLists::new(3, frames, pages_end),
            sketch: FrequencySketch::new(frames, sample),
            window_max,
            protected_max: (u64::from(frames - window_max) * 4 / 5) as u32,
        }
    }

    /// A page of the window or the main lists was used.
    fn used(&mut self, frame: u32) {
        match self.lists.list_of(frame) {
            PROBATION if self.protected_max > 0 => {
                self.lists.move_to_head(frame, PROTECTED);
                if self.lists.len(PROTECTED) > self.protected_max {
                    self.lists.move_to_head(self.lists.tail(PROTECTED), PROBATION);
                }
            }
            list => self.lists.move_to_head(frame, list),
        }
    }

    /// If the window is full, its oldest page moves to the main lists. If the cache is full as
    /// well, that page or the victim of the main lists is evicted: the one requested less often.
    fn make_room(&mut self, effects: &mut Vec<Effect>) {
        if self.lists.len(WINDOW) < self.window_max {
            return;
        }
        let candidate = self.lists.tail(WINDOW);
        if self.lists.is_full() {
            let victim = self.main_victim();
            let estimate = |frame: u32| self.sketch.estimate(self.lists.key(frame).page());
            let admitted = victim != NO_FRAME && estimate(candidate) > estimate(victim);
            let loser = if admitted { victim } else { candidate };
            effects.push(self.lists.remove(loser).evicted());
            if !admitted {
                return;
            }
        }
        self.lists.move_to_head(candidate, PROBATION);
    }

    /// The victim of the main lists.
    fn main_victim(&self) -> u32 {
        match self.lists.tail(PROBATION) {
            NO_FRAME => self.lists.tail(PROTECTED),
            frame => frame,
        }
    }
}

impl<T: PageTable> Policy for WTinyLfu<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        self.sketch.increment(request.page());
        let frame = self.lists.find(request.page());
        if frame != NO_FRAME {
            self.lists.key_mut(frame).touch(request);
            self.used(frame);
            return true;
        }
        self.make_room(effects);
        self.lists.push(request, WINDOW);
        false
    }

    answers_of!(lists: contains cleaned forget capacity_pages dirty_pages);

    /// The window's pages first, as they lose against the cached pages when only unknown pages
    /// come; then the others, probation first. Each list is oldest first.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let lists = [WINDOW, PROBATION, PROTECTED];
        let frames = lists.into_iter().flat_map(|list| self.lists.oldest_first(list));
        self.lists.dirty_of(frames, pages_max, pages);
    }

    fn memory_bytes(&self) -> u64 {
        self.lists.memory_bytes() + self.sketch.memory_bytes()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        assert!(self.lists.len(WINDOW) <= self.window_max, "the window is too long");
        assert!(self.lists.len(PROTECTED) <= self.protected_max, "too many pages are protected");
    }
}
