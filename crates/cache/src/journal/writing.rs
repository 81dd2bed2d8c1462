//! An epoch that is being written.
use super::index::{Entry, Index, pages_for};
use super::{CONTENTS_PER_WRITE, Journal, Limits, Phase, byte_of};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, PageRange, Payload, Result, ResultExt};
use tantalum_media::BlockStore;

pub(super) struct Writing<P> {
    pub(super) epoch: u64,
    /// The index of everything appended, written or not.
    index: Index,
    /// Contents that do not fill a write yet: those with the last slots.
    gathered: Vec<P>,
    /// The contents of the first slots, kept in memory.
    kept: Vec<P>,
    /// Writes of contents in flight.
    pub(super) in_flight: usize,
    /// The error of a failed write: the epoch cannot be committed.
    pub(super) failure: Option<Error>,
    is_closed: bool,
}

/// Contents of consecutive slots.
pub(super) struct Batch<P> {
    pub(super) first_slot: u32,
    pub(super) pages: Vec<P>,
}

impl<P: Payload> Writing<P> {
    pub(super) fn new(epoch: u64) -> Self {
        Writing {
            epoch,
            index: Index::default(),
            gathered: Vec::new(),
            kept: Vec::new(),
            in_flight: 0,
            failure: None,
            is_closed: false,
        }
    }

    /// Accepts pages; returns the batches that fill a write.
    ///
    /// # Errors
    /// With nothing accepted: `OutOfSpace`, `OutOfRange`, or the error of an earlier write.
    pub(super) fn take(
        &mut self,
        pages: Vec<(PageNo, P)>,
        limits: &Limits,
    ) -> Result<Vec<Batch<P>>> {
        self.check_room(pages.len() as u64, 0, limits)?;
        let last = pages.iter().map(|(page, _)| *page).max();
        last.map_or(Ok(()), |page| check_range(PageRange::new(page, 1), limits))?;
        let mut batches = Vec::new();
        for (page, content) in pages {
            let slot = self.index.entries.len() as u32;
            self.index.entries.push(Entry { page, slot, checksum: content.checksum() });
            if self.kept.len() < limits.memory_pages_max as usize {
                self.kept.push(content.clone());
            }
            self.gathered.push(content);
            if self.gathered.len() == CONTENTS_PER_WRITE {
                batches.extend(self.take_gathered());
            }
        }
        Ok(batches)
    }

    /// Accepts a range of zeros.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub(super) fn take_zeros(&mut self, range: PageRange, limits: &Limits) -> Result<()> {
        self.check_room(0, 1, limits)?;
        check_range(range, limits)?;
        match self.index.zeros.last_mut() {
            _ if range.pages == 0 => {}
            Some(last) if last.end() == range.first => last.pages += range.pages,
            _ => self.index.zeros.push(range),
        }
        Ok(())
    }

    /// Accepts nothing more from now on; returns the contents that were not written yet.
    pub(super) fn close(&mut self) -> Result<Option<Batch<P>>> {
        self.check_failure()?;
        assert!(!self.is_closed, "epoch {} is committed twice", self.epoch);
        self.is_closed = true;
        Ok(self.take_gathered())
    }

    /// Returns the sorted index; all contents are written.
    ///
    /// # Errors
    /// `InvalidInput` if a page occurs twice; that of a write.
    pub(super) fn finish(&mut self) -> Result<(Index, Vec<P>)> {
        self.check_failure()?;
        let mut index = std::mem::take(&mut self.index);
        index.sort()?;
        Ok((index, std::mem::take(&mut self.kept)))
    }

    fn take_gathered(&mut self) -> Option<Batch<P>> {
        let pages = std::mem::take(&mut self.gathered);
        let first_slot = (self.index.entries.len() - pages.len()) as u32;
        (!pages.is_empty()).then_some(Batch { first_slot, pages })
    }

    fn check_failure(&self) -> Result<()> {
        let epoch = self.epoch;
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(failure.clone().wrap(format!("epoch {epoch} has failed before"))),
        }
    }

    fn check_room(&self, contents: u64, zero_ranges: u64, limits: &Limits) -> Result<()> {
        self.check_failure()?;
        assert!(!self.is_closed, "epoch {} is closed", self.epoch);
        let held = self.index.entries.len() as u64;
        let entries = self.index.len() + contents + zero_ranges;
        let needed = held + contents + pages_for(entries);
        if needed <= limits.room_pages {
            return Ok(());
        }
        let context = format!(
            "epoch {}, of {held} pages, would take {needed} of the journal's {} pages",
            self.epoch, limits.room_pages
        );
        Err(Error::new(ErrorKind::OutOfSpace, context))
    }
}

fn check_range(range: PageRange, limits: &Limits) -> Result<()> {
    let pages = limits.home_pages;
    if range.first.0.checked_add(range.pages).is_some_and(|end| end <= pages) {
        return Ok(());
    }
    let context = format!("pages {range} reach past the end of the home ({pages} pages)");
    Err(Error::new(ErrorKind::OutOfRange, context))
}

/// A write of contents, which a commit waits for. If it is dropped before it is done, the epoch
/// fails.
pub(super) struct InFlight<'a, S, P> {
    journal: &'a Journal<S, P>,
    batch: Option<Batch<P>>,
    result: Result<()>,
}

impl<'a, S: BlockStore, P: Payload> InFlight<'a, S, P> {
    pub(super) fn new(journal: &'a Journal<S, P>, batch: Batch<P>) -> Self {
        journal.writing(|writing| writing.in_flight += 1);
        let given_up = Error::new(ErrorKind::Closed, "a write to the journal was given up");
        InFlight { journal, batch: Some(batch), result: Err(given_up) }
    }

    pub(super) async fn perform(mut self) -> Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.result = self.write(batch).await;
        self.result.clone()
    }

    async fn write(&self, batch: Batch<P>) -> Result<()> {
        let journal = self.journal;
        journal.give_up_committed().await?;
        let mut buf = journal.store.buffer(batch.pages.len() * PAGE_BYTES);
        for (page, out) in batch.pages.iter().zip(buf.chunks_exact_mut(PAGE_BYTES)) {
            page.write_to(out);
        }
        let written = journal.store.write(byte_of(u64::from(batch.first_slot)), buf, false).await;
        journal.store.recycle(
            written.context(|| format!("writing {} contents to the journal", batch.pages.len()))?,
        );
        Ok(())
    }
}

impl<S, P> Drop for InFlight<'_, S, P> {
    fn drop(&mut self) {
        if let Phase::Writing(writing) = &mut *self.journal.phase.borrow_mut() {
            writing.in_flight -= 1;
            if let Err(error) = &self.result {
                writing.failure.get_or_insert_with(|| error.clone());
            }
        }
        self.journal.ended.wake_all();
    }
}
