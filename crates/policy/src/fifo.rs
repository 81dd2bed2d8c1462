//! FIFO: the page that came in first is evicted first, used or not.
//!
//! Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
//! Journal 5(2), 1966.
//!
//! Weak on every load with a hot set: hot pages are dropped as soon as cold ones, and a larger
//! cache may even miss more (Belady's anomaly). A hit costs only the lookup.
use crate::answers::answers_of;
use crate::frame_ring::FrameRing;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// First in, first out.
#[derive(Debug)]
pub struct Fifo<T> {
    ring: FrameRing<T>,
}

impl<T: PageTable> Fifo<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        Fifo { ring: FrameRing::new(frames, pages_end) }
    }
}

impl<T: PageTable> Policy for Fifo<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.ring.find(request.page());
        if frame != NO_FRAME {
            self.ring.key_mut(frame).touch(request);
            return true;
        }
        if self.ring.is_full() {
            effects.push(self.ring.replace(request).evicted());
        } else {
            self.ring.push(request);
        }
        false
    }

    answers_of!(ring: contains cleaned capacity_pages dirty_pages memory_bytes validate);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        self.ring.dirty_of(self.ring.oldest_first(), pages_max, pages);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.ring.find(page);
        if frame != NO_FRAME {
            self.ring.remove(frame, |_, _| {});
        }
        frame != NO_FRAME
    }
}
