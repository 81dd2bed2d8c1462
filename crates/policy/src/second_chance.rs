//! Second Chance: a FIFO queue. If the oldest page was used since it came to the front, it goes to
//! the end of the queue once more instead of leaving.
//!
//! Source: Tanenbaum, "Operating Systems: Design and Implementation", 1987; Corbató 1968 for the
//! idea. It decides exactly as CLOCK with one bit does, page by page. CLOCK moves a hand over
//! frames that stay; this moves the pages themselves through a list, at 8 bytes more a page and six
//! writes to memory for each page passed over. In both, a page comes in with its bit clear; only
//! the cost differs.
//!
//! Weak as CLOCK is, against scans and loops. It ignores how often a page was used and the cost of
//! writing it back. A miss may walk over all pages.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// FIFO with a reference bit.
#[derive(Debug)]
pub struct SecondChance<T> {
    /// The queue, newest at the head; a frame's mark is its reference bit.
    frames: FrameLists<T, ()>,
}

impl<T: PageTable> SecondChance<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        SecondChance { frames: FrameLists::new(1, frames, pages_end) }
    }
}

impl<T: PageTable> Policy for SecondChance<T> {
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
            let mut victim = self.frames.tail(0);
            while self.frames.key(victim).is_marked() {
                self.frames.key_mut(victim).unmark();
                self.frames.move_to_head(victim, 0);
                victim = self.frames.tail(0);
            }
            effects.push(self.frames.replace(victim, request, 0).evicted());
        } else {
            self.frames.push(request, 0);
        }
        false
    }

    answers_of!(frames: contains cleaned forget capacity_pages dirty_pages memory_bytes validate);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let of = |marked: bool| {
            let frames = self.frames.oldest_first(0);
            frames.filter(move |&frame| self.frames.key(frame).is_marked() == marked)
        };
        self.frames.dirty_of(of(false).chain(of(true)), pages_max, pages);
    }
}
