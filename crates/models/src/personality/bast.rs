//! BAST, block-associative sector translation: each data block may have one log block; the number
//! of log blocks is limited.
//!
//! A write that does not continue at the end of its data block goes to the block's log. A log is
//! merged when it is full; if another block needs a log, the least recently written one is merged.
//! *Switch*: the log holds the whole block in order. *Partial*: the log holds its beginning in
//! order, and is completed from the data block. *Full*: otherwise, into a fresh block.
//!
//! Source: Kim, Kim, Noh, Min and Cho, "A space-efficient flash translation layer for CompactFlash
//! systems", IEEE Trans. on Consumer Electronics 48(2), 2002. Our addition: sequential writes are
//! appended to the data block itself.
use std::collections::{BTreeMap, VecDeque};
use tantalum_base::{PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place, Role};
use super::merge::{copy_all, up_to_last};
use super::survey::Survey;

/// A log block and its newest pages.
struct Log {
    logical: u64,
    block: ZoneNo,
    /// For each offset in the logical block, the place in the log.
    newest: BTreeMap<u32, u32>,
}

/// The layer.
pub(super) struct Bast<M: ZoneMedia> {
    pub blocks: Blocks<M>,
    map: Vec<Option<ZoneNo>>,
    /// The least recently written one first.
    logs: VecDeque<Log>,
    logs_max: usize,
}

/// Number of blocks beyond those for logical pages and logs: the target of a merge, and one to
/// replace a retired block.
pub(super) const SPARE_BLOCKS: u32 = 2;

impl<M: ZoneMedia> Bast<M> {
    /// An empty layer of `pages` pages with up to `logs` log blocks.
    pub fn new(blocks: Blocks<M>, pages: u64, logs: u32) -> Self {
        let logical = pages.div_ceil(u64::from(blocks.pages_per_block));
        let map = vec![None; logical as usize];
        Bast { blocks, map, logs: VecDeque::new(), logs_max: logs as usize }
    }

    /// Recovers the layer from the content of the blocks.
    pub async fn recover(blocks: Blocks<M>, pages: u64, logs: u32) -> Result<Self> {
        let mut this = Bast::new(blocks, pages, logs);
        let survey = Survey::new(&this.blocks);
        for (logical, kept) in survey.keep(&mut this.blocks).await? {
            this.map[logical as usize] = kept.data;
            let Some(block) = kept.log else { continue };
            let mut newest = BTreeMap::new();
            for (at, spare) in this.blocks.get(block).contents() {
                let offset = this.blocks.split(spare.page).1;
                let in_data = kept.data.and_then(|data| this.blocks.get(data).get(offset));
                if in_data.is_none_or(|data| data.version < spare.version) {
                    newest.insert(offset, at);
                }
            }
            this.logs.push_back(Log { logical, block, newest });
        }
        let opening = |log: &Log| this.blocks.get(log.block).opening;
        this.logs.make_contiguous().sort_by_key(opening);
        Ok(this)
    }

    /// The place of `page`.
    pub fn find(&self, page: PageNo) -> Option<Place> {
        let (logical, offset) = self.blocks.split(page);
        let log = self.logs.iter().find(|log| log.logical == logical);
        if let Some(log) = log
            && let Some(at) = log.newest.get(&offset)
        {
            return Some(Place { block: log.block, offset: *at });
        }
        let block = self.map[logical as usize]?;
        self.blocks.get(block).get(offset).map(|_| Place { block, offset })
    }

    /// Writes the first of `contents` as `page`, and as many of the following ones as go to the
    /// same block in order. Returns the number written.
    pub async fn write(&mut self, page: PageNo, contents: &[M::Page]) -> Result<usize> {
        let (logical, offset) = self.blocks.split(page);
        let in_block = (self.blocks.pages_per_block - offset) as usize;
        let contents = &contents[..contents.len().min(in_block)];
        if self.map[logical as usize].is_none() && offset == 0 && !self.has_log(logical) {
            self.map[logical as usize] = Some(self.blocks.open(Role::Data).await?);
        }
        if let Some(data) = self.map[logical as usize]
            && self.blocks.room(data) > 0
            && self.blocks.get(data).filled() == offset
        {
            let run = self.blocks.run_pages(data, contents.len());
            self.blocks.write_run(data, page, &contents[..run]).await?;
            if let Some(log) = self.logs.iter_mut().find(|log| log.logical == logical) {
                log.newest.retain(|at, _| !(offset..offset + run as u32).contains(at));
            }
            return Ok(run);
        }
        let block = self.log_with_room(logical).await?;
        let mut run = self.blocks.run_pages(block, contents.len());
        if let Some(data) = self.map[logical as usize]
            && let Some(before @ 1..) = self.blocks.get(data).filled().checked_sub(offset)
        {
            // Pages after the end of the data block go to the data block.
            run = run.min(before as usize);
        }
        let place = self.blocks.write_run(block, page, &contents[..run]).await?;
        if let Some(log) = self.logs.back_mut() {
            let places = (offset..).zip(place.offset..).take(run);
            log.newest.extend(places);
        }
        Ok(run)
    }

    fn has_log(&self, logical: u64) -> bool {
        self.logs.iter().any(|log| log.logical == logical)
    }

    /// The block's log, with room, moved to the end of the queue as the most recently written.
    async fn log_with_room(&mut self, logical: u64) -> Result<ZoneNo> {
        if let Some(at) = self.logs.iter().position(|log| log.logical == logical) {
            if self.blocks.room(self.logs[at].block) > 0
                && let Some(log) = self.logs.remove(at)
            {
                let block = log.block;
                self.logs.push_back(log);
                return Ok(block);
            }
            self.merge(at).await?;
        }
        while self.logs.len() >= self.logs_max {
            self.merge(0).await?;
        }
        let block = self.blocks.open(Role::Log).await?;
        self.logs.push_back(Log { logical, block, newest: BTreeMap::new() });
        Ok(block)
    }

    /// Merges the log at `at` with its data block.
    async fn merge(&mut self, at: usize) -> Result<()> {
        let Log { logical, block, .. } = self.logs[at];
        let data = self.map[logical as usize];
        let sources = self.sources(at);
        let end = sources.len() as u32;
        let filled = self.blocks.get(block).filled();
        // The log's pages are all current and at their offsets.
        let in_order = self.logs[at].newest.len() as u32 == filled
            && self.logs[at].newest.iter().all(|(offset, at)| offset == at);
        let target = if in_order && (filled >= end || self.blocks.room(block) > 0) {
            let statistics = &mut self.blocks.statistics;
            match filled >= end {
                true => statistics.merges_switch += 1,
                false => statistics.merges_partial += 1,
            }
            block
        } else {
            self.blocks.statistics.merges_full += 1;
            self.blocks.open(Role::Data).await?
        };
        copy_all(&mut self.blocks, logical, &sources, target).await?;
        self.map[logical as usize] = Some(target);
        self.logs.remove(at);
        let gone = data.into_iter().chain((block != target).then_some(block));
        for zone in gone {
            self.blocks.release(zone).await?;
        }
        Ok(())
    }

    /// The places of the pages of the block whose log is at index `at`, up to the last page with content.
    fn sources(&self, at: usize) -> Vec<Option<Place>> {
        let Log { logical, block, newest } = &self.logs[at];
        let mut places = vec![None; self.blocks.pages_per_block as usize];
        if let Some(data) = self.map[*logical as usize] {
            for (offset, _) in self.blocks.get(data).contents() {
                places[offset as usize] = Some(Place { block: data, offset });
            }
        }
        for (&offset, &at) in newest {
            places[offset as usize] = Some(Place { block: *block, offset: at });
        }
        up_to_last(places)
    }
}
