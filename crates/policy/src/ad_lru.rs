//! AD-LRU, adaptive double LRU: a cold queue for pages used once and a hot queue for pages used
//! again. Each queue evicts its oldest clean page first.
//!
//! Source: Jin, Ou, Härder, Li, "AD-LRU: an efficient buffer replacement algorithm for flash-based
//! databases", Data & Knowledge Engineering 72, 2012. A page enters the cold queue; each later use
//! moves it to the head of the hot queue. The victim comes from the cold queue while that has more
//! than `min_lc` pages (a share of the frames, rounded down), otherwise from the hot queue. Within
//! the queue the victim is the oldest clean page (the paper's FC pointer points at it). If all
//! pages are dirty, the victim is the oldest one, after a second chance that a cold flag records,
//! as in LRU-WSR.
//!
//! The independent program in SNK-DB reads the paper in the same way: the choice of the queue, the
//! place at which pages enter, and the new search for FC. Its `min_lc` is half of the cache.
//!
//! The paper leaves three points open. Here FC is not a pointer that is searched for; it is the end
//! of a queue of clean pages, so that no step walks over dirty ones. A page that is written back
//! keeps its place in the order of use. Hot pages never turn cold again. The paper tunes `min_lc`
//! to the workload; the default of a tenth is this implementation's.
//!
//! Weak on workloads with writes, because no minimum protects clean pages: once dirty pages fill
//! the hot queue and the cold queue's minimum, each clean page leaves at the next miss, even if it
//! was used again. On PostgreSQL's page requests under TPC-C, with 4,000 pages cached, it misses
//! three times as often as LRU to save a tenth of the writes, with any `min_lc` from 0.01 to 0.9;
//! CFLRU does so too if its window is the whole cache. Pages used twice in a burst count as hot for
//! good, and leave only while the cold queue is at its minimum. It ignores the costs of reads and
//! writes.
use crate::answers::answers_of;
use crate::frame_lists::AgedLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// A queue consists of two lists: its clean pages and its dirty pages.
const COLD: u32 = 0;
const HOT: u32 = 2;
const DIRTY: u32 = 1;

/// A cold and a hot LRU queue.
#[derive(Debug)]
pub struct AdLru<T> {
    /// Lists `COLD`, `COLD + DIRTY`, `HOT`, `HOT + DIRTY`, each in the order of last use or second
    /// chance. The mark of a frame is the cold flag: its page has had its second chance.
    lists: AgedLists<T>,
    cold_pages_min: u32,
}

impl<T: PageTable> AdLru<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. Victims come from the cold
    /// queue while it has more than the share `min_lc` (0 to below 1) of the frames.
    pub fn new(frames: u32, pages_end: u64, min_lc: f64) -> Self {
        assert!((0.0..1.0).contains(&min_lc), "min_lc is a share of the cache");
        AdLru {
            lists: AgedLists::new(4, frames, pages_end),
            cold_pages_min: (min_lc * f64::from(frames)) as u32,
        }
    }

    fn cold_pages(&self) -> u32 {
        self.lists.len(COLD) + self.lists.len(COLD + DIRTY)
    }

    /// The queue that provides the victim of a full cache. It is never empty: if all pages are in
    /// the cold queue, that is above its minimum.
    fn victim_queue(&self) -> u32 {
        if self.cold_pages() > self.cold_pages_min { COLD } else { HOT }
    }

    /// The victim. Ends within two rounds, as each step marks a frame.
    fn victim(&mut self) -> u32 {
        let queue = self.victim_queue();
        let first_clean = self.lists.tail(queue);
        if first_clean != NO_FRAME {
            return first_clean;
        }
        loop {
            let oldest = self.lists.tail(queue + DIRTY);
            let key = self.lists.key_mut(oldest);
            if key.is_marked() {
                return oldest;
            }
            key.mark();
            self.lists.move_to_head(oldest, queue + DIRTY);
        }
    }

    /// The dirty frames of `queue` in eviction order.
    fn dirty_frames(&self, queue: u32) -> impl Iterator<Item = u32> + '_ {
        let of = move |chance_taken: bool| {
            let oldest_first = self.lists.oldest_first(queue + DIRTY);
            oldest_first.filter(move |&frame| self.lists.key(frame).is_marked() == chance_taken)
        };
        of(true).chain(of(false))
    }
}

impl<T: PageTable> Policy for AdLru<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        if frame != NO_FRAME {
            let key = self.lists.key_mut(frame);
            key.touch(request);
            key.unmark();
            let dirty = u32::from(key.is_dirty());
            self.lists.move_to_head(frame, HOT + dirty);
            return true;
        }
        let list = COLD + u32::from(request.is_write());
        if self.lists.is_full() {
            let victim = self.victim();
            effects.push(self.lists.replace(victim, request, list).evicted());
        } else {
            self.lists.push(request, list);
        }
        false
    }

    answers_of!(lists: contains forget capacity_pages dirty_pages memory_bytes);

    /// Each page that comes in lengthens the cold queue. At first it fills free frames, then it
    /// replaces a page of the hot queue, until the cold queue is above its minimum. So the order
    /// is: that many pages of the hot queue, the cold queue, the rest of the hot queue.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let free = self.lists.capacity_pages() - self.lists.used();
        let from_hot = (self.cold_pages_min + 1).saturating_sub(self.cold_pages() + free) as usize;
        let clean = self.lists.oldest_first(HOT).take(from_hot).count();
        let first = self.dirty_frames(HOT).take(from_hot - clean);
        let rest = self.dirty_frames(HOT).skip(from_hot - clean);
        let frames = first.chain(self.dirty_frames(COLD)).chain(rest);
        self.lists.dirty_of(frames, pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        let frame = self.lists.cleaned(page);
        if frame != NO_FRAME {
            self.lists.move_by_age(frame, self.lists.list_of(frame) - DIRTY);
        }
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        for list in [COLD, COLD + DIRTY, HOT, HOT + DIRTY] {
            for frame in self.lists.oldest_first(list) {
                assert_eq!(self.lists.key(frame).is_dirty(), list % 2 == DIRTY);
            }
        }
    }
}
