//! Block mapping: one erase block per logical block, every page at its offset.
//!
//! A write after the last page of its block is appended; skipped pages are padded. Any other write
//! goes to a fresh block, into which the preceding pages are copied first. While writes continue in
//! order they are appended there; the rest is copied when a write goes elsewhere. One such block is
//! open at a time. The map has one entry per block.
//!
//! Source: Ban, "Flash file system", US patent 5,404,485, 1995, and the block mapping described in
//! Kim et al., "A space-efficient flash translation layer for CompactFlash systems", IEEE Trans. on
//! Consumer Electronics 48(2), 2002. Our addition: the fresh block is kept open.
use tantalum_base::{PageNo, PageRange, Payload, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place, Role};
use super::merge::{copy_all, up_to_last};
use super::survey::Survey;

/// A block that is being replaced.
#[derive(Clone, Copy)]
struct Open {
    logical: u64,
    fresh: ZoneNo,
}

/// The layer.
pub(super) struct BlockMap<M: ZoneMedia> {
    pub blocks: Blocks<M>,
    map: Vec<Option<ZoneNo>>,
    open: Option<Open>,
}

/// Number of blocks beyond those for the logical pages: the fresh one, one for recovery, and one to
/// replace a retired block.
pub(super) const SPARE_BLOCKS: u32 = 3;

impl<M: ZoneMedia> BlockMap<M> {
    /// An empty layer of `pages` pages.
    pub fn new(blocks: Blocks<M>, pages: u64) -> Self {
        let logical = pages.div_ceil(u64::from(blocks.pages_per_block));
        BlockMap { blocks, map: vec![None; logical as usize], open: None }
    }

    /// Recovers the layer from the content of the blocks; a replacement in progress is completed.
    pub async fn recover(blocks: Blocks<M>, pages: u64) -> Result<Self> {
        let mut this = BlockMap::new(blocks, pages);
        let survey = Survey::new(&this.blocks);
        let kept = survey.keep(&mut this.blocks).await?;
        for (logical, kept) in kept {
            this.map[logical as usize] = kept.data;
            if let Some(fresh) = kept.log {
                // Neither block can be appended to any more: both are copied into another.
                this.open = Some(Open { logical, fresh });
                let whole = this.blocks.open(Role::Data).await?;
                this.fill(logical, whole, this.blocks.pages_per_block).await?;
                let replaced = this.map[logical as usize].replace(whole);
                this.open = None;
                for old in replaced.into_iter().chain([fresh]) {
                    this.blocks.release(old).await?;
                }
            }
        }
        Ok(this)
    }

    /// The place of `page`.
    pub fn find(&self, page: PageNo) -> Option<Place> {
        let (logical, offset) = self.blocks.split(page);
        let fresh = self.open.filter(|open| open.logical == logical).map(|open| open.fresh);
        let holds = |block: &ZoneNo| self.blocks.get(*block).get(offset).is_some();
        let block = fresh.filter(holds).or(self.map[logical as usize].filter(holds))?;
        Some(Place { block, offset })
    }

    /// Writes one page.
    pub async fn write(&mut self, page: PageNo, content: &M::Page) -> Result<()> {
        let (logical, offset) = self.blocks.split(page);
        let takes = |blocks: &Blocks<M>, block: ZoneNo| {
            blocks.room(block) > 0 && blocks.get(block).filled() <= offset
        };
        let fresh = match self.open {
            Some(open) if open.logical == logical && takes(&self.blocks, open.fresh) => open.fresh,
            _ => {
                self.finish().await?;
                let data = self.map[logical as usize];
                match data.filter(|block| takes(&self.blocks, *block)) {
                    Some(data) => data,
                    None => {
                        let fresh = self.blocks.open(Role::Data).await?;
                        self.open = Some(Open { logical, fresh });
                        fresh
                    }
                }
            }
        };
        self.fill(logical, fresh, offset).await?;
        self.blocks.write(fresh, page, content).await?;
        if self.map[logical as usize].is_none() || self.blocks.room(fresh) == 0 {
            self.finish().await?;
        }
        Ok(())
    }

    /// Copies or pads the offsets of `block` up to `end`; nothing after the last page with content.
    async fn fill(&mut self, logical: u64, block: ZoneNo, end: u32) -> Result<()> {
        let pages_per_block = self.blocks.pages_per_block;
        let first = logical * u64::from(pages_per_block);
        let pages = (first..first + u64::from(end)).map(PageNo);
        let mut sources: Vec<Option<Place>> = pages.map(|page| self.find(page)).collect();
        if end == pages_per_block {
            sources = up_to_last(sources);
        }
        copy_all(&mut self.blocks, logical, &sources, block).await
    }

    /// Completes the replacement in progress.
    async fn finish(&mut self) -> Result<()> {
        let Some(Open { logical, fresh }) = self.open else { return Ok(()) };
        let moved = self.blocks.statistics.pages_moved;
        self.fill(logical, fresh, self.blocks.pages_per_block).await?;
        let replaced = self.map[logical as usize].replace(fresh);
        self.open = None;
        if let Some(replaced) = replaced {
            let statistics = &mut self.blocks.statistics;
            match statistics.pages_moved == moved {
                true => statistics.merges_switch += 1,
                false => statistics.merges_partial += 1,
            }
            self.blocks.release(replaced).await?;
        }
        Ok(())
    }

    /// Trims pages: as whole blocks if the range covers them, else by writing zeros.
    pub async fn trim(&mut self, range: PageRange) -> Result<()> {
        let pages_per_block = u64::from(self.blocks.pages_per_block);
        let mut page = range.first;
        while page < range.end() {
            let (logical, offset) = self.blocks.split(page);
            if offset == 0 && page.0 + pages_per_block <= range.end().0 {
                self.trim_block(logical).await?;
                page = PageNo(page.0 + pages_per_block);
                continue;
            }
            if self.find(page).is_some() {
                self.blocks.statistics.pages_trimmed += 1;
                self.write(page, &M::Page::zero()).await?;
            }
            page = PageNo(page.0 + 1);
        }
        Ok(())
    }

    async fn trim_block(&mut self, logical: u64) -> Result<()> {
        let first = logical * u64::from(self.blocks.pages_per_block);
        let pages = (first..first + u64::from(self.blocks.pages_per_block)).map(PageNo);
        let held = pages.filter(|page| self.find(*page).is_some()).count();
        self.blocks.statistics.pages_trimmed += held as u64;
        // The older block first: none of its pages may reappear when the newer one is gone.
        if let Some(data) = self.map[logical as usize].take() {
            self.blocks.release(data).await?;
        }
        if let Some(open) = self.open.take_if(|open| open.logical == logical) {
            self.blocks.release(open.fresh).await?;
        }
        Ok(())
    }
}
