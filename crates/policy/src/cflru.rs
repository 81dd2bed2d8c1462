//! CFLRU, clean-first LRU: the window is the end of the LRU list. The victim is the oldest clean
//! page in the window; if all pages there are dirty, it is the oldest page.
//!
//! Source: Park, Jung, Kang, Kim, Lee, "CFLRU: a replacement algorithm for flash memory", CASES
//! 2006, with the static window; the queues are from Ou, "Caching for flash-based databases and
//! flash-based caching for databases", 2012, section 3.2.1. Both forms make the same decisions.
//!
//! The window is a share of the frames, rounded down to whole pages. With 0 the policy is LRU. The
//! paper leaves open what happens if a page is written back and stays: here it keeps its place in
//! the order of use, and is a clean page of the window from then on.
//!
//! Weak against scans, as LRU is. The best window depends on the cost ratio of writes to reads and
//! on the share of writes. Dirty pages at the end of the window stay although they are not used,
//! and leave one by one, wherever they lie.
use crate::answers::answers_of;
use crate::frame_lists::{AgedLists, FrameLists};
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// The number of pages in a window that is the share `window` of `frames`.
pub(crate) fn window_pages(window: f64, frames: u32) -> u32 {
    assert!((0.0..=1.0).contains(&window), "a window is a share of the cache");
    (window * f64::from(frames)) as u32
}

/// The original form: one LRU list, whose end is searched at each eviction. A miss costs up to as
/// many steps as the window has pages, mostly over dirty ones.
#[derive(Debug)]
pub struct CflruWalk<T> {
    /// In the order of last use.
    frames: FrameLists<T, ()>,
    window: u32,
    search_steps: u64,
}

impl<T: PageTable> CflruWalk<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. The last `window` (share of
    /// the frames, 0 to 1) of the list is searched for a clean page.
    pub fn new(frames: u32, pages_end: u64, window: f64) -> Self {
        CflruWalk {
            frames: FrameLists::new(1, frames, pages_end),
            window: window_pages(window, frames),
            search_steps: 0,
        }
    }

    fn victim(&mut self) -> u32 {
        let tail = self.frames.tail(0);
        let window = self.frames.from(tail).take(self.window as usize);
        let mut looked_at = 0;
        let mut window = window.inspect(|_| looked_at += 1);
        let clean = window.find(|&frame| !self.frames.key(frame).is_dirty());
        self.search_steps += looked_at;
        clean.unwrap_or(tail)
    }
}

impl<T: PageTable> Policy for CflruWalk<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            self.frames.key_mut(frame).touch(request);
            self.frames.move_to_head(frame, 0);
            return true;
        }
        if self.frames.is_full() {
            let victim = self.victim();
            effects.push(self.frames.replace(victim, request, 0).evicted());
        } else {
            self.frames.push(request, 0);
        }
        false
    }

    answers_of!(frames: contains cleaned forget capacity_pages dirty_pages memory_bytes validate);

    fn search_steps(&self) -> u64 {
        self.search_steps
    }

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        self.frames.dirty_of(self.frames.oldest_first(0), pages_max, pages);
    }
}

/// The regions: the pages outside the window, and the pages in it, with the clean ones in a list of
/// their own.
const WORKING: u32 = 0;
const CLEAN: u32 = 1;
const DIRTY: u32 = 2;

/// The form with a queue of clean and a queue of dirty pages instead of the window: a victim is the
/// end of a queue.
///
/// The working region holds the most recently used pages: as many as are outside the window of a
/// full cache, or all if there are fewer. A page that is used moves there; if the region is too
/// long, its oldest page moves to the queues. A page that is forgotten leaves a gap, which the next
/// page to come in closes. So when the cache is full (only then is a victim needed), the queues
/// hold exactly the window.
#[derive(Debug)]
pub struct Cflru<T> {
    /// Each of the three lists is in the order of last use.
    lists: AgedLists<T>,
    working_max: u32,
}

impl<T: PageTable> Cflru<T> {
    /// As [`CflruWalk::new`].
    pub fn new(frames: u32, pages_end: u64, window: f64) -> Self {
        Cflru {
            lists: AgedLists::new(3, frames, pages_end),
            working_max: frames - window_pages(window, frames),
        }
    }

    fn victim(&self) -> u32 {
        let ends = [CLEAN, DIRTY].map(|list| self.lists.tail(list));
        let in_window = ends.into_iter().find(|frame| *frame != NO_FRAME);
        in_window.unwrap_or_else(|| self.lists.tail(WORKING))
    }

    /// A page came into the working region: if it has one too many, the oldest leaves it.
    #[inline]
    fn shrink_working(&mut self) {
        if self.lists.len(WORKING) > self.working_max {
            let oldest = self.lists.tail(WORKING);
            let dirty = self.lists.key(oldest).is_dirty();
            self.lists.move_by_age(oldest, if dirty { DIRTY } else { CLEAN });
        }
    }
}

impl<T: PageTable> Policy for Cflru<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        let hit = frame != NO_FRAME;
        if hit {
            self.lists.key_mut(frame).touch(request);
            let was_working = self.lists.list_of(frame) == WORKING;
            self.lists.move_to_head(frame, WORKING);
            if was_working {
                return true;
            }
        } else if self.lists.is_full() {
            let victim = self.victim();
            effects.push(self.lists.replace(victim, request, WORKING).evicted());
        } else {
            self.lists.push(request, WORKING);
        }
        self.shrink_working();
        hit
    }

    answers_of!(lists: contains forget capacity_pages dirty_pages memory_bytes);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let frames = self.lists.oldest_first(DIRTY).chain(self.lists.oldest_first(WORKING));
        self.lists.dirty_of(frames, pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        let frame = self.lists.cleaned(page);
        if frame != NO_FRAME && self.lists.list_of(frame) == DIRTY {
            self.lists.move_by_age(frame, CLEAN);
        }
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        let working = self.lists.len(WORKING);
        assert!(working <= self.working_max);
        assert!(!self.lists.is_full() || working == self.working_max);
        let is_dirty = |frame| self.lists.key(frame).is_dirty();
        assert!(self.lists.oldest_first(CLEAN).all(|frame| !is_dirty(frame)));
        assert!(self.lists.oldest_first(DIRTY).all(is_dirty));
    }
}
