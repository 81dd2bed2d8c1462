//! REF, recently-evicted first: victims come from few flash blocks at a time, so that a device with
//! few log blocks can serve the writes.
//!
//! Source: Seo, Shin, "Recently-evicted-first buffer replacement policy for flash storage devices",
//! IEEE Transactions on Consumer Electronics 54(3), 2008, as described by Ou, "Caching for
//! flash-based databases and flash-based caching for databases", 2012, section 3.1.3 and, for
//! blocks of 16 pages and 4 victim blocks, 3.3. The victim window is the end of an LRU list. The
//! victim blocks are the blocks with the most pages in the window; the victim is the least recently
//! used of their pages in the window. When none is left, a new set of victim blocks is chosen.
//!
//! The descriptions leave some points open. Here the window is a share of the frames, rounded down, and at
//! least one page. Of blocks with equally many pages in the window, the one whose oldest page there is
//! older is chosen first. A block stays a victim block until the window has no page of any victim block,
//! so that pages that enter the window in the meantime may leave as well. A new set is chosen when a
//! victim is needed. The original searches the window for this; here a heap of its blocks is kept up to
//! date, and `search_steps` counts the pages that the search would look at.
//!
//! Weak on hit ratio: the sizes of blocks count, not the use of pages, so a large window (over
//! 0.75) drops hot pages. It ignores which pages are dirty, so it saves no writes; it only makes
//! them cheaper on a device with block mapping.
use crate::answers::answers_of;
use crate::cflru::window_pages;
use crate::frame_heap::FrameHeap;
use crate::frame_lists::AgedLists;
use crate::frames::Frames;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use std::cmp::Reverse;
use tantalum_base::PageNo;

/// The list of the pages outside the window. List n has the pages of block n in the window.
const WORKING: u32 = 0;

/// Evicts pages block by block, from a few blocks at a time.
#[derive(Debug)]
pub struct Ref<T> {
    /// Each list is in the order of last use.
    lists: AgedLists<T, u32>,
    /// The blocks with pages in the window, and the victim blocks. A block number takes the place
    /// of the page number.
    blocks: Frames<T>,
    /// The `blocks` that are not victim blocks, by [`rank`].
    others: FrameHeap,
    victims: Vec<u32>,
    victims_max: usize,
    pages_per_block: u64,
    search_steps: u64,
    /// Maximum number of pages outside the window: the frames minus the window.
    working_max: u32,
}

/// The rank by which victim blocks are chosen: most pages in the window first, then oldest page
/// first.
fn rank<T: PageTable>(lists: &AgedLists<T, u32>) -> impl Fn(u32) -> (Reverse<u32>, u64) {
    |block| (Reverse(lists.len(block)), lists.stamp(lists.tail(block)))
}

impl<T: PageTable> Ref<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. The window is the share
    /// `window` (0 to 1) of the frames, a block has `pages_per_block` pages, and there are up to
    /// `victims` victim blocks at a time.
    pub fn new(
        frames: u32,
        pages_end: u64,
        window: f64,
        pages_per_block: u32,
        victims: u32,
    ) -> Self {
        assert!(pages_per_block > 0 && victims > 0, "a block has pages, and some are victims");
        let window = window_pages(window, frames).max(1);
        let blocks_end = pages_end.div_ceil(u64::from(pages_per_block)).max(1);
        let blocks = (u64::from(window) + u64::from(victims)).min(blocks_end) as u32;
        Ref {
            lists: AgedLists::new(blocks + 1, frames, pages_end),
            blocks: Frames::new(blocks, blocks_end),
            others: FrameHeap::new(blocks, blocks as usize + 1),
            victims: Vec::with_capacity(victims as usize),
            victims_max: victims as usize,
            pages_per_block: u64::from(pages_per_block),
            search_steps: 0,
            working_max: frames - window,
        }
    }

    /// The time of last use of the oldest page of `block` in the window.
    fn oldest_stamp(&self, block: u32) -> u64 {
        self.lists.stamp(self.lists.tail(block))
    }

    fn is_victim(&self, block: u32) -> bool {
        self.victims.contains(&block)
    }

    /// Removes `block`, whose pages changed, from the heap. This works with the changed rank, as
    /// the heap compares the other blocks only with each other.
    fn unrank(&mut self, block: u32) {
        self.others.remove(block, rank(&self.lists));
    }

    fn rank(&mut self, block: u32) {
        self.others.push(block, rank(&self.lists));
    }

    /// A page came into the working region: if it has one too many, the oldest enters the window.
    #[inline]
    fn shrink_working(&mut self) {
        if self.lists.len(WORKING) > self.working_max {
            self.enter_window(self.lists.tail(WORKING));
        }
    }

    fn enter_window(&mut self, frame: u32) {
        let number = PageNo(self.lists.key(frame).page().0 / self.pages_per_block);
        let mut block = self.blocks.find(number);
        if block == NO_FRAME {
            block = self.blocks.take(Request::new(number, false));
        }
        self.lists.move_by_age(frame, block);
        if !self.is_victim(block) {
            if self.lists.len(block) > 1 {
                self.unrank(block);
            }
            self.rank(block);
        }
    }

    /// A page left list `list`.
    #[inline]
    fn left(&mut self, list: u32) {
        if list != WORKING && !self.is_victim(list) {
            self.unrank(list);
            if self.lists.len(list) > 0 {
                self.rank(list);
            } else {
                self.blocks.release(list);
            }
        }
    }

    /// The oldest page of the victim blocks; [`NO_FRAME`] if the window has none of them.
    fn oldest_victim(&self) -> u32 {
        let blocks = self.victims.iter().filter(|block| self.lists.len(**block) > 0);
        let oldest = blocks.min_by_key(|block| self.oldest_stamp(**block));
        oldest.map_or(NO_FRAME, |block| self.lists.tail(*block))
    }

    fn victim(&mut self) -> u32 {
        match self.oldest_victim() {
            NO_FRAME => {
                self.search_steps += u64::from(self.lists.used() - self.lists.len(WORKING));
                for block in self.victims.drain(..) {
                    self.blocks.release(block);
                }
                while let Some(block) = self.others.top()
                    && self.victims.len() < self.victims_max
                {
                    self.unrank(block);
                    self.victims.push(block);
                }
                self.oldest_victim()
            }
            frame => frame,
        }
    }

    /// Dirty pages of `blocks` in the window, oldest first.
    fn dirty_of_blocks(&self, blocks: &[u32]) -> Vec<PageNo> {
        let frames = blocks.iter().flat_map(|block| self.lists.oldest_first(*block));
        let mut dirty: Vec<u32> =
            frames.filter(|frame| self.lists.key(*frame).is_dirty()).collect();
        dirty.sort_unstable_by_key(|frame| self.lists.stamp(*frame));
        dirty.into_iter().map(|frame| self.lists.key(frame).page()).collect()
    }
}

impl<T: PageTable> Policy for Ref<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        let hit = frame != NO_FRAME;
        if hit {
            let list = self.lists.list_of(frame);
            self.lists.key_mut(frame).touch(request);
            self.lists.move_to_head(frame, WORKING);
            self.left(list);
        } else if self.lists.is_full() {
            let victim = self.victim();
            let list = self.lists.list_of(victim);
            effects.push(self.lists.replace(victim, request, WORKING).evicted());
            self.left(list);
        } else {
            self.lists.push(request, WORKING);
        }
        self.shrink_working();
        hit
    }

    answers_of!(lists: contains cleaned capacity_pages dirty_pages);

    /// Set by set, for the current window; then the pages outside it. Sorts the blocks of the
    /// window.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let end = pages.len().saturating_add(pages_max);
        pages.extend(self.dirty_of_blocks(&self.victims));
        let mut blocks = self.others.frames().to_vec();
        blocks.sort_unstable_by_key(|&block| rank(&self.lists)(block));
        for set in blocks.chunks(self.victims_max) {
            if pages.len() >= end {
                break;
            }
            pages.extend(self.dirty_of_blocks(set));
        }
        pages.truncate(end);
        self.lists.dirty_of(self.lists.oldest_first(WORKING), end - pages.len(), pages);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.lists.find(page);
        if frame != NO_FRAME {
            let list = self.lists.list_of(frame);
            self.lists.remove(frame);
            self.left(list);
        }
        frame != NO_FRAME
    }

    fn search_steps(&self) -> u64 {
        self.search_steps
    }

    fn memory_bytes(&self) -> u64 {
        let blocks = self.blocks.memory_bytes() + self.others.memory_bytes();
        let victims = self.victims.capacity() * size_of::<u32>();
        self.lists.memory_bytes() + blocks + victims as u64
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        let working = self.lists.len(WORKING);
        assert!(working <= self.working_max);
        assert!(!self.lists.is_full() || working == self.working_max);
        let ranked = self.others.frames().len() + self.victims.len();
        assert_eq!(self.blocks.validate() as usize, ranked, "a block is ranked or a victim");
        self.others.validate(rank(&self.lists));
        let is_other = |block: &u32| self.lists.len(*block) > 0 && !self.is_victim(*block);
        assert!(self.others.frames().iter().all(is_other));
    }
}
