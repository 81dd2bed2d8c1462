//! 2Q: new pages pass through a FIFO queue; only pages requested again after they left it enter the
//! LRU list, which holds most of the cache.
//!
//! Source: Johnson, Shasha, "2Q: a low overhead high performance buffer management replacement
//! algorithm", VLDB 1994, section 3.2 (the full version). A1in and Am hold the cached pages; A1out
//! remembers pages that left A1in. `in` and `out` are the paper's Kin and Kout as shares of the
//! cache; its authors advise a quarter and a half.
//!
//! Weak if the working set is requested again only while it is still in A1in, which ignores hits,
//! or only after A1out has forgotten it. The two shares are fixed for every load. Blind to the cost
//! of writing back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::registry::PolicySpec;
use tantalum_base::PageNo;

/// Cached, on the first visit.
const A1_IN: u32 = 0;
/// Cached, requested again.
const AM: u32 = 1;
/// Evicted from A1in, remembered.
const A1_OUT: u32 = 2;

/// Two queues.
#[derive(Debug)]
pub struct TwoQ<T> {
    /// A1in and A1out in the order of arrival, Am in that of last use.
    lists: FrameLists<T>,
    capacity: u32,
    /// Kin: if A1in has more pages than this, it is the one to give up a page.
    in_max: u32,
    /// Kout: maximum number of pages in A1out.
    out_max: u32,
}

impl<T: PageTable> TwoQ<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. A1in has the share
    /// `in_share` (0 to 1) of the frames; A1out remembers `out_share` (0 to 2) times as many pages
    /// as there are frames.
    pub fn new(frames: u32, pages_end: u64, in_share: f64, out_share: f64) -> Self {
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        assert!((0.0..=1.0).contains(&in_share) && (0.0..=2.0).contains(&out_share));
        let out_max = (f64::from(frames) * out_share) as u32;
        TwoQ {
            lists: FrameLists::new(3, frames + out_max, pages_end),
            capacity: frames,
            in_max: (f64::from(frames) * in_share) as u32,
            out_max,
        }
    }

    /// The paper's reclaimfor: makes room for a page.
    fn reclaim(&mut self, effects: &mut Vec<Effect>) {
        if self.lists.cached() < self.capacity {
            return;
        }
        if self.lists.len(A1_IN) <= self.in_max && self.lists.len(AM) > 0 {
            let victim = self.lists.tail(AM);
            effects.push(self.lists.remove(victim).evicted());
            return;
        }
        let victim = self.lists.tail(A1_IN);
        effects.push(self.lists.evict_to(victim, A1_OUT, self.out_max));
    }
}

impl<T: PageTable> Policy for TwoQ<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        if frame == NO_FRAME {
            self.reclaim(effects);
            self.lists.push(request, A1_IN);
            return false;
        }
        match self.lists.list_of(frame) {
            A1_IN => self.lists.key_mut(frame).touch(request),
            AM => {
                self.lists.key_mut(frame).touch(request);
                self.lists.move_to_head(frame, AM);
            }
            // Removed from A1out first, so that the eviction does not push it out.
            _ => {
                self.lists.remove(frame);
                self.reclaim(effects);
                self.lists.push(request, AM);
                return false;
            }
        }
        true
    }

    answers_of!(lists: contains_cached cleaned forget_cached dirty_pages memory_bytes);

    /// The order in which pages would leave if only unknown pages came: Am gives pages until A1in
    /// has its share, then A1in.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let new = self.lists.len(A1_IN) + self.capacity - self.lists.cached();
        let first = (self.in_max + 1).saturating_sub(new) as usize;
        let again = || self.lists.oldest_first(AM);
        let frames = again().take(first).chain(self.lists.oldest_first(A1_IN));
        self.lists.dirty_of(frames.chain(again().skip(first)), pages_max, pages);
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        assert!(self.lists.cached() <= self.capacity, "more pages than frames");
        assert!(self.lists.len(A1_OUT) <= self.out_max, "A1out is too long");
        let mut ghosts = self.lists.oldest_first(A1_OUT);
        assert!(ghosts.all(|frame| !self.lists.key(frame).is_dirty()));
    }
}
