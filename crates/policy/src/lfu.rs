//! LFU, least frequently used: evicts the page with the fewest uses since it came in; of several,
//! the least recently used one.
//!
//! Source: Coffman, Denning, "Operating systems theory", Prentice-Hall 1973, chapter 6, which leaves
//! the order among equals open. Counts are exact and do not age; the count of a page is dropped when
//! the page leaves.
//!
//! Weak if the working set changes: a page that was used often stays, however long ago that was,
//! and new pages evict each other before their second use. Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frames::Frames;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::registry::PolicySpec;
use crate::use_order::UseOrder;
use tantalum_base::PageNo;

/// Least frequently used.
#[derive(Debug)]
pub struct Lfu<T> {
    frames: Frames<T>,
    order: UseOrder,
}

impl<T: PageTable> Lfu<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        Lfu {
            frames: Frames::new(frames, pages_end),
            order: UseOrder::new(frames, frames as usize + 1),
        }
    }
}

impl<T: PageTable> Policy for Lfu<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let mut frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            self.frames.key_mut(frame).touch(request);
            self.order.used(frame);
            return true;
        }
        if self.frames.is_full() {
            frame = self.order.least_oldest();
            self.order.remove(frame);
            effects.push(self.frames.replace(frame, request).evicted());
        } else {
            frame = self.frames.take(request);
        }
        self.order.insert(frame, 1);
        false
    }

    answers_of!(frames: contains cleaned capacity_pages dirty_pages);

    /// The least frequently used first: the eviction order if nothing were used again.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let keys = self.order.least_first().map(|frame| self.frames.key(frame));
        let dirty = keys.filter(|key| key.is_dirty()).take(pages_max);
        pages.extend(dirty.map(|key| key.page()));
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.frames.find(page);
        if frame != NO_FRAME {
            self.order.remove(frame);
            self.frames.release(frame);
        }
        frame != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes() + self.order.memory_bytes()
    }

    #[cfg(test)]
    fn validate(&self) {
        assert_eq!(self.frames.validate(), self.order.validate());
        let found = |frame: u32| self.frames.find(self.frames.key(frame).page()) == frame;
        assert!(self.order.least_first().all(found), "a frame without a page is in the order");
    }
}
