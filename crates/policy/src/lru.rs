//! LRU: evicts the page that was not used for the longest time.
//!
//! Source: Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM
//! Systems Journal 9(2), 1970. A stack algorithm: a larger cache never misses more.
//!
//! Weak against scans, and against loops a little longer than the cache (every page of such a loop
//! misses). It ignores how often a page was used and the cost of writing it back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// Least recently used first.
#[derive(Debug)]
pub struct Lru<T> {
    /// In the order of last use.
    frames: FrameLists<T, ()>,
}

impl<T: PageTable> Lru<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        Lru { frames: FrameLists::new(1, frames, pages_end) }
    }
}

impl<T: PageTable> Policy for Lru<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.frames.find(request.page());
        if frame != NO_FRAME {
            self.frames.key_mut(frame).touch(request);
            self.frames.move_to_head(frame, 0);
            return true;
        }
        if self.frames.is_full() {
            let victim = self.frames.tail(0);
            effects.push(self.frames.replace(victim, request, 0).evicted());
        } else {
            self.frames.push(request, 0);
        }
        false
    }

    answers_of!(frames: contains cleaned forget capacity_pages dirty_pages memory_bytes validate);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        self.frames.dirty_of(self.frames.oldest_first(0), pages_max, pages);
    }
}
