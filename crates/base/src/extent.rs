//! A run of consecutive pages that are stored in the same way.

/// A run of consecutive pages of a device that are stored in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The number of pages.
    pub pages: u64,
    /// True if no page has content: all read as zeros and take no space. If false, pages may or may not have content.
    pub is_hole: bool,
    /// True if every page has content whose checksum is that of zeros. Other content can have the same checksum, so
    /// only a read can confirm it.
    pub seems_zero: bool,
}

impl Extent {
    /// `pages` pages that may have content.
    pub const fn data(pages: u64) -> Self {
        Extent { pages, is_hole: false, seems_zero: false }
    }

    /// `pages` pages without content.
    pub const fn hole(pages: u64) -> Self {
        Extent { pages, is_hole: true, seems_zero: false }
    }

    /// `pages` pages with content that seems to be zeros.
    pub const fn seeming_zero(pages: u64) -> Self {
        Extent { pages, is_hole: false, seems_zero: true }
    }
}
