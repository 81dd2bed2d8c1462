//! What lies where on the device: the double-write area, the file system's journal, the homes.
use tantalum_base::{PageNo, PageRange};

use super::options::DoubleWriteOptions;

/// Places, in device pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    page_pages: u64,
    area_pages: u64,
    metadata_pages: u64,
    home_pages: u64,
}

impl Layout {
    pub(super) fn new(options: &DoubleWriteOptions) -> Layout {
        let page_pages = u64::from(options.device_pages_per_page);
        Layout {
            page_pages,
            area_pages: u64::from(options.batch_pages) * page_pages,
            metadata_pages: u64::from(options.metadata_pages),
            home_pages: options.database_pages * page_pages,
        }
    }

    /// Device pages in all.
    pub(super) fn pages(&self) -> u64 {
        self.area_pages + self.metadata_pages + self.home_pages
    }

    /// The place of a batch's page number `slot` in the double-write area.
    pub(super) fn area(&self, slot: u64) -> PageRange {
        debug_assert!((slot + 1) * self.page_pages <= self.area_pages);
        PageRange::new(PageNo(slot * self.page_pages), self.page_pages)
    }

    /// Pages of the database that the double-write area holds.
    pub(super) fn area_slots(&self) -> u64 {
        self.area_pages / self.page_pages
    }

    /// The journal's page number `count`, going round.
    pub(super) fn metadata(&self, count: u64) -> PageNo {
        PageNo(self.area_pages + count % self.metadata_pages)
    }

    /// The home of a page of the database.
    pub(super) fn home(&self, page: u64) -> PageRange {
        let first = self.area_pages + self.metadata_pages + page * self.page_pages;
        PageRange::new(PageNo(first), self.page_pages)
    }

    /// The page of the database whose home begins at `first`, if one's does.
    pub(super) fn page_at(&self, first: PageNo) -> Option<u64> {
        let at = first.0.checked_sub(self.area_pages + self.metadata_pages)?;
        (at < self.home_pages && at.is_multiple_of(self.page_pages)).then(|| at / self.page_pages)
    }
}
