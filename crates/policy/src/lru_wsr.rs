//! LRU-WSR, write sequence reordering: LRU with a second chance for each dirty page.
//!
//! Source: Jung, Shim, Park, Kang, Cha, "LRU-WSR: integration of LRU and writes sequence reordering
//! for flash memory", IEEE Transactions on Consumer Electronics 54(3), 2008. The page at the end of
//! the list is evicted if it is clean, or dirty and marked cold. Any other dirty page is marked
//! cold and moves to the head. Each use of a page, and its coming in, clears the mark.
//!
//! Weak against scans, as LRU is. An unused dirty page stays for two passes through the list, and a
//! heavily read clean page leaves before it. It ignores the cost of a write: if reads cost as much,
//! it only loses hits. One miss may move many pages, but at most one such move follows from each
//! use of a page.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// LRU with a second chance for dirty pages.
#[derive(Debug)]
pub struct LruWsr<T> {
    /// In the order of last use or second chance; a frame's mark means that its page is cold.
    frames: FrameLists<T, ()>,
}

impl<T: PageTable> LruWsr<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        LruWsr { frames: FrameLists::new(1, frames, pages_end) }
    }

    /// The victim. Ends within two rounds, as each step marks a frame.
    fn victim(&mut self) -> u32 {
        loop {
            let tail = self.frames.tail(0);
            let key = self.frames.key_mut(tail);
            if !key.is_dirty() || key.is_marked() {
                return tail;
            }
            key.mark();
            self.frames.move_to_head(tail, 0);
        }
    }
}

impl<T: PageTable> Policy for LruWsr<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            let key = self.frames.key_mut(frame);
            key.touch(request);
            key.unmark();
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

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let of = |cold: bool| {
            let oldest_first = self.frames.oldest_first(0);
            oldest_first.filter(move |&frame| self.frames.key(frame).is_marked() == cold)
        };
        self.frames.dirty_of(of(true).chain(of(false)), pages_max, pages);
    }
}
