//! The events of a trace.
use tantalum_base::PageNo;

/// A request at the level of pages, to a buffer manager or a page device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum PageEvent {
    /// Reads `pages` pages from `page`.
    Read {
        /// First page.
        page: PageNo,
        /// How many, at least 1.
        pages: u32,
    },
    /// Updates `pages` pages from `page`. One request, not a read and a write.
    Write {
        /// First page.
        page: PageNo,
        /// How many, at least 1.
        pages: u32,
    },
    /// Discards `pages` pages from `page`.
    Trim {
        /// First page.
        page: PageNo,
        /// How many, at least 1.
        pages: u32,
    },
    /// A commit point, or a flush. In the trace of a single client, all writes since the previous one belong to this
    /// transaction.
    Commit,
}

impl PageEvent {
    /// A request for one page; it updates the page if `write`.
    #[inline]
    pub const fn one(page: PageNo, write: bool) -> PageEvent {
        if write { PageEvent::Write { page, pages: 1 } } else { PageEvent::Read { page, pages: 1 } }
    }

    /// The pages that it reads or writes, one by one, each with whether it is written; none for trims and commit
    /// points.
    #[inline]
    pub fn requests(&self) -> impl Iterator<Item = (PageNo, bool)> + use<> {
        let (first, pages, is_write) = match *self {
            PageEvent::Read { page, pages } => (page.0, pages, false),
            PageEvent::Write { page, pages } => (page.0, pages, true),
            PageEvent::Trim { .. } | PageEvent::Commit => (0, 0, false),
        };
        (0..u64::from(pages)).map(move |at| (PageNo(first.saturating_add(at)), is_write))
    }

    /// The first of its pages and their number; `None` for a commit point.
    #[inline]
    pub fn range(&self) -> Option<(PageNo, u32)> {
        match *self {
            PageEvent::Read { page, pages }
            | PageEvent::Write { page, pages }
            | PageEvent::Trim { page, pages } => Some((page, pages)),
            PageEvent::Commit => None,
        }
    }

    /// The same event for other pages; a commit point stays the same.
    #[inline]
    pub fn at(self, page: PageNo, pages: u32) -> PageEvent {
        match self {
            PageEvent::Read { .. } => PageEvent::Read { page, pages },
            PageEvent::Write { .. } => PageEvent::Write { page, pages },
            PageEvent::Trim { .. } => PageEvent::Trim { page, pages },
            PageEvent::Commit => PageEvent::Commit,
        }
    }

    /// The same event with its pages moved up by `by`; `None` if that exceeds 64 bits.
    #[inline]
    pub fn moved(self, by: u64) -> Option<PageEvent> {
        match self.range() {
            Some((page, pages)) => Some(self.at(PageNo(page.0.checked_add(by)?), pages)),
            None => Some(self),
        }
    }
}

/// The operation of a block event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum BlockOp {
    /// Reads `length` bytes at `offset`.
    Read,
    /// Writes `length` bytes at `offset`.
    Write,
    /// Syncs the file (fsync, fdatasync); `length` is 0.
    Flush,
    /// Discards `length` bytes at `offset`.
    Discard,
    /// Cuts the file to the size in `offset`; `length` is 0.
    Truncate,
    /// Removes the file; `length` is 0.
    Unlink,
}

impl BlockOp {
    /// All operations, in the order of their letters in [`BlockOp::letter`].
    pub const ALL: [BlockOp; 6] = [
        BlockOp::Read,
        BlockOp::Write,
        BlockOp::Flush,
        BlockOp::Discard,
        BlockOp::Truncate,
        BlockOp::Unlink,
    ];

    /// The letter of the operation in block CSV.
    pub const fn letter(self) -> u8 {
        match self {
            BlockOp::Read => b'R',
            BlockOp::Write => b'W',
            BlockOp::Flush => b'F',
            BlockOp::Discard => b'D',
            BlockOp::Truncate => b'T',
            BlockOp::Unlink => b'U',
        }
    }
}

/// A volume (a disk, a device, or in `block_csv` a kind of file such as data or redo log), as an
/// index into the trace's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct FileKind(pub u16);

/// A request for bytes: to a volume, or a storage engine's system call on one of its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct BlockEvent {
    /// The operation.
    pub op: BlockOp,
    /// The volume; each has a separate address space.
    pub file_kind: FileKind,
    /// First byte, in the address space of the volume.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}
