//! SLRU, segmented LRU: new pages enter a probationary segment; if they are used again there, they
//! move to a protected one. Pages for which that has no room return for another chance.
//!
//! Source: Karedla, Love, Wherry, "Caching strategies to improve disk system performance", IEEE
//! Computer 27(3), 1994. There are two segments, as in the paper; some programs have four of the
//! same size, through which pages rise one by one. `protected` is the protected segment's share.
//! The paper leaves it to be tuned; four fifths is what W-TinyLFU, whose main part this is, found
//! to be good.
//!
//! Weak if a second use says little: several fixes of a page by one query protect it. A small
//! probationary segment drops pages before their second use. Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::registry::PolicySpec;
use tantalum_base::PageNo;

/// Pages that are new, or returned from the protected segment.
const PROBATION: u32 = 0;
/// Pages used again.
const PROTECTED: u32 = 1;

/// Two LRU lists.
#[derive(Debug)]
pub struct Slru<T> {
    /// Each segment in the order of arrival or last use.
    lists: FrameLists<T>,
    /// Maximum number of protected pages.
    protected_max: u32,
}

impl<T: PageTable> Slru<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`; at most the share
    /// `protected_share` (0 to 1) of them is protected.
    pub fn new(frames: u32, pages_end: u64, protected_share: f64) -> Self {
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        assert!((0.0..=1.0).contains(&protected_share));
        Slru {
            lists: FrameLists::new(2, frames, pages_end),
            protected_max: (f64::from(frames) * protected_share) as u32,
        }
    }

    fn used(&mut self, frame: u32) {
        if self.protected_max == 0 {
            return self.lists.move_to_head(frame, PROBATION);
        }
        self.lists.move_to_head(frame, PROTECTED);
        if self.lists.len(PROTECTED) > self.protected_max {
            self.lists.move_to_head(self.lists.tail(PROTECTED), PROBATION);
        }
    }

    /// The victim: a protected page only if there is no other.
    fn victim(&self) -> u32 {
        match self.lists.tail(PROBATION) {
            NO_FRAME => self.lists.tail(PROTECTED),
            frame => frame,
        }
    }
}

impl<T: PageTable> Policy for Slru<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        if frame != NO_FRAME {
            self.lists.key_mut(frame).touch(request);
            self.used(frame);
            return true;
        }
        if self.lists.is_full() {
            let victim = self.victim();
            effects.push(self.lists.replace(victim, request, PROBATION).evicted());
        } else {
            self.lists.push(request, PROBATION);
        }
        false
    }

    answers_of!(lists: contains cleaned forget capacity_pages dirty_pages memory_bytes);

    /// Probation first, each segment oldest first.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let frames = [PROBATION, PROTECTED].into_iter();
        let frames = frames.flat_map(|list| self.lists.oldest_first(list));
        self.lists.dirty_of(frames, pages_max, pages);
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        assert!(self.lists.len(PROTECTED) <= self.protected_max, "too many pages are protected");
    }
}
