//! Blocks of flash pages that are written out of place and garbage-collected, for a translation layer or
//! for a cache that uses flash natively. The two differ in one decision: a valid page in a block to be
//! erased is either moved, or dropped from the cache.
//!
//! Source: dissertation, sections 7.1.1 and 7.3.2 (algorithms 8 and 9); the block to collect is the one
//! with the fewest valid pages (greedy).
use super::TierCounts;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, SparseTable};
use crate::policy::Request;
use std::collections::VecDeque;
use tantalum_base::PageNo;

/// Number of a flash page, counted over all blocks.
pub type FlashPage = u32;

/// No flash page.
pub const NO_FLASH_PAGE: FlashPage = u32::MAX;

/// The owner of a flash page that is not valid.
const INVALID: u64 = u64::MAX;

/// Geometry of the flash and the limits of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockGeometry {
    /// Blocks, at least 4.
    pub blocks: u32,
    /// Pages in a block, 1 to 255.
    pub block_pages: u32,
    /// Collection starts when at most this many blocks are free...
    pub free_blocks_low: u32,
    /// ...and stops when this many are free. These blocks are reserved for it.
    pub free_blocks_high: u32,
}

impl BlockGeometry {
    /// 512 blocks of 128 pages; the watermarks are 5 and 10 % of the blocks (section 7.4).
    pub const PAPER: BlockGeometry =
        BlockGeometry { blocks: 512, block_pages: 128, free_blocks_low: 25, free_blocks_high: 51 };

    /// Number of pages that a cache on this flash holds: all blocks except the reserved free ones.
    pub fn cache_pages(&self) -> u32 {
        (self.blocks - self.free_blocks_high) * self.block_pages
    }

    pub(crate) fn pages(&self) -> u32 {
        self.blocks * self.block_pages
    }
}

/// The decision about a valid page in a block to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The page is moved to another block.
    Keep,
    /// The page leaves the cache.
    LetGo,
}

/// The decisions of garbage collection.
pub(crate) trait Collector {
    /// The block to erase. `garbage` is the block with the fewest pages to keep,
    /// `blocks.kept_pages(garbage)`. `None` ends the collection.
    fn choose(&mut self, blocks: &FlashBlocks, garbage: u32) -> Option<u32>;

    /// The decision about `owner`'s page in flash page `page`.
    fn decide(&mut self, owner: u64, page: FlashPage, counts: &mut TierCounts) -> Fate;

    /// The page of `owner` was moved.
    fn moved(&mut self, owner: u64, from: FlashPage, to: FlashPage);

    /// `block` was erased.
    fn erased(&mut self, _block: u32) {}
}

/// Blocks of flash pages.
#[derive(Debug)]
pub struct FlashBlocks {
    geometry: BlockGeometry,
    /// The owner of each flash page; [`INVALID`] if it has none.
    owners: Vec<u64>,
    /// Blocks that are written to the end, in lists by their number of pages to keep.
    full: FrameLists<SparseTable, u8>,
    /// The frame of each full block in `full`.
    frames: Vec<u32>,
    /// Number of pages of each block that a collection moves: its valid pages, except those that were
    /// given up.
    kept: Vec<u8>,
    free: VecDeque<u32>,
    /// The block being written, and the number of its pages written so far.
    current: u32,
    written: u32,
    erases: Vec<u64>,
    /// Number of collected blocks for each number of pages to keep.
    collected: Vec<u64>,
    /// Number of collected blocks for each number of pages that were moved.
    moved: Vec<u64>,
}

impl FlashBlocks {
    /// Creates blocks that are all free.
    ///
    /// # Panics
    /// If the geometry is not valid.
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
            moved: vec![0; block_pages as usize + 1],
        }
    }

    /// The geometry.
    pub fn geometry(&self) -> &BlockGeometry {
        &self.geometry
    }

    /// Erase count of each block.
    pub fn erases(&self) -> &[u64] {
        &self.erases
    }

    /// Number of collected blocks with 0, 1, 2... valid pages (figure 7.7), without pages that were
    /// given up.
    pub fn collected(&self) -> &[u64] {
        &self.collected
    }

    /// Number of collected blocks of which 0, 1, 2... pages were moved; the rest of a block is freed. Fewer than the valid ones if the
    /// collection drops some.
    pub fn moved(&self) -> &[u64] {
        &self.moved
    }

    /// Number of valid pages of `block`, without those that were given up.
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

    /// The owner of a flash page; `None` if the page is not valid.
    pub(crate) fn owner(&self, page: FlashPage) -> Option<u64> {
        let owner = self.owners[page as usize];
        (owner != INVALID).then_some(owner)
    }

    /// Writes the content of `owner` to a free flash page. If few blocks are free, first collects blocks.
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
            // Moved pages may have filled the block.
            if self.written == self.geometry.block_pages {
                self.take_free_block();
            }
        }
        counts.flash_sequential_writes += 1;
        self.fill(owner)
    }

    /// Makes the content of `page` invalid.
    #[inline]
    pub(crate) fn invalidate(&mut self, page: FlashPage) {
        self.give_up(page);
        self.void_given_up(page);
    }

    /// Makes the content of `page` invalid, after it was given up.
    #[inline]
    pub(crate) fn void_given_up(&mut self, page: FlashPage) {
        self.owners[page as usize] = INVALID;
    }

    /// Gives up `page`: a collection need not move it. It stays valid until then.
    #[inline]
    pub(crate) fn give_up(&mut self, page: FlashPage) {
        self.change_kept(page, -1);
    }

    /// Takes back `page`, which was given up: a collection has to move it.
    #[inline]
    pub(crate) fn take_back(&mut self, page: FlashPage) {
        self.change_kept(page, 1);
    }

    /// Changes the number of pages to keep in the block of `page` by `by`.
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

    /// Collects until enough blocks are free, or until there is nothing to gain.
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
        let mut moved = 0;
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
                moved += 1;
            }
            self.owners[page as usize] = INVALID;
        }
        counts.collected_pages += moved;
        self.moved[moved as usize] += 1;
        self.kept[block as usize] = 0;
        self.erases[block as usize] += 1;
        self.free.push_back(block);
        counts.erases += 1;
        collector.erased(block);
    }

    /// Finishes the current block, which is full, and starts a free one.
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

    /// Panics if the blocks are inconsistent.
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
