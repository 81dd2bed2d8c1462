//! FAST, fully associative sector translation: one log block for sequential writes, and log blocks
//! shared by all data blocks.
//!
//! A write to the first page of a block starts a new sequential log; writes that continue it are
//! appended there. It is merged with its data block by a *switch* or *partial* merge. All other
//! writes go to the shared logs in the order of arrival. When these are full the oldest is cleaned:
//! every block with a current page in it gets a *full* merge, from wherever its pages are.
//!
//! Source: Lee, Park, Chung, Lee, Park and Song, "A log buffer-based flash translation layer using
//! fully-associative sector translation", ACM TECS 6(3), 2007 (reference 20 of the SHARE paper). Our
//! additions: sequential writes are appended to the data block itself, and the sequential log is
//! merged at a recovery.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tantalum_base::{PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place, Role};
use super::merge::{copy_all, up_to_last};
use super::survey::{Kept, Survey};

/// The sequential log.
#[derive(Clone, Copy)]
struct Sequential {
    logical: u64,
    block: ZoneNo,
}

/// The layer.
pub(super) struct Fast<M: ZoneMedia> {
    pub blocks: Blocks<M>,
    map: Vec<Option<ZoneNo>>,
    sequential: Option<Sequential>,
    /// Oldest first.
    shared: VecDeque<ZoneNo>,
    /// Current pages in the shared logs.
    in_shared: BTreeMap<PageNo, Place>,
    shared_max: usize,
}

/// Number of blocks beyond those for logical pages and shared logs: the sequential log, the target
/// of a merge, and one to replace a retired block.
pub(super) const SPARE_BLOCKS: u32 = 3;

impl<M: ZoneMedia> Fast<M> {
    /// An empty layer of `pages` pages with up to `shared` shared log blocks.
    pub fn new(blocks: Blocks<M>, pages: u64, shared: u32) -> Self {
        let logical = pages.div_ceil(u64::from(blocks.pages_per_block));
        Fast {
            blocks,
            map: vec![None; logical as usize],
            sequential: None,
            shared: VecDeque::new(),
            in_shared: BTreeMap::new(),
            shared_max: shared as usize,
        }
    }

    /// Recovers the layer from the content of the blocks. A sequential log is merged, as nothing
    /// can be appended to it.
    pub async fn recover(blocks: Blocks<M>, pages: u64, shared: u32) -> Result<Self> {
        let mut this = Fast::new(blocks, pages, shared);
        let survey = Survey::new(&this.blocks);
        let kept = survey.keep(&mut this.blocks).await?;
        let of_logs = this
            .blocks
            .numbered()
            .filter(|(_, block)| block.opening > 0 && block.role == Role::Shared);
        let mut logs: Vec<(u64, ZoneNo)> =
            of_logs.map(|(zone, block)| (block.opening, zone)).collect();
        logs.sort_unstable();
        this.in_shared = survey.shared;
        for (_, zone) in logs {
            if this.in_shared.values().any(|place| place.block == zone) {
                this.shared.push_back(zone);
            } else {
                this.blocks.release(zone).await?;
            }
        }
        for (logical, Kept { data, .. }) in &kept {
            this.map[*logical as usize] = *data;
        }
        for (logical, Kept { data, log }) in kept {
            let Some(block) = log else { continue };
            if data.is_none() {
                // A log in order without a data block becomes the data block.
                this.map[logical as usize] = Some(block);
                continue;
            }
            this.sequential = Some(Sequential { logical, block });
            this.merge_full(logical).await?;
        }
        Ok(this)
    }

    /// The place of `page`.
    pub fn find(&self, page: PageNo) -> Option<Place> {
        if let Some(place) = self.in_shared.get(&page) {
            return Some(*place);
        }
        let (logical, offset) = self.blocks.split(page);
        let log = self.sequential.filter(|log| log.logical == logical).map(|log| log.block);
        let holds = |block: &ZoneNo| self.blocks.get(*block).get(offset).is_some();
        let block = log.filter(holds).or(self.map[logical as usize].filter(holds))?;
        Some(Place { block, offset })
    }

    /// Writes the first of `contents` as `page`, and as many of the following ones as go to the
    /// same block in order. Returns the number written.
    pub async fn write(&mut self, page: PageNo, contents: &[M::Page]) -> Result<usize> {
        let (logical, offset) = self.blocks.split(page);
        let in_block = (self.blocks.pages_per_block - offset) as usize;
        let contents = &contents[..contents.len().min(in_block)];
        if let Some(block) = self.in_order(logical, offset).await? {
            let run = self.blocks.run_pages(block, contents.len());
            self.blocks.write_run(block, page, &contents[..run]).await?;
            self.take_out_of_shared(logical, offset..offset + run as u32);
            return Ok(run);
        }
        let block = self.shared_with_room().await?;
        // One at a time: the next page may be in order again.
        let place = self.blocks.write(block, page, &contents[0]).await?;
        self.in_shared.insert(page, place);
        Ok(1)
    }

    /// The data block or the sequential log, if the page is the next one there.
    async fn in_order(&mut self, logical: u64, offset: u32) -> Result<Option<ZoneNo>> {
        let log = self.sequential.filter(|log| log.logical == logical).map(|log| log.block);
        let next = |blocks: &Blocks<M>, block: &ZoneNo| {
            blocks.room(*block) > 0 && blocks.get(*block).filled() == offset
        };
        if let Some(log) = log.filter(|log| next(&self.blocks, log)) {
            return Ok(Some(log));
        }
        if log.is_some() || (offset == 0 && self.sequential.is_some()) {
            // The log's block is no longer written in order, or another block begins.
            self.merge_sequential().await?;
        }
        if self.map[logical as usize].is_none() && offset == 0 {
            self.map[logical as usize] = Some(self.blocks.open(Role::Data).await?);
        }
        let data = self.map[logical as usize];
        if let Some(data) = data.filter(|data| next(&self.blocks, data)) {
            return Ok(Some(data));
        }
        if offset > 0 {
            return Ok(None);
        }
        let block = self.blocks.open(Role::Log).await?;
        self.sequential = Some(Sequential { logical, block });
        Ok(Some(block))
    }

    /// A shared log with room.
    async fn shared_with_room(&mut self) -> Result<ZoneNo> {
        if let Some(last) = self.shared.back()
            && self.blocks.room(*last) > 0
        {
            return Ok(*last);
        }
        while self.shared.len() >= self.shared_max {
            self.give_up_oldest().await?;
        }
        let block = self.blocks.open(Role::Shared).await?;
        self.shared.push_back(block);
        Ok(block)
    }

    /// Merges every block that has a current page in the oldest shared log, and erases that log.
    async fn give_up_oldest(&mut self) -> Result<()> {
        let Some(&oldest) = self.shared.front() else { return Ok(()) };
        let in_oldest = self.in_shared.iter().filter(|(_, place)| place.block == oldest);
        let logical: BTreeSet<u64> =
            in_oldest.map(|(page, _)| self.blocks.split(*page).0).collect();
        for logical in logical {
            self.merge_full(logical).await?;
        }
        self.shared.pop_front();
        self.blocks.release(oldest).await
    }

    /// The places of all pages of a block, up to the last page with content.
    fn sources(&self, logical: u64) -> Vec<Option<Place>> {
        let first = logical * u64::from(self.blocks.pages_per_block);
        let pages = (first..first + u64::from(self.blocks.pages_per_block)).map(PageNo);
        up_to_last(pages.map(|page| self.find(page)).collect())
    }

    /// Makes the sequential log the data block of its logical block, after completing it if
    /// necessary.
    async fn merge_sequential(&mut self) -> Result<()> {
        let Some(Sequential { logical, block }) = self.sequential else { return Ok(()) };
        let sources = self.sources(logical);
        let filled = self.blocks.get(block).filled();
        if self.blocks.room(block) == 0 && (filled as usize) < sources.len() {
            return self.merge_full(logical).await;
        }
        let statistics = &mut self.blocks.statistics;
        match filled as usize >= sources.len() {
            true => statistics.merges_switch += 1,
            false => statistics.merges_partial += 1,
        }
        copy_all(&mut self.blocks, logical, &sources, block).await?;
        self.take_out_of_shared(logical, filled..sources.len() as u32);
        self.sequential = None;
        match self.map[logical as usize].replace(block) {
            Some(data) => self.blocks.release(data).await,
            None => Ok(()),
        }
    }

    /// Copies all current pages of a block into a fresh one.
    async fn merge_full(&mut self, logical: u64) -> Result<()> {
        let sources = self.sources(logical);
        let target = self.blocks.open(Role::Data).await?;
        self.blocks.statistics.merges_full += 1;
        copy_all(&mut self.blocks, logical, &sources, target).await?;
        self.take_out_of_shared(logical, 0..sources.len() as u32);
        let log = self.sequential.take_if(|log| log.logical == logical);
        let data = self.map[logical as usize].replace(target);
        for zone in data.into_iter().chain(log.map(|log| log.block)) {
            self.blocks.release(zone).await?;
        }
        Ok(())
    }

    fn take_out_of_shared(&mut self, logical: u64, offsets: std::ops::Range<u32>) {
        let first = logical * u64::from(self.blocks.pages_per_block);
        for offset in offsets {
            self.in_shared.remove(&PageNo(first + u64::from(offset)));
        }
    }
}
