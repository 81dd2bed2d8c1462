//! OPT (Belady's MIN): the page whose next use is furthest away goes.
//!
//! Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
//! Journal 5(2), 1966; Mattson et al. 1970 prove that no policy that must bring a missed page in
//! misses less. It needs the whole trace before it starts, and is a limit to compare with.
//!
//! Weak as a limit for anything but misses: it takes no account of what writing back costs, and
//! among pages never used again (which are equal to it) takes the one in the highest frame.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Key, Policy, Request};
use std::collections::BinaryHeap;
use tantalum_base::{FastMap, PageNo};

/// A page that is not used again.
const NEVER: u32 = u32::MAX;

/// Furthest next use first, known from the trace.
#[derive(Debug)]
pub struct Opt<T> {
    /// Index 0 is unused: it stands for "no frame".
    keys: Vec<Key>,
    table: T,
    /// Frames that ever held a page; they are numbers 1..=used.
    used: u32,
    /// Of those, the ones that hold none again.
    free: Vec<u32>,
    /// `next_use[i]` is the position of the next request for the page of request `i`.
    next_use: Vec<u32>,
    /// Position of the coming request.
    now: u32,
    /// (next use, frame). What lies in the past belongs to pages used since; it stays below every
    /// current entry, so the top is always current.
    heap: BinaryHeap<(u32, u32)>,
}

impl<T: PageTable> Opt<T> {
    /// Positions in the trace are 32 bits, and the last one means "never".
    pub const REQUESTS_MAX: usize = NEVER as usize - 1;

    /// A cache of `frames` pages for exactly these requests, in this order; their pages are
    /// numbered below `pages_end`. At most [`Opt::REQUESTS_MAX`] requests.
    pub fn new(frames: u32, pages_end: u64, future: &[Request]) -> Self {
        assert!(frames > 0 && frames < u32::MAX, "a cache has 1 to 2^32 - 2 frames");
        assert!(future.len() <= Opt::<T>::REQUESTS_MAX, "positions in the trace are 32 bits");
        Opt {
            keys: vec![Key::default(); frames as usize + 1],
            table: T::new(frames, pages_end),
            used: 0,
            free: Vec::new(),
            next_use: next_uses(future),
            now: 0,
            heap: BinaryHeap::new(),
        }
    }

    fn find(&self, page: PageNo) -> u32 {
        self.table.find(page, |frame| self.keys[frame as usize].page())
    }

    /// Takes the page in `frame` out of the table.
    fn forget_page(&mut self, frame: u32) {
        let keys = &self.keys;
        self.table.remove(keys[frame as usize].page(), frame, |frame| keys[frame as usize].page());
    }

    /// Frames that hold a page.
    fn cached(&self) -> u32 {
        self.used - self.free.len() as u32
    }

    /// What is known of the frames that hold a page: (next use, frame).
    fn current(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.heap.iter().copied().filter(|(next_use, _)| *next_use >= self.now)
    }

    /// Drops the entries of the past once they are most of the heap.
    fn shrink_heap(&mut self) {
        if self.heap.len() > 4 * self.keys.len() + 1024 {
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
        let found = self.find(request.page());
        let frame = if found != NO_FRAME {
            self.keys[found as usize].touch(request);
            found
        } else {
            let frame = match self.heap.peek() {
                Some(&(_, frame)) if self.cached() as usize == self.keys.len() - 1 => {
                    self.heap.pop();
                    let old = self.keys[frame as usize];
                    self.forget_page(frame);
                    effects.push(old.evicted());
                    frame
                }
                _ => self.free.pop().unwrap_or_else(|| {
                    self.used += 1;
                    self.used
                }),
            };
            self.keys[frame as usize] = Key::new(request);
            self.table.insert(request.page(), frame);
            frame
        };
        self.heap.push((self.next_use[self.now as usize], frame));
        self.shrink_heap();
        self.now += 1;
        found != NO_FRAME
    }

    fn contains(&self, page: PageNo) -> bool {
        self.find(page) != NO_FRAME
    }

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let mut frames: Vec<(u32, u32)> = self.current().collect();
        frames.sort_unstable_by(|left, right| right.cmp(left));
        let keys = frames.iter().map(|&(_, frame)| self.keys[frame as usize]);
        pages.extend(keys.filter(|key| key.is_dirty()).take(pages_max).map(|key| key.page()));
    }

    fn cleaned(&mut self, page: PageNo) {
        match self.find(page) {
            NO_FRAME => {}
            frame => self.keys[frame as usize].clean(),
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let gone = self.find(page);
        if gone != NO_FRAME {
            self.forget_page(gone);
            self.keys[gone as usize].clean();
            self.heap.retain(|&(_, frame)| frame != gone);
            self.free.push(gone);
        }
        gone != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        let words = self.next_use.len() + 2 * self.keys.len() + 2 * self.heap.capacity();
        (words * size_of::<u32>()) as u64 + self.table.memory_bytes()
    }

    fn capacity_pages(&self) -> u32 {
        self.keys.len() as u32 - 1
    }

    fn dirty_pages(&self) -> u32 {
        self.keys[1..=self.used as usize].iter().filter(|key| key.is_dirty()).count() as u32
    }

    #[cfg(test)]
    fn validate(&self) {
        for frame in (1..=self.used).filter(|frame| !self.free.contains(frame)) {
            assert_eq!(self.find(self.keys[frame as usize].page()), frame);
        }
        assert!(self.heap.len() <= 4 * self.keys.len() + 1024, "the heap keeps its past");
        assert_eq!(self.current().count() as u32, self.cached(), "one current entry a cached page");
    }
}
