//! AD-LRU, adaptive double LRU: a cold queue of pages used once and a hot one of pages used again;
//! each gives up its oldest clean page first.
//!
//! Source: Jin, Ou, Härder, Li, "AD-LRU: an efficient buffer replacement algorithm for flash-based
//! databases", Data & Knowledge Engineering 72, 2012. A page comes into the cold queue, and each
//! later use moves it to the head of the hot one. The victim is from the cold queue while that has
//! more than `min_lc` pages (a share of the frames, rounded down), else from the hot one: there,
//! the oldest clean page (at which the paper's FC pointer points); where all are dirty, the oldest,
//! after a second chance that a cold flag records, as in LRU-WSR.
//!
//! Another program written after the paper, the one in SNK-DB, reads it in the same way: which queue
//! gives the victim, where pages enter, and how FC is found again. Its `min_lc` is half of the cache.
//!
//! What the paper leaves open, and what is done here: FC is no pointer that is searched anew, but
//! the end of a queue of the clean pages alone, so that no step walks over dirty ones; a page that
//! is written back keeps its place in the order of use; hot pages never turn cold again. The paper
//! tunes `min_lc` to the workload; the default of a tenth is this implementation's.
//!
//! Weak where requests write, as nothing bounds how few clean pages stay: when dirty pages have
//! filled the hot queue and the cold one's minimum, each clean page goes at the next miss,
//! used again or not. On PostgreSQL's page requests under TPC-C, 4,000 pages cached, it misses
//! three times as often as LRU to save a tenth of the writes, with any `min_lc` from 0.01 to 0.9,
//! and so does CFLRU where its window is the whole cache. Pages used twice in a burst count as
//! hot for good, and leave only while the cold queue is at its minimum. It does not ask what reads
//! and writes cost.
use crate::answers::answers_of;
use crate::frame_lists::AgedLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// A queue is two lists: its clean and its dirty pages.
const COLD: u32 = 0;
const HOT: u32 = 2;
const DIRTY: u32 = 1;

/// A cold and a hot LRU queue.
#[derive(Debug)]
pub struct AdLru<T> {
    /// Lists `COLD`, `COLD + DIRTY`, `HOT`, `HOT + DIRTY`, each in the order of last use or second
    /// chance. A frame's mark is the cold flag: it had its second chance.
    lists: AgedLists<T>,
    cold_pages_min: u32,
}

impl<T: PageTable> AdLru<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`; the cold queue gives up
    /// pages while it has more than the share `min_lc` (0 to below 1) of the frames.
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

    /// The queue that a full cache takes its victim from. It is not empty: with all pages in the
    /// cold one, that is above its minimum.
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

    /// The dirty frames of `queue` in the order in which it gives them up.
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

    /// Pages that come in make the cold queue longer: those that fill free frames, and then those
    /// for which the hot queue gives up a page until the cold one is above its minimum. So that is
    /// the order: these of the hot queue, the cold queue, the rest of the hot one.
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
