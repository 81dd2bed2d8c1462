//! A device that is read and written by records.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Payload, Result,
};

use super::{Codec, Draft, Place};

/// Counters of device accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordCounts {
    /// Pages read.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Pages that got another page's content by share.
    pub pages_shared: u64,
    /// Share commands.
    pub shares: u64,
    /// Flushes.
    pub flushes: u64,
}

impl RecordCounts {
    /// The difference to the counters at `start`.
    pub fn since(&self, start: &RecordCounts) -> RecordCounts {
        RecordCounts {
            pages_read: self.pages_read - start.pages_read,
            pages_written: self.pages_written - start.pages_written,
            pages_shared: self.pages_shared - start.pages_shared,
            shares: self.shares - start.shares,
            flushes: self.flushes - start.flushes,
        }
    }
}

/// A device and the codec of its content.
pub struct RecordDevice<D, C> {
    device: Rc<D>,
    codec: Rc<C>,
    counts: Cell<RecordCounts>,
}

impl<D: PageDevice, C: Codec<Page = D::Page>> RecordDevice<D, C> {
    /// The counters begin at 0.
    pub fn new(device: &Rc<D>, codec: &Rc<C>) -> Self {
        let (device, codec) = (Rc::clone(device), Rc::clone(codec));
        RecordDevice { device, codec, counts: Cell::default() }
    }

    /// The same device with counters of its own.
    pub fn counted_apart(&self) -> Self {
        RecordDevice::new(&self.device, &self.codec)
    }

    /// The device.
    pub(crate) fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// The device's limits and promises.
    pub fn limits(&self) -> &Limits {
        self.device.limits()
    }

    /// The counters so far.
    pub fn counts(&self) -> RecordCounts {
        self.counts.get()
    }

    /// Informs the codec that the device was opened again.
    pub fn reopened(&self) {
        self.codec.reopened();
    }

    /// Reads a record.
    ///
    /// # Errors
    /// `Corrupt` if there is no whole record; those of the device.
    pub async fn read(&self, place: Place) -> Result<Rc<C::Record>> {
        let found = self.try_read(place).await?;
        found.ok_or_else(|| corrupt(place, "no whole record"))
    }

    /// Reads a record; `None` if there is no whole one.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn try_read(&self, place: Place) -> Result<Option<Rc<C::Record>>> {
        let range = place.range();
        self.limits().check_range(range)?;
        let mut pages = vec![D::Page::zero(); range.pages as usize];
        self.device.read(range.first, &mut pages, None).await?;
        self.count(|counts| counts.pages_read += range.pages);
        Ok(self.codec.decode(place.offset, &pages))
    }

    /// Whether a whole record that is `wanted` begins in a page of `range` and ends within it; such a record has at most
    /// `pages_max` pages. A damaged page has none.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn has_record(
        &self,
        range: PageRange,
        pages_max: u64,
        wanted: impl Fn(&C::Record) -> bool,
    ) -> Result<bool> {
        // The pages read so far, which begin at `at`.
        let (mut at, mut pages) = (range.first.0, Vec::new());
        while at < range.end().0 {
            let known = at + pages.len() as u64;
            let upto = (at + 2 * pages_max).min(range.end().0);
            self.read_what_can_be(PageRange::new(PageNo(known), upto - known), &mut pages).await?;
            let begins = if upto == range.end().0 { pages.len() } else { pages_max as usize };
            for begin in 0..begins {
                let end = pages.len().min(begin + pages_max as usize);
                let found = self.codec.decode(0, &pages[begin..end]);
                if found.is_some_and(|record| wanted(&record)) {
                    return Ok(true);
                }
            }
            pages.drain(..begins);
            at += begins as u64;
        }
        Ok(false)
    }

    /// Appends the pages of `range`, with blank pages in place of damaged ones.
    async fn read_what_can_be(&self, range: PageRange, pages: &mut Vec<D::Page>) -> Result<()> {
        let before = pages.len();
        pages.resize(before + range.pages as usize, D::Page::zero());
        self.count(|counts| counts.pages_read += range.pages);
        let read = self.device.read(range.first, &mut pages[before..], None).await;
        match read {
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            read => return read,
        }
        for (page, out) in range.iter().zip(&mut pages[before..]) {
            let read = self.device.read(page, std::slice::from_mut(out), None).await;
            match read {
                Err(error) if error.kind() == ErrorKind::Corrupt => *out = D::Page::zero(),
                read => read?,
            }
        }
        Ok(())
    }

    /// Whether a page has any content.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn has_content(&self, page: PageNo) -> Result<bool> {
        let mut content = [D::Page::zero()];
        self.device.read(page, &mut content, None).await?;
        self.count(|counts| counts.pages_read += 1);
        Ok(content[0] != D::Page::zero())
    }

    /// Writes a draft, in ascending order and in as few writes as the device allows.
    ///
    /// # Errors
    /// Those of the device; earlier writes are kept.
    pub async fn write(&self, draft: &Draft<C::Record>) -> Result<()> {
        let most = self.limits().atomic_write_pages_max.max(1) as usize;
        let mut runs = draft.runs().iter().peekable();
        while let Some((first, records)) = runs.next() {
            let mut pages = self.codec.encode(*first, records);
            let mut end = first.0 + pages.len() as u64;
            while let Some((next, records)) = runs.next_if(|(next, _)| next.0 == end) {
                pages.extend(self.codec.encode(*next, records));
                end = first.0 + pages.len() as u64;
            }
            let mut at = *first;
            for part in pages.chunks(most) {
                let range = PageRange::new(at, part.len() as u64);
                self.device.write(at, part, None).await?;
                self.written(range);
                self.count(|counts| counts.pages_written += range.pages);
                at = range.end();
            }
        }
        Ok(())
    }

    /// Writes drafts atomically: all or nothing, and durable when this returns.
    ///
    /// # Errors
    /// Those of the device, with nothing changed.
    pub async fn write_scattered(&self, drafts: Vec<Draft<C::Record>>) -> Result<()> {
        let mut pages = Vec::new();
        let mut ranges = Vec::new();
        for (first, records) in drafts.iter().flat_map(Draft::runs) {
            let encoded = self.codec.encode(*first, records);
            let range = PageRange::new(*first, encoded.len() as u64);
            pages.extend(range.iter().zip(encoded));
            ranges.push(range);
        }
        let count = pages.len() as u64;
        self.device.write_scattered(pages, || ()).await?;
        ranges.into_iter().for_each(|range| self.written(range));
        self.count(|counts| counts.pages_written += count);
        Ok(())
    }

    /// Shares, in one command: each left page gets the right page's content.
    ///
    /// # Errors
    /// Those of the device, with nothing changed.
    pub async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        let settled = self.codec.sharing(pairs);
        self.device.share(pairs).await?;
        self.codec.settle(settled);
        self.count(|counts| {
            counts.shares += 1;
            counts.pages_shared += pairs.len() as u64;
        });
        Ok(())
    }

    /// Trims.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn trim(&self, range: PageRange) -> Result<()> {
        self.codec.trimming(range);
        self.device.trim(range).await?;
        self.written(range);
        Ok(())
    }

    fn written(&self, range: PageRange) {
        self.codec.written(range);
        if self.limits().durability == Durability::OnAck {
            self.codec.settle(self.codec.flushing());
        }
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn flush(&self) -> Result<()> {
        let settled = self.codec.flushing();
        self.device.flush().await?;
        self.codec.settle(settled);
        self.count(|counts| counts.flushes += 1);
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut RecordCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

/// The error for unexpected content at `place`.
pub(crate) fn corrupt(place: Place, found: &str) -> Error {
    let context = format!("{found} at byte {} of pages {}", place.offset, place.range());
    Error::new(ErrorKind::Corrupt, context)
}
