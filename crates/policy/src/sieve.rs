//! SIEVE: a FIFO queue with a hand that moves from old to new and evicts the first page not used
//! since its last pass. Pages that are kept do not move.
//!
//! Source: Zhang, Yang, Yue, Vigfusson, Rashmi, "SIEVE is simpler than LRU", NSDI 2024, section 3.
//!
//! Weak against scans and loops: new pages stay until the hand has passed the old ones, and one hit
//! counts as much as a hundred. Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// FIFO with a lazily moving hand.
#[derive(Debug)]
pub struct Sieve<T> {
    /// In the order of arrival; a frame's mark is its visited bit.
    frames: FrameLists<T, ()>,
    /// The frame at which the next search for a victim begins; `NO_FRAME` for the tail.
    hand: u32,
}

impl<T: PageTable> Sieve<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        Sieve { frames: FrameLists::new(1, frames, pages_end), hand: NO_FRAME }
    }

    /// The victim. Moves the hand to the next newer frame. Ends within two rounds, as each step
    /// clears a mark.
    fn victim(&mut self) -> u32 {
        let mut frame = if self.hand == NO_FRAME { self.frames.tail(0) } else { self.hand };
        while self.frames.key(frame).is_marked() {
            self.frames.key_mut(frame).unmark();
            let newer = self.frames.newer(frame);
            frame = if newer == NO_FRAME { self.frames.tail(0) } else { newer };
        }
        self.hand = self.frames.newer(frame);
        frame
    }
}

impl<T: PageTable> Policy for Sieve<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            let key = self.frames.key_mut(frame);
            key.touch(request);
            key.mark();
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

    answers_of!(frames: contains cleaned capacity_pages dirty_pages memory_bytes);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let tail = self.frames.tail(0);
        let from = if self.hand == NO_FRAME { tail } else { self.hand };
        let before = self.frames.from(tail).take_while(|&frame| frame != from);
        self.frames.dirty_of(self.frames.from(from).chain(before), pages_max, pages);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.frames.find(page);
        if frame != NO_FRAME {
            if self.hand == frame {
                self.hand = self.frames.newer(frame);
            }
            self.frames.remove(frame);
        }
        frame != NO_FRAME
    }

    #[cfg(test)]
    fn validate(&self) {
        self.frames.validate();
        assert!(self.hand <= self.frames.capacity_pages());
    }
}
