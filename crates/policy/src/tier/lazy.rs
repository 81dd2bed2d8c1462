//! Native use of flash as in NFA, but pages are given up one by one and dropped late.
//!
//! NFA judges by blocks which pages are cold: its threshold is the last use of a whole block. Here pages are in
//! LRU order, and only a share of the flash is kept: pages further back in the order are given up. A page that
//! was given up stays readable until its block is collected. If it is used in the meantime, it is kept again, at
//! no cost. The block to collect is the one with the fewest pages to keep, so that a collection moves few pages,
//! however many are valid.
//!
//! The share is the only parameter. A small share makes collections cheap; a large one loses fewer pages that
//! will be requested.
use super::flash_blocks::{BlockGeometry, Collector, Fate, FlashBlocks, FlashPage};
use super::{Found, MiddleTier, TierCounts};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::Request;
use tantalum_base::PageNo;

/// The lists: pages that a collection moves, and pages that it drops.
const KEPT: u32 = 0;
const GIVEN_UP: u32 = 1;

/// A cache that uses flash natively and drops pages late. Every missed page is admitted, read or written.
#[derive(Debug)]
pub struct Lazy<T> {
    blocks: FlashBlocks,
    pages: Pages<T>,
    /// Maximum number of kept pages.
    kept_max: u32,
    counts: TierCounts,
}

#[derive(Debug)]
struct Pages<T> {
    /// Both lists are in LRU order.
    lists: FrameLists<T, u8>,
    /// The flash page of each frame.
    places: Vec<FlashPage>,
}

impl<T: PageTable> Collector for Pages<T> {
    fn choose(&mut self, blocks: &FlashBlocks, garbage: u32) -> Option<u32> {
        (blocks.kept_pages(garbage) < blocks.geometry().block_pages).then_some(garbage)
    }

    fn decide(&mut self, owner: u64, _page: FlashPage, counts: &mut TierCounts) -> Fate {
        let frame = owner as u32;
        if self.lists.list_of(frame) == KEPT {
            return Fate::Keep;
        }
        let key = self.lists.remove(frame);
        counts.write_home(key.is_dirty().into());
        Fate::LetGo
    }

    fn moved(&mut self, owner: u64, _from: FlashPage, to: FlashPage) {
        self.places[owner as usize] = to;
    }
}

impl<T: PageTable> Lazy<T> {
    /// An empty cache of pages numbered below `pages_end`. It keeps the share `share` of the pages in all
    /// blocks except the reserved free ones.
    ///
    /// # Panics
    /// If `share` is not above 0 and at most 1.
    pub fn new(geometry: BlockGeometry, share: f64, pages_end: u64) -> Self {
        assert!(share > 0.0 && share <= 1.0, "a share of the flash");
        let lists = FrameLists::new(2, geometry.pages(), pages_end);
        // One block must have a page that is not kept, otherwise nothing could be collected.
        let kept_max = (f64::from(geometry.cache_pages()) * share) as u32;
        Lazy {
            blocks: FlashBlocks::new(geometry),
            pages: Pages { places: vec![0; lists.frames_end()], lists },
            kept_max: kept_max.min(geometry.cache_pages() - geometry.block_pages).max(1),
            counts: TierCounts::default(),
        }
    }

    /// If there is no room for another kept page, gives up the coldest kept page.
    fn give_one_up(&mut self) {
        if self.pages.lists.len(KEPT) >= self.kept_max {
            let coldest = self.pages.lists.tail(KEPT);
            self.pages.lists.move_to_head(coldest, GIVEN_UP);
            self.blocks.give_up(self.pages.places[coldest as usize]);
        }
    }

    /// The page in `frame` is used.
    fn touch(&mut self, frame: u32) {
        if self.pages.lists.list_of(frame) == GIVEN_UP {
            self.give_one_up();
            self.blocks.take_back(self.pages.places[frame as usize]);
        }
        self.pages.lists.move_to_head(frame, KEPT);
    }

    /// Writes the page of `request` to a free flash page.
    fn program(&mut self, request: Request, cached: u32) {
        let frame = if cached == NO_FRAME {
            self.give_one_up();
            self.pages.lists.push(request, KEPT)
        } else {
            self.touch(cached);
            self.blocks.invalidate(self.pages.places[cached as usize]);
            self.pages.lists.key_mut(cached).touch(request);
            cached
        };
        let place = self.blocks.program(frame.into(), &mut self.pages, &mut self.counts);
        self.pages.places[frame as usize] = place;
    }
}

impl<T: PageTable> MiddleTier for Lazy<T> {
    fn read(&mut self, page: PageNo) -> Found {
        self.counts.reads += 1;
        let frame = self.pages.lists.find(page);
        if frame != NO_FRAME {
            self.counts.read_hits += 1;
            self.counts.flash_reads += 1;
            self.touch(frame);
            return Found::Hit;
        }
        self.counts.read_home();
        self.program(Request::new(page, false), NO_FRAME);
        Found::Missed
    }

    fn write(&mut self, page: PageNo) {
        self.counts.writes += 1;
        let frame = self.pages.lists.find(page);
        self.counts.write_hits += u64::from(frame != NO_FRAME);
        self.program(Request::new(page, true), frame);
    }

    fn flush(&mut self) {
        for list in [KEPT, GIVEN_UP] {
            let mut frame = self.pages.lists.tail(list);
            while frame != NO_FRAME {
                let key = self.pages.lists.key_mut(frame);
                let dirty = key.is_dirty();
                key.clean();
                self.counts.write_home(dirty.into());
                frame = self.pages.lists.newer(frame);
            }
        }
    }

    fn contains(&self, page: PageNo) -> bool {
        self.pages.lists.find(page) != NO_FRAME
    }

    fn dirty_pages(&self) -> u64 {
        self.pages.lists.dirty_pages().into()
    }

    fn counts(&self) -> &TierCounts {
        &self.counts
    }

    fn blocks(&self) -> Option<&FlashBlocks> {
        Some(&self.blocks)
    }

    #[cfg(test)]
    fn validate(&self) {
        self.blocks.validate();
        self.pages.lists.validate();
        assert!(self.pages.lists.len(KEPT) <= self.kept_max);
        let blocks = 0..self.blocks.geometry().blocks;
        let kept: u32 = blocks.map(|block| self.blocks.kept_pages(block)).sum();
        assert_eq!(kept, self.pages.lists.len(KEPT));
        for frame in
            [KEPT, GIVEN_UP].into_iter().flat_map(|list| self.pages.lists.oldest_first(list))
        {
            let place = self.pages.places[frame as usize];
            assert_eq!(self.blocks.owner(place), Some(frame.into()));
        }
    }
}
