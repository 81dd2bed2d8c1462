//! What a line of a trace says.
use tantalum_base::PageNo;

/// A request at the level of pages: what a buffer manager or a page device is asked for.
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
    /// Gives `pages` pages from `page` up.
    Trim {
        /// First page.
        page: PageNo,
        /// How many, at least 1.
        pages: u32,
    },
    /// A commit point, or a flush. In the trace of a single client all writes since the one before
    /// belong to this transaction.
    Commit,
}

/// What a block event does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum BlockOp {
    /// Reads `length` bytes at `offset`.
    Read,
    /// Writes `length` bytes at `offset`.
    Write,
    /// Syncs the file (fsync, fdatasync); `length` is 0.
    Flush,
    /// Cuts the file to the size that `offset` gives; `length` is 0.
    Truncate,
    /// Removes the file; `length` is 0.
    Unlink,
}

impl BlockOp {
    /// All operations, in the order of their letters in [`BlockOp::letter`].
    pub const ALL: [BlockOp; 5] =
        [BlockOp::Read, BlockOp::Write, BlockOp::Flush, BlockOp::Truncate, BlockOp::Unlink];

    /// The letter that stands for it in block CSV.
    pub const fn letter(self) -> u8 {
        match self {
            BlockOp::Read => b'R',
            BlockOp::Write => b'W',
            BlockOp::Flush => b'F',
            BlockOp::Truncate => b'T',
            BlockOp::Unlink => b'U',
        }
    }
}

/// A kind of file (data, redo log, journal), as an index into the trace's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct FileKind(pub u16);

/// A system call of a storage engine on one of its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct BlockEvent {
    /// What it does.
    pub op: BlockOp,
    /// Each kind of file has an address space of its own.
    pub file_kind: FileKind,
    /// First byte, in the address space of the kind.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}
