//! Reports which pages have content for readers, in the write cache or in the log.
use tantalum_base::{Extent, PageNo, PageRange, Payload};
use tantalum_media::ZoneMedia;

use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Reports how the first pages of `range` are stored. A page in the write cache has content, even if
    /// the log does not know it yet.
    pub(crate) fn extent_as_read(&self, range: PageRange) -> Extent {
        let cache = self.cache.borrow();
        let zeros = M::Page::zero();
        let zeros_checksum = zeros.checksum();
        let stored = |page| match cache.get(page) {
            Some(content) if *content == zeros => Extent::seeming_zero(1),
            Some(_) => Extent::data(1),
            None if !self.ftl.has_content(page) => Extent::hole(1),
            None if self.ftl.has_checksum(page, zeros_checksum) => Extent::seeming_zero(1),
            None => Extent::data(1),
        };
        let (end, first) = (range.end(), stored(range.first));
        let skips = first.is_hole && cache.is_empty();
        let mut at = PageNo(range.first.0 + 1);
        loop {
            // On a nearly empty volume this skips most of the map.
            if skips {
                at = self.ftl.next_known(at, end);
            }
            if at >= end || stored(at) != first {
                break;
            }
            at.0 += 1;
        }
        Extent { pages: at.0 - range.first.0, ..first }
    }
}
