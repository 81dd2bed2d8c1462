//! CCF-LRU, cold-clean first: clean pages used once leave first, then cold dirty ones. Hot pages
//! get a second chance.
//!
//! Source: Li, Jin, Su, Cui, Yue, "CCF-LRU: a new buffer replacement algorithm for flash memory",
//! IEEE Transactions on Consumer Electronics 55(3), 2009. Cold clean pages are in a list of their
//! own; all others are in a mixed list. A page comes in cold; any later use makes it hot and moves
//! it to the head of the mixed list. The victim is the oldest cold clean page. If there is none, it
//! is the oldest page of the mixed list, provided that page is cold. A hot one turns cold: if it is
//! clean, it moves to the head of the cold clean list; if dirty, to the head of the mixed list. The
//! search goes on until it meets a cold dirty page.
//!
//! The paper leaves two points open. Here, if the mixed list becomes empty during that search (no
//! page of it was dirty), the oldest cold clean page leaves. A cold dirty page that is written back
//! while it stays joins the cold clean list, in the order of last use.
//!
//! Weak if reads are costly as well: no minimum protects clean pages, so a page read once is mostly
//! gone before its second use. On PostgreSQL's page requests under TPC-C, with 4,000 pages cached,
//! it has half as many misses again as LRU, to save a tenth of the writes. One miss may move many
//! pages, but at most two such moves follow from each use of a page.
use crate::answers::answers_of;
use crate::frame_lists::AgedLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

const COLD_CLEAN: u32 = 0;
const MIXED: u32 = 1;

/// Evicts cold clean pages first.
#[derive(Debug)]
pub struct CcfLru<T> {
    /// Both lists in the order of last use or second chance. A frame's mark means that its page is
    /// cold.
    lists: AgedLists<T>,
}

impl<T: PageTable> CcfLru<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64) -> Self {
        CcfLru { lists: AgedLists::new(2, frames, pages_end) }
    }

    /// The victim. Ends within two rounds, as each step turns a frame cold.
    fn victim(&mut self) -> u32 {
        let cold_clean = self.lists.tail(COLD_CLEAN);
        if cold_clean != NO_FRAME {
            return cold_clean;
        }
        loop {
            let oldest = self.lists.tail(MIXED);
            if oldest == NO_FRAME {
                return self.lists.tail(COLD_CLEAN);
            }
            let key = self.lists.key_mut(oldest);
            if key.is_marked() {
                return oldest;
            }
            key.mark();
            let list = if key.is_dirty() { MIXED } else { COLD_CLEAN };
            self.lists.move_to_head(oldest, list);
        }
    }
}

impl<T: PageTable> Policy for CcfLru<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let mut frame = self.lists.find(request.page());
        if frame != NO_FRAME {
            let key = self.lists.key_mut(frame);
            key.touch(request);
            key.unmark();
            self.lists.move_to_head(frame, MIXED);
            return true;
        }
        let list = if request.is_write() { MIXED } else { COLD_CLEAN };
        if self.lists.is_full() {
            frame = self.victim();
            effects.push(self.lists.replace(frame, request, list).evicted());
        } else {
            frame = self.lists.push(request, list);
        }
        self.lists.key_mut(frame).mark();
        false
    }

    answers_of!(lists: contains forget capacity_pages dirty_pages memory_bytes);

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let of = |cold: bool| {
            let oldest_first = self.lists.oldest_first(MIXED);
            oldest_first.filter(move |&frame| self.lists.key(frame).is_marked() == cold)
        };
        self.lists.dirty_of(of(true).chain(of(false)), pages_max, pages);
    }

    fn cleaned(&mut self, page: PageNo) {
        let frame = self.lists.cleaned(page);
        if frame != NO_FRAME && self.lists.key(frame).is_marked() {
            self.lists.move_by_age(frame, COLD_CLEAN);
        }
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        let keys = |list| self.lists.oldest_first(list).map(|frame| self.lists.key(frame));
        assert!(keys(COLD_CLEAN).all(|key| key.is_marked() && !key.is_dirty()));
        assert!(keys(MIXED).all(|key| !key.is_marked() || key.is_dirty()));
    }
}
