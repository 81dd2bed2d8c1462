//! FAB, flash-aware buffer: pages are grouped by their flash block, and the block with the most
//! cached pages is evicted as a whole.
//!
//! Source: Jo, Kang, Park, Kim, Lee, "FAB: flash-aware buffer management policy for portable media
//! players", IEEE Transactions on Consumer Electronics 52(2), 2006. Among blocks with equally many
//! pages the least recently used one is evicted; any use of one of its pages is a use of the block.
//! All its pages leave, in the order of their numbers, so that a device with block mapping can
//! write them as one; the dirty ones are written.
//!
//! The paper leaves one point open. Here the victim is chosen before the requested page comes in,
//! and the block of that page is not spared.
//!
//! Weak for databases: size comes first, so a block with many hot pages is evicted at once, and
//! single cold pages stay for a long time. Clean pages are dropped along with dirty ones. It is
//! made for sequential writes to media with block mapping.
use crate::frame_lists::AgedLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// Evicts the block with the most pages.
///
/// Pages have no frames of their own: a block has two bits for each page. Tables are sized for as
/// many blocks as the cache has pages, or for all blocks of the address space if these are fewer.
#[derive(Debug)]
pub struct Fab<T> {
    /// List n - 1 holds the blocks with n cached pages, in the order of last use. A block number
    /// takes the place of the page number.
    blocks: AgedLists<T, u32>,
    /// Per block, `words` words of cached bits, then as many of dirty bits.
    bits: Vec<u64>,
    words: usize,
    pages_per_block: u64,
    /// No list above this one contains a block.
    largest: u32,
    used: u32,
    capacity: u32,
}

impl<T: PageTable> Fab<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`, in blocks of
    /// `pages_per_block` (1 to 1024).
    pub fn new(frames: u32, pages_end: u64, pages_per_block: u32) -> Self {
        assert!((1..=1024).contains(&pages_per_block), "a block has 1 to 1024 pages");
        assert!(frames > 0 && frames < u32::MAX, "a cache has 1 to 2^32 - 2 frames");
        let blocks_end = pages_end.div_ceil(u64::from(pages_per_block)).max(1);
        let blocks = u64::from(frames).min(blocks_end) as u32;
        let words = pages_per_block.div_ceil(64) as usize;
        Fab {
            blocks: AgedLists::new(pages_per_block, blocks, blocks_end),
            bits: vec![0; (blocks as usize + 1) * 2 * words],
            words,
            pages_per_block: u64::from(pages_per_block),
            largest: 0,
            used: 0,
            capacity: frames,
        }
    }

    /// The block number of `page`, and the page's place in the block.
    #[inline]
    fn split(&self, page: PageNo) -> (PageNo, usize) {
        let block = page.0 / self.pages_per_block;
        (PageNo(block), (page.0 - block * self.pages_per_block) as usize)
    }

    /// The index of the word for the page at `place` in `block`, and its bit. The word for dirty
    /// bits is `words` further on.
    #[inline]
    fn bit(&self, block: u32, place: usize) -> (usize, u64) {
        (block as usize * 2 * self.words + place / 64, 1 << (place % 64))
    }

    /// The block of `page` with its word and bit, if the page is cached.
    #[inline]
    fn find(&self, page: PageNo) -> Option<(u32, usize, u64)> {
        let (number, place) = self.split(page);
        let block = self.blocks.find(number);
        let (word, bit) = self.bit(block, place);
        (block != NO_FRAME && self.bits[word] & bit != 0).then_some((block, word, bit))
    }

    /// The number of cached pages in `block`.
    fn pages_in(&self, block: u32) -> u32 {
        self.blocks.list_of(block) + 1
    }

    /// The cached pages of `block` in the order of their numbers, each with whether it is dirty.
    fn pages_of(&self, block: u32) -> impl Iterator<Item = (PageNo, bool)> + '_ {
        let first = self.blocks.key(block).page().0 * self.pages_per_block;
        let (word, _) = self.bit(block, 0);
        (0..self.words).flat_map(move |at| {
            let (mut cached, dirty) = (self.bits[word + at], self.bits[word + self.words + at]);
            std::iter::from_fn(move || {
                // The place is 64 if no bit is left; `checked_shr` then returns `None`.
                let place = cached.trailing_zeros();
                let is_dirty = dirty.checked_shr(place)? & 1 == 1;
                cached &= cached - 1;
                Some((PageNo(first + 64 * at as u64 + u64::from(place)), is_dirty))
            })
        })
    }

    /// Evicts the largest block.
    fn evict(&mut self, effects: &mut Vec<Effect>) {
        while self.blocks.len(self.largest) == 0 {
            self.largest -= 1;
        }
        let block = self.blocks.tail(self.largest);
        let pages = self.pages_of(block);
        effects.extend(pages.map(|(page, dirty)| Effect::Evicted { page, dirty }));
        self.used -= self.pages_in(block);
        self.drop_block(block);
    }

    fn drop_block(&mut self, block: u32) {
        let (word, _) = self.bit(block, 0);
        self.bits[word..word + 2 * self.words].fill(0);
        self.blocks.remove(block);
    }

    /// Adds the page of `request`; there must be room for it.
    fn insert(&mut self, request: Request) {
        let (number, place) = self.split(request.page());
        let mut block = self.blocks.find(number);
        if block == NO_FRAME {
            block = self.blocks.push(Request::new(number, false), 0);
        } else {
            self.blocks.move_to_head(block, self.blocks.list_of(block) + 1);
        }
        let (word, bit) = self.bit(block, place);
        self.bits[word] |= bit;
        self.bits[word + self.words] |= if request.is_write() { bit } else { 0 };
        self.largest = self.largest.max(self.blocks.list_of(block));
        self.used += 1;
    }
}

impl<T: PageTable> Policy for Fab<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        if let Some((block, word, bit)) = self.find(request.page()) {
            self.bits[word + self.words] |= if request.is_write() { bit } else { 0 };
            self.blocks.move_to_head(block, self.blocks.list_of(block));
            return true;
        }
        if self.used == self.capacity {
            self.evict(effects);
        }
        self.insert(request);
        false
    }

    fn contains(&self, page: PageNo) -> bool {
        self.find(page).is_some()
    }

    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let blocks = (0..=self.largest).rev().flat_map(|list| self.blocks.oldest_first(list));
        let dirty = blocks.flat_map(|block| self.pages_of(block)).filter(|(_, dirty)| *dirty);
        pages.extend(dirty.take(pages_max).map(|(page, _)| page));
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some((_, word, bit)) = self.find(page) {
            self.bits[word + self.words] &= !bit;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let Some((block, word, bit)) = self.find(page) else { return false };
        self.used -= 1;
        if self.pages_in(block) == 1 {
            self.drop_block(block);
            return true;
        }
        self.bits[word] &= !bit;
        self.bits[word + self.words] &= !bit;
        self.blocks.move_by_age(block, self.blocks.list_of(block) - 1);
        true
    }

    fn memory_bytes(&self) -> u64 {
        self.blocks.memory_bytes() + (self.bits.len() * size_of::<u64>()) as u64
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    fn dirty_pages(&self) -> u32 {
        let dirty = self.bits.chunks(self.words).skip(1).step_by(2).flatten();
        dirty.map(|word| word.count_ones()).sum()
    }

    #[cfg(test)]
    fn validate(&self) {
        self.blocks.validate();
        let lists = 0..self.pages_per_block as u32;
        let mut used = 0;
        for block in lists.flat_map(|list| self.blocks.oldest_first(list)) {
            let pages = self.pages_in(block);
            assert!(pages <= self.largest + 1);
            assert_eq!(self.pages_of(block).count(), pages as usize);
            let (word, _) = self.bit(block, 0);
            let (cached, dirty) = self.bits[word..].split_at(self.words);
            let dirty_alone = |at: usize| dirty[at] & !cached[at];
            assert!((0..self.words).all(|at| dirty_alone(at) == 0), "dirty and not cached");
            used += pages;
        }
        assert_eq!(used, self.used);
        assert!(used <= self.capacity);
    }
}
