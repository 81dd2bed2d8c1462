//! FIFO: the page that came first goes first, used or not.
//!
//! Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
//! Journal 5(2), 1966.
//!
//! Weak on everything that has a hot set: hot pages are dropped as soon as cold ones, and a larger
//! cache may even miss more (Belady's anomaly). Its hits cost nothing but the lookup.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Evicted, Policy, Request};
use crate::ring::FrameRing;

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
    fn access(&mut self, request: Request, evicted: &mut Vec<Evicted>) -> bool {
        let frame = self.ring.find(request.page());
        if frame != NO_FRAME {
            self.ring.key_mut(frame).touch(request);
            return true;
        }
        if self.ring.is_full() {
            evicted.push(self.ring.replace(request).evicted());
        } else {
            self.ring.push(request);
        }
        false
    }

    fn capacity_pages(&self) -> u32 {
        self.ring.capacity()
    }

    fn dirty_pages(&self) -> u32 {
        self.ring.dirty()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.ring.validate();
    }
}
