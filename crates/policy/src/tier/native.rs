//! NFA, native flash access: the cache itself collects the blocks, without a translation layer, and
//! drops cold pages instead of moving them.
//!
//! Source: dissertation, section 7.3.2, algorithms 8 and 9. The block to collect is the one with the fewest
//! valid pages. If all pages of that one are valid, the least recently used block is collected instead, and
//! the time of its last use becomes the threshold: from then on a collection drops every page whose last use
//! is not later, until another such block sets the threshold anew. So no page is evicted individually, and
//! only the blocks limit the number of pages.
use super::flash_blocks::{BlockGeometry, Collector, Fate, FlashBlocks, FlashPage};
use super::{Found, MiddleTier, TierCounts};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable, SparseTable};
use crate::policy::Request;
use tantalum_base::PageNo;

/// A cache that uses flash natively. Every missed page is admitted, read or written.
#[derive(Debug)]
pub struct Native<T> {
    blocks: FlashBlocks,
    pages: Pages<T>,
    counts: TierCounts,
}

/// The pages in the blocks: the paper's block management structure.
#[derive(Debug)]
struct Pages<T> {
    /// Maps each cached page to its flash page plus one.
    table: T,
    /// The content of each flash page, while it is valid.
    cached: Vec<Cached>,
    /// All blocks in the order of the last use of one of their pages; block b is in frame b + 1.
    recency: FrameLists<SparseTable, ()>,
    /// The time of the last use of a page of each block.
    block_used: Vec<u64>,
    block_pages: u32,
    /// Number of requests so far, which serves as the time.
    now: u64,
    /// A collection drops pages whose last use was at this time or before.
    threshold: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cached {
    page: PageNo,
    used: u64,
    dirty: bool,
}

impl<T: PageTable> Pages<T> {
    #[inline]
    fn find(&self, page: PageNo) -> Option<FlashPage> {
        let frame = self.table.find(page, |frame| self.cached[frame as usize - 1].page);
        (frame != NO_FRAME).then(|| frame - 1)
    }

    /// Removes the page of this flash page from the table.
    fn forget(&mut self, flash: FlashPage) {
        let cached = &self.cached;
        let page = cached[flash as usize].page;
        self.table.remove(page, flash + 1, |frame| cached[frame as usize - 1].page);
    }

    /// Records a use of the page in `flash` now.
    #[inline]
    fn touch(&mut self, flash: FlashPage) {
        self.cached[flash as usize].used = self.now;
        let block = flash / self.block_pages;
        self.block_used[block as usize] = self.now;
        self.recency.move_to_head(block + 1, 0);
    }
}

impl<T: PageTable> Collector for Pages<T> {
    fn choose(&mut self, blocks: &FlashBlocks, garbage: u32) -> Option<u32> {
        if blocks.kept_pages(garbage) < self.block_pages {
            return Some(garbage);
        }
        let oldest_first = self.recency.oldest_first(0).map(|frame| frame - 1);
        let victim = oldest_first.into_iter().find(|block| blocks.is_full(*block))?;
        self.threshold = self.block_used[victim as usize];
        Some(victim)
    }

    fn decide(&mut self, _owner: u64, flash: FlashPage, counts: &mut TierCounts) -> Fate {
        let Cached { used, dirty, .. } = self.cached[flash as usize];
        if used > self.threshold {
            return Fate::Keep;
        }
        counts.write_home(dirty.into());
        self.forget(flash);
        Fate::LetGo
    }

    fn moved(&mut self, owner: u64, from: FlashPage, to: FlashPage) {
        self.forget(from);
        self.cached[to as usize] = self.cached[from as usize];
        self.table.insert(PageNo(owner), to + 1);
        let block = to / self.block_pages;
        let used = self.cached[to as usize].used;
        self.block_used[block as usize] = self.block_used[block as usize].max(used);
        // This block is being written, so it should be the last to be collected.
        self.recency.move_to_head(block + 1, 0);
    }

    fn erased(&mut self, block: u32) {
        self.block_used[block as usize] = 0;
    }
}

impl<T: PageTable> Native<T> {
    /// An empty cache of pages numbered below `pages_end`.
    pub fn new(geometry: BlockGeometry, pages_end: u64) -> Self {
        let mut recency = FrameLists::new(1, geometry.blocks, geometry.blocks.into());
        for block in 0..geometry.blocks {
            recency.push(Request::new(PageNo(block.into()), false), 0);
        }
        Native {
            blocks: FlashBlocks::new(geometry),
            pages: Pages {
                table: T::new(geometry.pages(), pages_end),
                cached: vec![Cached::default(); geometry.pages() as usize],
                recency,
                block_used: vec![0; geometry.blocks as usize],
                block_pages: geometry.block_pages,
                now: 0,
                threshold: 0,
            },
            counts: TierCounts::default(),
        }
    }

    /// Writes `page` to a free flash page. Its old flash page, if there is one, becomes invalid.
    fn program(&mut self, page: PageNo, old: Option<FlashPage>, dirty: bool) {
        if let Some(old) = old {
            self.pages.forget(old);
            self.blocks.invalidate(old);
        }
        let flash = self.blocks.program(page.0, &mut self.pages, &mut self.counts);
        self.pages.cached[flash as usize] = Cached { page, used: 0, dirty };
        self.pages.table.insert(page, flash + 1);
        self.pages.touch(flash);
    }
}

impl<T: PageTable> MiddleTier for Native<T> {
    fn read(&mut self, page: PageNo) -> Found {
        self.pages.now += 1;
        self.counts.reads += 1;
        if let Some(flash) = self.pages.find(page) {
            self.counts.read_hits += 1;
            self.counts.flash_reads += 1;
            self.pages.touch(flash);
            return Found::Hit;
        }
        self.counts.read_home();
        self.program(page, None, false);
        Found::Missed
    }

    fn write(&mut self, page: PageNo) {
        self.pages.now += 1;
        self.counts.writes += 1;
        let old = self.pages.find(page);
        self.counts.write_hits += u64::from(old.is_some());
        self.program(page, old, true);
    }

    fn flush(&mut self) {
        for flash in 0..self.pages.cached.len() {
            if self.blocks.owner(flash as FlashPage).is_some() {
                let dirty = std::mem::take(&mut self.pages.cached[flash].dirty);
                self.counts.write_home(dirty.into());
            }
        }
    }

    fn contains(&self, page: PageNo) -> bool {
        self.pages.find(page).is_some()
    }

    fn dirty_pages(&self) -> u64 {
        let valid =
            (0..self.blocks.geometry().pages()).filter(|flash| self.blocks.owner(*flash).is_some());
        valid.filter(|flash| self.pages.cached[*flash as usize].dirty).count() as u64
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
        self.pages.recency.validate();
        for flash in 0..self.blocks.geometry().pages() {
            if let Some(owner) = self.blocks.owner(flash) {
                assert_eq!(self.pages.find(PageNo(owner)), Some(flash));
                let Cached { page, used, .. } = self.pages.cached[flash as usize];
                assert_eq!(page.0, owner);
                assert!(used <= self.pages.block_used[self.blocks.block_of(flash) as usize]);
            }
        }
    }
}
