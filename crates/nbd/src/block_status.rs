//! Which bytes of the export are allocated.
use crate::export::Export;
use crate::protocol::structured::{
    CHUNK_BYTES, DESCRIPTOR_BYTES, Descriptor, STATE_HOLE, STATE_ZERO,
};
use crate::span::Span;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageRange};

/// Most pages of which one reply tells (256 MiB): a look at each takes its time, in which nothing else happens.
const PAGES_MAX: u64 = 1 << 16;
/// Pages in the budget for one reply.
pub(crate) const REPLY_PAGES: u64 = 4;
/// Most descriptors in one reply: those that fit the budget.
const DESCRIPTORS_MAX: usize =
    (REPLY_PAGES as usize * PAGE_BYTES - CHUNK_BYTES - 4) / DESCRIPTOR_BYTES;

impl<D: PageDevice<Page = PageBuf>> Export<D> {
    /// The status of the first bytes of `span`, which is not empty: one descriptor, or as many as are alike. All of it is as of
    /// this moment, as there is no await, so it needs no lock: a write in flight is there or not, as for a read.
    pub(crate) fn block_status(&self, span: Span, one: bool) -> Vec<Descriptor> {
        let covering = span.covering();
        let range = PageRange::new(covering.first, covering.pages.min(PAGES_MAX));
        let most = if one { 1 } else { DESCRIPTORS_MAX };
        let mut told: Vec<Descriptor> = Vec::new();
        let mut at = range.first;
        while at < range.end() {
            let extent = self.device.extent(PageRange::new(at, range.end().0 - at.0));
            let bytes = span.inside(PageRange::new(at, extent.pages)).length as u32;
            let flags = if extent.is_hole { STATE_HOLE | STATE_ZERO } else { 0 };
            let is_full = told.len() == most;
            match told.last_mut() {
                Some(last) if last.flags == flags => last.bytes += bytes,
                _ if is_full => break,
                _ => told.push(Descriptor { bytes, flags }),
            }
            at.0 += extent.pages;
        }
        told
    }
}
