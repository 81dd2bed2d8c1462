//! Reads a log: the blocks after a checkpoint.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result};

use super::block::{Block, Group, LogBlock};
use super::block_pages_max;
use super::log::LogEnd;
use crate::btree::Lsn;
use crate::fault_points::Fault;
use crate::records::PAGE_ROOM;
use crate::records::{Codec, Place, RecordDevice, framed_bytes};
use crate::values::Value;

/// Most blocks are not longer than this.
const USUAL_PAGES: u64 = 8;

/// Reads a log from a checkpoint on.
pub(crate) struct LogReader<'a, D, C> {
    device: &'a RecordDevice<D, C>,
    region: PageRange,
    /// Position at which reading began.
    begin: u64,
    end: LogEnd,
}

impl<'a, D, C, V> LogReader<'a, D, C>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    pub(crate) fn new(device: &'a RecordDevice<D, C>, region: PageRange, begin: LogEnd) -> Self {
        LogReader { device, region, begin: begin.position, end: begin }
    }

    /// The place where the log continues, after the blocks read.
    pub(crate) fn end(&self) -> LogEnd {
        self.end
    }

    /// The groups of the next block, with the LSN of the first. `None` at the end of the log: the content there is not whole, or
    /// older.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn next(&mut self) -> Result<Option<(Lsn, Vec<Rc<Group<V>>>)>> {
        let log_pages = self.region.pages;
        let offset = self.end.position % log_pages;
        let mut found = self.block_at(offset).await?;
        let mut position = self.end.position;
        // A block that did not fit before the end of the log's part was written at its start.
        if found.is_none() && offset + block_pages_max(log_pages) > log_pages {
            found = self.block_at(0).await?;
            position += log_pages - offset;
        }
        let Some((pages, block)) = found else { return Ok(None) };
        let next = Lsn(block.first.0 + block.groups.len() as u64);
        self.end = LogEnd { position: position + pages, next };
        Ok(Some((block.first, block.groups)))
    }

    /// Checks that no block follows the end. A block is begun once the one before it is durable, so at most the last one is not whole
    /// after a cut. If another one follows, the missing block was damaged, or lost by the device.
    ///
    /// # Errors
    /// `Corrupt` if a block follows; those of the device.
    pub(crate) async fn check_end(&self) -> Result<()> {
        let most = block_pages_max(self.region.pages);
        let next = self.end.next;
        let is_later =
            |record: &Block<V>| matches!(record, Block::Log(block) if block.first > next);
        let mut goes_on = false;
        for range in self.unread() {
            goes_on = goes_on || self.device.has_record(range, most, is_later).await?;
        }
        if goes_on && !Fault::LogDamageTakenForItsEnd.is_planted() {
            let at = self.region.first.0 + self.end.position % self.region.pages;
            let context = format!(
                "the log is damaged at page {at} of its device: transaction {} is missing, and later ones are there",
                next.0
            );
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        Ok(())
    }

    /// The pages of the log that were not read: from its end round to the place where reading began.
    fn unread(&self) -> [PageRange; 2] {
        let PageRange { first, pages } = self.region;
        let left = pages.saturating_sub(self.end.position - self.begin);
        let offset = self.end.position % pages;
        let behind = left.min(pages - offset);
        [PageRange::new(PageNo(first.0 + offset), behind), PageRange::new(first, left - behind)]
    }

    /// The block that begins at `offset`, if it is the next one, with its number of pages.
    async fn block_at(&self, offset: u64) -> Result<Option<(u64, LogBlock<V>)>> {
        let (left, most) = (self.region.pages - offset, block_pages_max(self.region.pages));
        for pages in [USUAL_PAGES.min(most), most] {
            let first = PageNo(self.region.first.0 + offset);
            let found = self.device.try_read(Place::of_pages(first, pages.min(left))).await?;
            let Some(record) = found else { continue };
            let pages = framed_bytes(&*record).div_ceil(PAGE_ROOM) as u64;
            return Ok(match &*record {
                Block::Log(block) if block.first == self.end.next => Some((pages, block.clone())),
                _ => None,
            });
        }
        Ok(None)
    }
}
