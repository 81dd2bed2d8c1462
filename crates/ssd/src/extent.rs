//! Which pages have content, as readers see it: in the write cache, or in the log.
use tantalum_base::{Extent, PageNo, PageRange};
use tantalum_media::ZoneMedia;

use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// How the first pages of `range` are stored. A page that waits in the write cache has content, though the log may know
    /// nothing of it yet.
    pub(crate) fn extent_as_read(&self, range: PageRange) -> Extent {
        let cache = self.cache.borrow();
        let is_hole = |page| !self.ftl.has_content(page) && cache.get(page).is_none();
        let (end, starts_as_hole) = (range.end(), is_hole(range.first));
        let skips = starts_as_hole && cache.is_empty();
        let mut at = PageNo(range.first.0 + 1);
        loop {
            // Of a volume that was hardly written most of the map need not be looked at.
            if skips {
                at = self.ftl.next_known(at, end);
            }
            if at >= end || is_hole(at) != starts_as_hole {
                break;
            }
            at.0 += 1;
        }
        Extent { pages: at.0 - range.first.0, is_hole: starts_as_hole }
    }
}
