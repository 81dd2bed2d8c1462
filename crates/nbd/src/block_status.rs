//! Block status: which bytes of the export are allocated, and which are zeros.
use crate::client::Client;
use crate::export::Export;
use crate::pieces::split;
use crate::protocol::structured::{
    CHUNK_BYTES, DESCRIPTOR_BYTES, Descriptor, STATE_HOLE, STATE_ZERO,
};
use crate::span::Span;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Result};

/// Maximum pages covered by one reply to the only client (256 MiB): examining each takes time, in which nothing else runs.
const PAGES_ALONE_MAX: u64 = 1 << 16;
/// This limit while other clients are connected (8 MiB).
const PAGES_MAX: u64 = 1 << 11;
/// Maximum pages read for one reply because they seem to be zeros (8 MiB).
const READ_PAGES_MAX: u64 = 2048;
/// Pages of these read at a time.
const READ_PAGES: u64 = 32;
/// Pages in the budget for the descriptors of a reply.
const DESCRIPTOR_PAGES: u64 = 4;
/// Pages in the budget for one reply.
pub(crate) const REPLY_PAGES: u64 = DESCRIPTOR_PAGES + READ_PAGES;
/// Maximum descriptors in one reply: those that fit the budget.
const DESCRIPTORS_MAX: usize =
    (DESCRIPTOR_PAGES as usize * PAGE_BYTES - CHUNK_BYTES - 4) / DESCRIPTOR_BYTES;

/// The status of pages, one after the other.
#[derive(Default)]
struct Told {
    descriptors: Vec<Descriptor>,
    /// Pages that count as zeros so far: they seem to be zeros.
    seem_zero: Vec<PageRange>,
    end: PageNo,
}

impl<D: PageDevice<Page = PageBuf>> Export<D> {
    /// The status of the first bytes of `span`, which is not empty: one descriptor if `one`, otherwise as many as fit.
    /// Pages that seem to be zeros are read first. The whole reply describes the moment at which this returns. It may or
    /// may not include a write in flight, like a read.
    pub(crate) async fn block_status(
        &self,
        span: Span,
        one: bool,
        pages: &mut Vec<PageBuf>,
        client: &Client,
    ) -> Result<Vec<Descriptor>> {
        let covering = span.covering();
        let pages_max = if client.seat.is_alone() { PAGES_ALONE_MAX } else { PAGES_MAX };
        let range = PageRange::new(covering.first, covering.pages.min(pages_max));
        client.scan(range.pages).await?;
        let first = self.told(span, range, one, READ_PAGES_MAX, |_| true);
        if first.seem_zero.is_empty() {
            return Ok(first.descriptors);
        }
        let zeros = self.zeros_of(&first.seem_zero, pages, client).await?;
        client.scan(range.pages).await?;
        let range = PageRange::new(range.first, first.end.0 - range.first.0);
        // There is no await from here on, so the status needs no lock.
        let is_zero = |page| zeros.binary_search(&page).is_ok();
        Ok(self.told(span, range, one, u64::MAX, is_zero).descriptors)
    }

    /// The status of the first pages of `range`, without reading any. `is_zero` decides whether a page that seems to be
    /// zeros counts as zeros; at most `most` pages are reported as zeros for this reason.
    fn told(
        &self,
        span: Span,
        range: PageRange,
        one: bool,
        most: u64,
        is_zero: impl Fn(PageNo) -> bool,
    ) -> Told {
        let descriptors_max = if one { 1 } else { DESCRIPTORS_MAX };
        let mut told = Told { end: range.first, ..Told::default() };
        let mut left = most;
        while told.end < range.end() && left > 0 {
            let at = told.end;
            let extent = self.device.extent(PageRange::new(at, range.end().0 - at.0));
            let (flags, pages) = match (extent.is_hole, extent.seems_zero) {
                (true, _) => (STATE_HOLE | STATE_ZERO, extent.pages),
                (false, false) => (0, extent.pages),
                (false, true) => {
                    let end = at.0 + extent.pages.min(left);
                    let zero = is_zero(at);
                    let alike = (at.0..end).take_while(|page| is_zero(PageNo(*page)) == zero);
                    (if zero { STATE_ZERO } else { 0 }, alike.count() as u64)
                }
            };
            let pages = PageRange::new(at, pages);
            let bytes = span.inside(pages).length as u32;
            let is_full = told.descriptors.len() == descriptors_max;
            match told.descriptors.last_mut() {
                Some(last) if last.flags == flags => last.bytes += bytes,
                _ if is_full => break,
                _ => told.descriptors.push(Descriptor { bytes, flags }),
            }
            if flags == STATE_ZERO {
                told.seem_zero.push(pages);
                left -= pages.pages;
            }
            told.end = pages.end();
        }
        told
    }

    /// The pages that are zeros, in ascending order. Pages that cannot be read are not among them.
    async fn zeros_of(
        &self,
        ranges: &[PageRange],
        pages: &mut Vec<PageBuf>,
        client: &Client,
    ) -> Result<Vec<PageNo>> {
        let zero = PageBuf::zero();
        let mut zeros = Vec::new();
        for range in ranges.iter().flat_map(|range| split(*range, READ_PAGES)) {
            let _step = client.step(range.pages).await?;
            pages.clear();
            pages.resize(range.pages as usize, zero.clone());
            if self.device.read(range.first, pages, None).await.is_ok() {
                let read = range.iter().zip(pages.iter()).filter(|(_, content)| **content == zero);
                zeros.extend(read.map(|(page, _)| page));
            }
        }
        pages.clear();
        Ok(zeros)
    }
}
