//! OPT (Belady's MIN): evicts the page whose next use is furthest away.
//!
//! Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
//! Journal 5(2), 1966. Mattson et al. 1970 prove that no policy that must bring in each missed page
//! misses less. It needs the whole trace before it starts; it is a limit for comparison.
//!
//! It is a limit for misses only: it ignores the cost of writing back. Among pages that are never
//! used again (equal for OPT) it evicts the one in the highest frame.
use crate::answers::answers_of;
use crate::frames::Frames;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use std::collections::BinaryHeap;
use tantalum_base::{FastMap, PageNo};

/// The next use of a page that is not used again.
const NEVER: u32 = u32::MAX;

/// Evicts the page with the furthest next use, known from the trace.
#[derive(Debug)]
pub struct Opt<T> {
    frames: Frames<T>,
    /// `next_use[i]` is the position of the next request for the page of request `i`.
    next_use: Vec<u32>,
    /// Position of the next request to be served.
    now: u32,
    /// (next use, frame). Entries with a past position belong to pages that were used since. They
    /// are less than every current entry, so the top is always current.
    heap: BinaryHeap<(u32, u32)>,
}

impl<T: PageTable> Opt<T> {
    /// Positions in the trace are 32 bits, and the last one means "never".
    pub const REQUESTS_MAX: usize = NEVER as usize - 1;

    /// A cache of `frames` pages for exactly these requests, in this order, at most
    /// [`Opt::REQUESTS_MAX`] of them. Their pages are numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64, future: &[Request]) -> Self {
        assert!(future.len() <= Opt::<T>::REQUESTS_MAX, "positions in the trace are 32 bits");
        Opt {
            frames: Frames::new(frames, pages_end),
            next_use: next_uses(future),
            now: 0,
            heap: BinaryHeap::new(),
        }
    }

    /// The current entries of the frames that hold a page: (next use, frame).
    fn current(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.heap.iter().copied().filter(|(next_use, _)| *next_use >= self.now)
    }

    fn heap_max(&self) -> usize {
        4 * (self.frames.capacity_pages() as usize + 1) + 1024
    }

    /// Drops past entries once they are most of the heap.
    fn shrink_heap(&mut self) {
        if self.heap.len() > self.heap_max() {
            let now = self.now;
            self.heap.retain(|&(next_use, _)| next_use > now);
        }
    }
}

fn next_uses(future: &[Request]) -> Vec<u32> {
    let mut coming: FastMap<PageNo, u32> = FastMap::default();
    let mut next_use = vec![NEVER; future.len()];
    for (at, request) in future.iter().enumerate().rev() {
        if let Some(next) = coming.insert(request.page(), at as u32) {
            next_use[at] = next;
        }
    }
    next_use
}

impl<T: PageTable> Policy for Opt<T> {
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        assert!((self.now as usize) < self.next_use.len(), "OPT was made for a shorter trace");
        let found = self.frames.find(request.page());
        let frame = match (found, self.heap.peek()) {
            (NO_FRAME, Some(&(_, victim))) if self.frames.is_full() => {
                self.heap.pop();
                effects.push(self.frames.replace(victim, request).evicted());
                victim
            }
            (NO_FRAME, _) => self.frames.take(request),
            (frame, _) => {
                self.frames.key_mut(frame).touch(request);
                frame
            }
        };
        self.heap.push((self.next_use[self.now as usize], frame));
        self.shrink_heap();
        self.now += 1;
        found != NO_FRAME
    }

    answers_of!(frames: contains cleaned capacity_pages dirty_pages);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let mut frames: Vec<(u32, u32)> = self.current().collect();
        frames.sort_unstable_by(|left, right| right.cmp(left));
        let keys = frames.iter().map(|&(_, frame)| self.frames.key(frame));
        pages.extend(keys.filter(|key| key.is_dirty()).take(pages_max).map(|key| key.page()));
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let gone = self.frames.find(page);
        if gone != NO_FRAME {
            self.frames.release(gone);
            self.heap.retain(|&(_, frame)| frame != gone);
        }
        gone != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        let words = self.next_use.len() + 2 * self.heap.capacity();
        (words * size_of::<u32>()) as u64 + self.frames.memory_bytes()
    }

    #[cfg(test)]
    fn validate(&self) {
        assert!(self.heap.len() <= self.heap_max(), "the heap keeps its past");
        let cached = self.frames.validate();
        assert_eq!(self.current().count() as u32, cached, "one current entry a cached page");
    }
}
