//! ARC: two LRU lists, one of pages seen once and one of pages seen again. Their shares of the
//! cache follow the requests for pages lately evicted from each list.
//!
//! Source: Megiddo, Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003,
//! figure 4. T1 and T2 hold the cached pages; B1 and B2 remember as many evicted ones. The target
//! `p` for T1 is a real number, as in the paper. Programs that round each step of it to a whole
//! page get slightly different counts.
//!
//! Weak on loops longer than the cache, where it behaves as LRU. A page becomes frequent by its
//! second use, however close to the first, as with several fixes of a page by one query. It
//! remembers as many pages as it caches, which doubles its memory. It ignores the cost of writing
//! back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::registry::PolicySpec;
use tantalum_base::PageNo;

/// Cached, seen once since it came in.
const T1: u32 = 0;
/// Cached, seen again.
const T2: u32 = 1;
/// Evicted from T1, remembered.
const B1: u32 = 2;
/// Evicted from T2, remembered.
const B2: u32 = 3;

/// Adaptive replacement cache.
#[derive(Debug)]
pub struct Arc<T> {
    /// T1, T2, B1 and B2, each in the order of last use or eviction. Together at most twice the
    /// cache; T1 and B1 at most the cache.
    lists: FrameLists<T>,
    /// Maximum number of cached pages: `c`.
    capacity: u32,
    /// Target for the length of T1, between 0 and `c`: `p`.
    target: f64,
}

impl<T: PageTable> Arc<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        Arc { lists: FrameLists::new(4, 2 * frames, pages_end), capacity: frames, target: 0.0 }
    }

    /// The paper's REPLACE: makes room by moving the oldest page of T1 or T2 to B1 or B2. Does
    /// nothing if there is room, for example after a page was forgotten.
    fn replace(&mut self, asked_in_b2: bool, effects: &mut Vec<Effect>) {
        if self.lists.cached() < self.capacity {
            return;
        }
        let once = f64::from(self.lists.len(T1));
        let from_once = once >= 1.0 && (once > self.target || (asked_in_b2 && once == self.target));
        let (from, to) = if from_once { (T1, B1) } else { (T2, B2) };
        let victim = self.lists.tail(from);
        effects.push(self.lists.key(victim).evicted());
        self.lists.key_mut(victim).clean();
        self.lists.move_to_head(victim, to);
    }

    /// Cases II and III: the page was evicted lately and is remembered. The list that it left
    /// should have been longer.
    fn remembered(&mut self, frame: u32, request: Request, effects: &mut Vec<Effect>) {
        let (b1, b2) = (f64::from(self.lists.len(B1)), f64::from(self.lists.len(B2)));
        let in_b2 = self.lists.list_of(frame) == B2;
        self.target = if in_b2 {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        } else {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.capacity))
        };
        self.replace(in_b2, effects);
        self.lists.key_mut(frame).touch(request);
        self.lists.move_to_head(frame, T2);
    }

    /// Case IV: the page is not remembered.
    fn unknown(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let len = |list| self.lists.len(list);
        if len(T1) + len(B1) == self.capacity {
            if len(T1) < self.capacity {
                self.lists.remove(self.lists.tail(B1));
                self.replace(false, effects);
            } else {
                let victim = self.lists.tail(T1);
                effects.push(self.lists.remove(victim).evicted());
            }
        } else {
            if (0..4).map(len).sum::<u32>() == 2 * self.capacity {
                self.lists.remove(self.lists.tail(B2));
            }
            self.replace(false, effects);
        }
        self.lists.push(request, T1);
    }
}

impl<T: PageTable> Policy for Arc<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        if frame == NO_FRAME {
            self.unknown(request, effects);
            return false;
        }
        if self.lists.list_of(frame) > T2 {
            self.remembered(frame, request, effects);
            return false;
        }
        self.lists.key_mut(frame).touch(request);
        self.lists.move_to_head(frame, T2);
        true
    }

    answers_of!(lists: contains_cached cleaned forget_cached dirty_pages memory_bytes);

    /// The order in which pages would leave if only unknown pages came: while T1 is within its
    /// target, each replaces a page of T2 and lengthens T1; after that the pages of T1 leave.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let room = self.capacity - self.lists.cached();
        let once = self.lists.len(T1) + room;
        let first = if once == self.capacity || f64::from(once) > self.target {
            0
        } else {
            self.target as usize - once as usize + 1
        };
        let again = || self.lists.oldest_first(T2);
        let frames = again().take(first).chain(self.lists.oldest_first(T1));
        self.lists.dirty_of(frames.chain(again().skip(first)), pages_max, pages);
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        let len = |list| self.lists.len(list);
        assert!(self.lists.cached() <= self.capacity, "more pages than frames");
        assert!(len(T1) + len(B1) <= self.capacity, "T1 and B1 are longer than the cache");
        assert!((0.0..=f64::from(self.capacity)).contains(&self.target));
        let ghosts = self.lists.oldest_first(B1).chain(self.lists.oldest_first(B2));
        assert!(ghosts.into_iter().all(|frame| !self.lists.key(frame).is_dirty()));
    }
}
