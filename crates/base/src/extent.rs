//! Pages that are stored alike.

/// Pages of a device, from a given one on, that are stored alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// How many.
    pub pages: u64,
    /// None of them has content: they read as zeros, and take no space. Where it is false they may have some.
    pub is_hole: bool,
    /// Each of them has content, and as far as is known without reading it, by its checksum, that is zeros. Other content may have
    /// that checksum as well: only a read tells.
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
