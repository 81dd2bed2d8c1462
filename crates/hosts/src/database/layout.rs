//! The layout of the device: headers, the redo log, the double-write area, the file system's journal, the homes.
use tantalum_base::{PageNo, PageRange};

use super::options::PageOptions;
use super::way::Way;
use crate::redo::HEADER_PAGES;

/// The place of the redo log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogPlace {
    /// There is no log and there are no headers.
    Nowhere,
    /// The log occupies this many device pages after the headers.
    Here(u64),
    /// The log has the same place, on another device.
    Apart(u64),
}

/// Places, in device pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    page_pages: u64,
    log: PageRange,
    area: PageRange,
    metadata: PageRange,
    homes: PageRange,
}

impl Layout {
    /// Saturates: if there are more pages than can be counted, the homes end beyond any device.
    pub(crate) fn new<W: Way>(options: &PageOptions<W>, log: LogPlace) -> Layout {
        let page_pages = u64::from(options.device_pages_per_page);
        let home_pages = options.database_pages.saturating_mul(page_pages);
        let (headers, log_pages, log_here) = match log {
            LogPlace::Nowhere => (0, 0, 0),
            LogPlace::Here(pages) => (HEADER_PAGES, pages, pages),
            LogPlace::Apart(pages) => (HEADER_PAGES, pages, 0),
        };
        let log = PageRange::new(PageNo(headers), log_pages);
        let area_pages = if options.form.has_area() { options.batch_pages } else { 0 };
        let area_first = PageNo(headers.saturating_add(log_here));
        let area = PageRange::new(area_first, u64::from(area_pages) * page_pages);
        let metadata = PageRange::new(area.end(), u64::from(options.metadata_pages));
        let homes = PageRange::new(metadata.end(), home_pages);
        Layout { page_pages, log, area, metadata, homes }
    }

    /// Total number of device pages, without those of a log on another device.
    pub(crate) fn pages(&self) -> u64 {
        self.homes.end().0
    }

    /// Number of pages of the database.
    pub(crate) fn database_pages(&self) -> u64 {
        self.homes.pages / self.page_pages
    }

    /// The redo log, on its device.
    pub(crate) fn log(&self) -> PageRange {
        self.log
    }

    /// The place of page number `slot` of a batch in the double-write area.
    pub(crate) fn area(&self, slot: u64) -> PageRange {
        debug_assert!((slot + 1) * self.page_pages <= self.area.pages);
        PageRange::new(PageNo(self.area.first.0 + slot * self.page_pages), self.page_pages)
    }

    /// Number of database pages that the double-write area holds.
    pub(crate) fn area_slots(&self) -> u64 {
        self.area.pages / self.page_pages
    }

    /// The place of journal page number `count`; the journal is circular.
    pub(crate) fn metadata(&self, count: u64) -> PageNo {
        PageNo(self.metadata.first.0 + count % self.metadata.pages)
    }

    /// The home of a page of the database.
    pub(crate) fn home(&self, page: PageNo) -> PageRange {
        PageRange::new(PageNo(self.homes.first.0 + page.0 * self.page_pages), self.page_pages)
    }

    /// The database page whose home begins at `first`, if there is one.
    pub(crate) fn page_at(&self, first: PageNo) -> Option<PageNo> {
        let at = first.0.checked_sub(self.homes.first.0)?;
        let begins = at < self.homes.pages && at.is_multiple_of(self.page_pages);
        begins.then(|| PageNo(at / self.page_pages))
    }
}
