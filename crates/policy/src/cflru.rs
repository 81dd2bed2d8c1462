//! CFLRU, clean-first LRU: of the pages not used for the longest time (the window), the clean one
//! goes that was not used for the longest; where all are dirty, the oldest.
//!
//! Source: Park, Jung, Kang, Kim, Lee, "CFLRU: a replacement algorithm for flash memory", CASES
//! 2006, with the static window; the queues are from Ou, "Caching for flash-based databases and
//! flash-based caching for databases", 2012, section 3.2.1. Both forms decide alike.
//!
//! The window is a share of the frames, rounded down to whole pages. With 0 it is LRU. The paper
//! leaves open what happens when a page is written back and stays: here it keeps its place in the
//! order of use, and is a clean page of the window from then on.
//!
//! Weak as LRU is against scans; the best window depends on how much dearer writes are than reads
//! and on how many requests write; dirty pages at the end of the window stay although nobody uses
//! them, and go one by one, wherever they lie.
use crate::frames::Frames;
use crate::list::FrameList;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::recency::RecencyLists;
use tantalum_base::PageNo;

/// Pages in a window that is the share `window` of `frames`.
pub(crate) fn window_pages(window: f64, frames: u32) -> u32 {
    assert!((0.0..=1.0).contains(&window), "a window is a share of the cache");
    (window * f64::from(frames)) as u32
}

/// The original form: one LRU list, whose end is searched at each eviction. A miss costs up to as
/// many steps as the window has pages, mostly over dirty ones.
#[derive(Debug)]
pub struct CflruWalk<T> {
    /// In the order of last use.
    frames: FrameList<T>,
    window: u32,
}

impl<T: PageTable> CflruWalk<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`; the last `window` (share of
    /// the frames, 0 to 1) of the list are searched for a clean page.
    pub fn new(frames: u32, pages_end: u64, window: f64) -> Self {
        CflruWalk {
            frames: FrameList::new(frames, pages_end),
            window: window_pages(window, frames),
        }
    }

    fn victim(&self) -> u32 {
        let tail = self.frames.tail();
        let mut window = self.frames.from(tail).take(self.window as usize);
        window.find(|&frame| !self.frames.key(frame).is_dirty()).unwrap_or(tail)
    }
}

impl<T: PageTable> Policy for CflruWalk<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            self.frames.key_mut(frame).touch(request);
            self.frames.move_to_head(frame);
            return true;
        }
        if self.frames.is_full() {
            let victim = self.victim();
            effects.push(self.frames.replace(victim, request).evicted());
        } else {
            self.frames.push(request);
        }
        false
    }

    fn contains(&self, page: PageNo) -> bool {
        self.frames.find(page) != NO_FRAME
    }

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        self.frames.dirty_of(self.frames.from(self.frames.tail()), pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        self.frames.clean(page);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.frames.find(page);
        if frame != NO_FRAME {
            self.frames.remove(frame);
        }
        frame != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes()
    }

    fn capacity_pages(&self) -> u32 {
        self.frames.capacity()
    }

    fn dirty_pages(&self) -> u32 {
        self.frames.dirty()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.frames.validate();
    }
}

/// The regions: the pages outside of the window, and those in it, the clean ones apart.
const WORKING: u32 = 0;
const CLEAN: u32 = 1;
const DIRTY: u32 = 2;

/// The form with a queue of clean and a queue of dirty pages in place of the window: a victim is
/// the end of a queue.
///
/// The working region holds the pages used last, as many as are outside of a full cache's window,
/// or all where there are fewer. What is used moves there; its oldest page moves to the queues when
/// it is over-full. A page that is forgotten leaves a gap, which the next page to come in closes:
/// when the cache is full, and only then a victim is asked for, the queues hold just the window.
#[derive(Debug)]
pub struct Cflru<T> {
    frames: Frames<T>,
    /// Each of the three in the order of last use. A frame's mark says that it is in the window.
    lists: RecencyLists,
    working: u32,
    working_max: u32,
}

impl<T: PageTable> Cflru<T> {
    /// As [`CflruWalk::new`].
    pub fn new(frames: u32, pages_end: u64, window: f64) -> Self {
        Cflru {
            frames: Frames::new(frames, pages_end),
            lists: RecencyLists::new(3, frames),
            working: 0,
            working_max: frames - window_pages(window, frames),
        }
    }

    fn victim(&mut self) -> u32 {
        for list in [CLEAN, DIRTY] {
            let frame = self.lists.oldest(list);
            if frame != NO_FRAME {
                return frame;
            }
        }
        self.working -= 1;
        self.lists.oldest(WORKING)
    }

    /// Makes `frame`, which is in no list, the newest.
    #[inline]
    fn enter(&mut self, frame: u32) {
        self.lists.push(WORKING, frame);
        self.working += 1;
        if self.working > self.working_max {
            let oldest = self.lists.oldest(WORKING);
            let key = self.frames.key_mut(oldest);
            key.mark();
            self.lists.transfer(if key.is_dirty() { DIRTY } else { CLEAN }, oldest);
            self.working -= 1;
        }
    }

    /// Takes `frame` out of its region.
    #[inline]
    fn leave(&mut self, frame: u32) {
        self.lists.remove(frame);
        let key = self.frames.key_mut(frame);
        self.working -= u32::from(!key.is_marked());
        key.unmark();
    }
}

impl<T: PageTable> Policy for Cflru<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let mut frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            self.frames.key_mut(frame).touch(request);
            self.leave(frame);
            self.enter(frame);
            return true;
        }
        if self.frames.is_full() {
            frame = self.victim();
            self.lists.remove(frame);
            effects.push(self.frames.replace(frame, request).evicted());
        } else {
            frame = self.frames.take(request);
        }
        self.enter(frame);
        false
    }

    fn contains(&self, page: PageNo) -> bool {
        self.frames.find(page) != NO_FRAME
    }

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let frames = self.lists.iter(DIRTY).chain(self.lists.iter(WORKING));
        self.frames.dirty_of(frames, pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        let frame = self.frames.clean(page);
        if frame != NO_FRAME && self.frames.key(frame).is_marked() {
            self.lists.transfer(CLEAN, frame);
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.frames.find(page);
        if frame != NO_FRAME {
            self.leave(frame);
            self.frames.release(frame);
        }
        frame != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes() + self.lists.memory_bytes()
    }

    fn capacity_pages(&self) -> u32 {
        self.frames.capacity()
    }

    fn dirty_pages(&self) -> u32 {
        self.frames.dirty()
    }

    #[cfg(test)]
    fn validate(&self) {
        let listed: u32 =
            [WORKING, CLEAN, DIRTY].map(|list| self.lists.validate(list)).iter().sum();
        assert_eq!(self.frames.validate(), listed, "each cached page is in one list");
        assert_eq!(self.lists.iter(WORKING).count(), self.working as usize);
        assert!(self.working <= self.working_max);
        assert!(!self.frames.is_full() || self.working == self.working_max);
        let keys = |list| self.lists.iter(list).map(|frame| self.frames.key(frame));
        assert!(keys(WORKING).all(|key| !key.is_marked()));
        assert!(keys(CLEAN).all(|key| key.is_marked() && !key.is_dirty()));
        assert!(keys(DIRTY).all(|key| key.is_marked() && key.is_dirty()));
    }
}
