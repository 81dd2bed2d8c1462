//! LRU-K: evicts the page whose K-th last use is longest ago; pages with fewer than K uses leave
//! first.
//!
//! Source: O'Neil, O'Neil, Weikum, "The LRU-K page replacement algorithm for database disk
//! buffering", SIGMOD 1993, sections 2.1.1 and 2.1.2, figure 2.1. Time is counted in requests. Uses
//! of a page within `correlated` requests of its last one count as one, and during that time the
//! page is evicted only if no other page can be. Of several pages with fewer than K uses, the least
//! recently used one leaves. One thing differs: the paper keeps the history of an evicted page for
//! a fixed time. Here it is kept for `history` times as many pages as are cached, and the page
//! evicted longest ago is dropped first, so that memory is bounded.
//!
//! Weak if the second last use predicts little: right after the working set changes, and if several
//! fixes of a page in one query look like uses (a reason to set `correlated`). Each request takes
//! time logarithmic in the cache size. Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frame_heap::FrameHeap;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::registry::PolicySpec;
use tantalum_base::PageNo;

/// Cached, used within the correlated reference period.
const RECENT: u32 = 0;
/// Cached; may be evicted.
const ELIGIBLE: u32 = 1;
/// Evicted; the times of its uses are kept.
const HISTORY: u32 = 2;
/// Returning from the history to the cache, within one request.
const RETURNING: u32 = 3;

/// The options of LRU-K.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LruKOptions {
    /// K: which last use counts, 1 to 8.
    pub k: u32,
    /// Number of evicted pages whose times are kept, as a multiple of the frames: 0 to 2.
    pub history: f64,
    /// Requests within which uses of a page count as one: the correlated reference period.
    pub correlated: u64,
}

/// Evicts by the K-th last use.
#[derive(Debug)]
pub struct LruK<T> {
    /// Recent and history pages in the order of last use and of eviction.
    lists: FrameLists<T>,
    /// The eligible frames, by [`rank`].
    heap: FrameHeap,
    times: Times,
    capacity: u32,
    history_max: u32,
    correlated: u64,
    /// Requests so far: the time of the current one.
    now: u64,
}

/// The times at which each frame's page was used: the paper's HIST(1) to HIST(K) and LAST; 0 means
/// "not known".
#[derive(Debug)]
struct Times {
    k: usize,
    all: Vec<u64>,
}

impl Times {
    fn of(&mut self, frame: u32) -> &mut [u64] {
        let len = self.k + 1;
        &mut self.all[frame as usize * len..][..len]
    }

    fn last(&self, frame: u32) -> u64 {
        self.all[(frame as usize + 1) * (self.k + 1) - 1]
    }

    /// The eviction rank of a frame: HIST(K), then LAST.
    fn rank(&self, frame: u32) -> (u64, u64) {
        let last = (frame as usize + 1) * (self.k + 1) - 1;
        (self.all[last - 1], self.all[last])
    }

    /// Records a use at `now` that counts; adds `correlated_for` to the times of earlier uses.
    fn used(&mut self, frame: u32, now: u64, correlated_for: u64) {
        let k = self.k;
        let times = self.of(frame);
        for i in (1..k).rev() {
            times[i] = if times[i - 1] == 0 { 0 } else { times[i - 1] + correlated_for };
        }
        (times[0], times[k]) = (now, now);
    }
}

impl<T: PageTable> LruK<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64, options: LruKOptions) -> Self {
        let LruKOptions { k, history, correlated } = options;
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        assert!((1..=8).contains(&k) && (0.0..=2.0).contains(&history), "{options:?}");
        let history_max = (f64::from(frames) * history) as u32;
        let lists = FrameLists::new(4, frames + history_max, pages_end);
        let frames_end = lists.frames_end();
        let k = k as usize;
        LruK {
            lists,
            heap: FrameHeap::new(frames, frames_end),
            times: Times { k, all: vec![0; frames_end * (k + 1)] },
            capacity: frames,
            history_max,
            correlated,
            now: 0,
        }
    }

    /// Makes pages eligible for eviction if their last use is longer ago than the correlated
    /// reference period.
    fn end_periods(&mut self) {
        loop {
            let frame = self.lists.tail(RECENT);
            if frame == NO_FRAME || self.now - self.times.last(frame) <= self.correlated {
                break;
            }
            self.lists.move_to_head(frame, ELIGIBLE);
            self.heap.push(frame, |frame| self.times.rank(frame));
        }
    }

    fn hit(&mut self, frame: u32, request: Request) {
        self.lists.key_mut(frame).touch(request);
        let now = self.now;
        if self.lists.list_of(frame) == ELIGIBLE {
            self.heap.remove(frame, |frame| self.times.rank(frame));
            let correlated_for = self.times.last(frame) - self.times.of(frame)[0];
            self.times.used(frame, now, correlated_for);
        } else {
            let k = self.times.k;
            self.times.of(frame)[k] = now;
        }
        self.lists.move_to_head(frame, RECENT);
    }

    fn evict(&mut self, effects: &mut Vec<Effect>) {
        let victim = match self.heap.top() {
            Some(frame) => {
                self.heap.remove(frame, |frame| self.times.rank(frame));
                frame
            }
            None => self.lists.tail(RECENT),
        };
        effects.push(self.lists.evict_to(victim, HISTORY, self.history_max));
    }
}

impl<T: PageTable> Policy for LruK<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        self.now += 1;
        self.end_periods();
        let frame = self.lists.find(request.page());
        if frame != NO_FRAME && self.lists.list_of(frame) != HISTORY {
            self.hit(frame, request);
            return true;
        }
        if frame != NO_FRAME {
            // Taken out of the history first, so that the page about to be evicted does not push it
            // out.
            self.lists.move_to_head(frame, RETURNING);
        }
        if self.lists.cached() == self.capacity {
            self.evict(effects);
        }
        let frame = if frame == NO_FRAME {
            let frame = self.lists.push(request, RECENT);
            self.times.of(frame).fill(0);
            frame
        } else {
            self.lists.key_mut(frame).touch(request);
            self.lists.move_to_head(frame, RECENT);
            frame
        };
        self.times.used(frame, self.now, 0);
        false
    }

    answers_of!(lists: contains_cached cleaned dirty_pages);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let cached = self.lists.oldest_first(RECENT).chain(self.lists.oldest_first(ELIGIBLE));
        let mut dirty: Vec<u32> =
            cached.filter(|&frame| self.lists.key(frame).is_dirty()).collect();
        dirty.sort_unstable_by_key(|&frame| self.times.rank(frame));
        self.lists.dirty_of(dirty.into_iter(), pages_max, pages);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.lists.find_cached(page);
        if frame == NO_FRAME {
            return false;
        }
        if self.lists.list_of(frame) == ELIGIBLE {
            self.heap.remove(frame, |frame| self.times.rank(frame));
        }
        self.lists.remove(frame);
        true
    }

    fn memory_bytes(&self) -> u64 {
        let times = (self.times.all.len() * size_of::<u64>()) as u64;
        self.lists.memory_bytes() + self.heap.memory_bytes() + times
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        self.heap.validate(|frame| self.times.rank(frame));
        assert!(self.lists.cached() <= self.capacity, "more pages than frames");
        assert!(self.lists.len(HISTORY) <= self.history_max, "too much history");
        let is_recent = |frame| self.now - self.times.last(frame) <= self.correlated.max(1);
        assert!(self.lists.oldest_first(RECENT).all(is_recent));
    }
}
