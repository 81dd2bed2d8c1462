//! Newtypes for numbers that must not be confused.
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $int:ty, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// The number as an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// Logical page number, by which a host addresses a page. Starts at 0.
    PageNo, u64, "page#"
);
id!(
    /// A zone: appended to, read, and reset as a whole. Numbers start at 0.
    ZoneNo, u32, "zone#"
);
id!(
    /// Physical page: `zone * slots_per_zone + offset`. 32 bits reach 16 TiB of 4 KiB pages.
    SlotNo, u32, "slot#"
);
id!(
    /// A transaction of a device, as returned by `begin`.
    TxId, u64, "tx#"
);
id!(
    /// Position in the single sequence of all changes of a device; each written page or record gets the next one. 0
    /// means "never written".
    Version, u64, "v"
);

impl Version {
    /// Lower than the version of any change.
    pub const NEVER: Version = Version(0);

    /// The version after this one.
    #[inline]
    pub const fn next(self) -> Version {
        Version(self.0 + 1)
    }
}

/// `pages` pages from `first`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PageRange {
    /// First page of the range.
    pub first: PageNo,
    /// Length in pages; 0 is an empty range.
    pub pages: u64,
}

impl PageRange {
    /// `pages` pages from `first`.
    pub const fn new(first: PageNo, pages: u64) -> Self {
        PageRange { first, pages }
    }

    /// The page after the last one; saturates.
    #[inline]
    pub const fn end(self) -> PageNo {
        PageNo(self.first.0.saturating_add(self.pages))
    }

    /// Whether `page` lies in the range.
    #[inline]
    pub const fn contains(self, page: PageNo) -> bool {
        page.0 >= self.first.0 && page.0 < self.end().0
    }

    /// Whether the two ranges share a page.
    #[inline]
    pub const fn overlaps(self, other: PageRange) -> bool {
        self.first.0 < other.end().0 && other.first.0 < self.end().0
    }

    /// The pages, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = PageNo> {
        (self.first.0..self.end().0).map(PageNo)
    }
}

impl fmt::Display for PageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.first, self.pages)
    }
}
