//! Blocks of flash pages that are written out of place and collected: what a translation layer does, and
//! what a cache does that uses flash natively. They differ in one decision: a page that is met in a block
//! to be erased is kept, by moving it, or let go.
//!
//! Source: dissertation, sections 7.1.1 and 7.3.2 (algorithms 8 and 9); the block to collect is the one
//! with the fewest valid pages (greedy).
use super::TierCounts;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, SparseTable};
use crate::policy::Request;
use std::collections::VecDeque;
use tantalum_base::PageNo;

/// Number of a flash page, counted through all blocks.
pub type FlashPage = u32;

/// No flash page.
pub const NO_FLASH_PAGE: FlashPage = u32::MAX;

/// What a flash page that is not valid belongs to.
const INVALID: u64 = u64::MAX;

/// Shape of the flash, and when it is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockGeometry {
    /// Blocks, at least 4.
    pub blocks: u32,
    /// Pages in a block, 1 to 255.
    pub block_pages: u32,
    /// Collection starts when so few blocks are free...
    pub free_blocks_low: u32,
    /// ...and stops at so many, which are kept free for it.
    pub free_blocks_high: u32,
}

impl BlockGeometry {
    /// 512 blocks of 128 pages, of which 5 and 10 % are the watermarks (section 7.4).
    pub const PAPER: BlockGeometry =
        BlockGeometry { blocks: 512, block_pages: 128, free_blocks_low: 25, free_blocks_high: 51 };

    /// Pages that a cache on this flash holds: all blocks but those that are kept free.
    pub fn cache_pages(&self) -> u32 {
        (self.blocks - self.free_blocks_high) * self.block_pages
    }

    pub(crate) fn pages(&self) -> u32 {
        self.blocks * self.block_pages
    }
}

/// What becomes of a valid page in a block that is to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is moved to another block.
    Keep,
    /// It is in the cache no more.
    LetGo,
}

/// What decides on collections.
pub(crate) trait Collector {
    /// The block to erase. `garbage` has the fewest pages to keep, `blocks.kept_pages(garbage)`.
    fn choose(&mut self, blocks: &FlashBlocks, garbage: u32) -> Option<u32>;

    /// What becomes of the page that belongs to `owner`, in `page`.
    fn decide(&mut self, owner: u64, page: FlashPage, counts: &mut TierCounts) -> Fate;

    /// The page of `owner` moved.
    fn moved(&mut self, owner: u64, from: FlashPage, to: FlashPage);

    /// `block` was erased.
    fn erased(&mut self, _block: u32) {}
}

/// Blocks of flash pages.
#[derive(Debug)]
pub struct FlashBlocks {
    geometry: BlockGeometry,
    /// Whose content each flash page holds; [`INVALID`] where nobody's.
    owners: Vec<u64>,
    /// Blocks that are written to the end, in lists by their number of pages to keep.
    full: FrameLists<SparseTable, u8>,
    /// The frame of each full block in `full`.
    frames: Vec<u32>,
    /// Pages of each block that a collection moves: the valid ones, but for those that were given up.
    kept: Vec<u8>,
    free: VecDeque<u32>,
    /// The block that is written, and how many of its pages are.
    current: u32,
    written: u32,
    erases: Vec<u64>,
    /// Collected blocks by the number of pages to keep that they had.
    collected: Vec<u64>,
}

impl FlashBlocks {
    /// Blocks of which all are free.
    ///
    /// # Panics
    /// Where the geometry makes no sense.
    pub fn new(geometry: BlockGeometry) -> Self {
        let BlockGeometry { blocks, block_pages, free_blocks_low, free_blocks_high } = geometry;
        assert!((1..=255).contains(&block_pages), "a block has 1 to 255 pages");
        assert!(
            0 < free_blocks_low && free_blocks_low < free_blocks_high && free_blocks_high < blocks,
            "watermarks of free blocks: 0 < low < high < blocks"
        );
        FlashBlocks {
            geometry,
            owners: vec![INVALID; geometry.pages() as usize],
            full: FrameLists::new(block_pages + 1, blocks, u64::from(blocks)),
            frames: vec![NO_FRAME; blocks as usize],
            kept: vec![0; blocks as usize],
            free: (1..blocks).collect(),
            current: 0,
            written: 0,
            erases: vec![0; blocks as usize],
            collected: vec![0; block_pages as usize + 1],
        }
    }

    /// The shape.
    pub fn geometry(&self) -> &BlockGeometry {
        &self.geometry
    }

    /// Times that each block was erased.
    pub fn erases(&self) -> &[u64] {
        &self.erases
    }

    /// How many collected blocks had 0, 1, 2... valid pages (figure 7.7), not counted those given up.
    pub fn collected(&self) -> &[u64] {
        &self.collected
    }

    /// Valid pages of `block`, but for those that were given up.
    pub(crate) fn kept_pages(&self, block: u32) -> u32 {
        self.kept[block as usize].into()
    }

    /// Whether `block` is written to its end.
    pub(crate) fn is_full(&self, block: u32) -> bool {
        self.frames[block as usize] != NO_FRAME
    }

    /// The block of a flash page.
    #[inline]
    pub(crate) fn block_of(&self, page: FlashPage) -> u32 {
        page / self.geometry.block_pages
    }

    /// Whose content a flash page holds, where it is valid.
    pub(crate) fn owner(&self, page: FlashPage) -> Option<u64> {
        let owner = self.owners[page as usize];
        (owner != INVALID).then_some(owner)
    }

    /// Writes the content of `owner` to a free flash page, for which blocks are collected where few are free.
    pub(crate) fn program(
        &mut self,
        owner: u64,
        collector: &mut impl Collector,
        counts: &mut TierCounts,
    ) -> FlashPage {
        if self.written == self.geometry.block_pages {
            self.take_free_block();
            if self.free.len() <= self.geometry.free_blocks_low as usize {
                self.collect(collector, counts);
            }
            // What was moved may have filled it.
            if self.written == self.geometry.block_pages {
                self.take_free_block();
            }
        }
        counts.flash_sequential_writes += 1;
        self.fill(owner)
    }

    /// What `page` held is void.
    #[inline]
    pub(crate) fn invalidate(&mut self, page: FlashPage) {
        self.give_up(page);
        self.void_given_up(page);
    }

    /// What `page` held, which was given up, is void.
    #[inline]
    pub(crate) fn void_given_up(&mut self, page: FlashPage) {
        self.owners[page as usize] = INVALID;
    }

    /// A collection need not move `page`, which is valid until then.
    #[inline]
    pub(crate) fn give_up(&mut self, page: FlashPage) {
        self.change_kept(page, -1);
    }

    /// A collection has to move `page`, which had been given up.
    #[inline]
    pub(crate) fn take_back(&mut self, page: FlashPage) {
        self.change_kept(page, 1);
    }

    /// The block of `page` has so many pages more to keep.
    #[inline]
    fn change_kept(&mut self, page: FlashPage, by: i8) {
        let block = self.block_of(page) as usize;
        let kept = self.kept[block].checked_add_signed(by).expect("a block keeps what it holds");
        self.kept[block] = kept;
        let frame = self.frames[block];
        if frame != NO_FRAME {
            self.full.move_to_head(frame, kept.into());
        }
    }

    /// Collects until enough blocks are free, or nothing is gained.
    fn collect(&mut self, collector: &mut impl Collector, counts: &mut TierCounts) {
        while self.free.len() < self.geometry.free_blocks_high as usize {
            let lists = 0..=self.geometry.block_pages;
            let Some(frame) = lists.map(|list| self.full.tail(list)).find(|it| *it != NO_FRAME)
            else {
                return;
            };
            let garbage = self.full.key(frame).page().0 as u32;
            let Some(block) = collector.choose(self, garbage) else { return };
            self.erase(block, collector, counts);
        }
    }

    fn erase(&mut self, block: u32, collector: &mut impl Collector, counts: &mut TierCounts) {
        self.collected[usize::from(self.kept[block as usize])] += 1;
        self.full.remove(std::mem::replace(&mut self.frames[block as usize], NO_FRAME));
        let first = block * self.geometry.block_pages;
        for page in first..first + self.geometry.block_pages {
            let owner = self.owners[page as usize];
            if owner == INVALID {
                continue;
            }
            if collector.decide(owner, page, counts) == Fate::Keep {
                if self.written == self.geometry.block_pages {
                    self.take_free_block();
                }
                let to = self.fill(owner);
                collector.moved(owner, page, to);
                counts.collected_pages += 1;
            }
            self.owners[page as usize] = INVALID;
        }
        self.kept[block as usize] = 0;
        self.erases[block as usize] += 1;
        self.free.push_back(block);
        counts.erases += 1;
        collector.erased(block);
    }

    /// Ends the current block, which is full, and begins a free one.
    fn take_free_block(&mut self) {
        let (block, kept) = (self.current, self.kept[self.current as usize]);
        let frame = self.full.push(Request::new(PageNo(block.into()), false), kept.into());
        self.frames[block as usize] = frame;
        let free = self.free.pop_front();
        self.current = free.expect("collection keeps a block free");
        self.written = 0;
    }

    /// Writes the next page of the current block.
    #[inline]
    fn fill(&mut self, owner: u64) -> FlashPage {
        debug_assert!(self.written < self.geometry.block_pages, "the block is full");
        let page = self.current * self.geometry.block_pages + self.written;
        self.written += 1;
        self.owners[page as usize] = owner;
        self.kept[self.current as usize] += 1;
        page
    }

    /// Panics where the blocks contradict themselves.
    #[cfg(test)]
    pub(crate) fn validate(&self) {
        self.full.validate();
        let block_pages = self.geometry.block_pages as usize;
        for (block, owners) in self.owners.chunks(block_pages).enumerate() {
            let valid = owners.iter().filter(|owner| **owner != INVALID).count();
            let kept = usize::from(self.kept[block]);
            assert!(kept <= valid, "more to keep than there is");
            let frame = self.frames[block];
            assert!(frame == NO_FRAME || self.full.list_of(frame) as usize == kept);
        }
        let blocks = self.free.len() + self.full.used() as usize + 1;
        assert_eq!(blocks, self.geometry.blocks as usize);
    }
}
