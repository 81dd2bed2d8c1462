//! A client's requests to a device, and the answers.
use crate::changes::Changed;
use crate::locks::Level;
use crate::server::VIEW_PAGES_MAX;
use crate::session::TRIM_PAGES_MAX;
use tantalum_base::{PageBuf, PageNo, PageRange, TxId};

/// A command to a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Reads `pages` pages from `first`, as `tx` sees them.
    Read {
        /// The first page.
        first: PageNo,
        /// The number of pages.
        pages: usize,
        /// The transaction.
        tx: Option<TxId>,
    },
    /// Writes pages starting at `first`, in `tx`.
    Write {
        /// The first page.
        first: PageNo,
        /// Their new content.
        pages: Vec<PageBuf>,
        /// The transaction.
        tx: Option<TxId>,
    },
    /// Writes pages that need not be contiguous, each once, as a transaction of its own.
    WriteScattered(Vec<(PageNo, PageBuf)>),
    /// Makes all completed changes durable.
    Flush,
    /// Discards a range.
    Trim(PageRange),
    /// Gives each left page the right page's content.
    Share(Vec<(PageNo, PageNo)>),
    /// Opens a transaction.
    Begin,
    /// Commits a transaction.
    Commit(TxId),
    /// Aborts a transaction.
    Abort(TxId),
}

impl Request {
    /// The transaction of this request.
    pub(crate) fn tx(&self) -> Option<TxId> {
        match self {
            Request::Read { tx, .. } | Request::Write { tx, .. } => *tx,
            Request::Commit(tx) | Request::Abort(tx) => Some(*tx),
            _ => None,
        }
    }

    /// The number of pages that the device reads or writes.
    pub(crate) fn pages_moved(&self) -> u64 {
        let pages = match self {
            Request::Read { pages, .. } => *pages,
            Request::Write { pages, .. } => pages.len(),
            Request::WriteScattered(pages) => pages.len(),
            _ => 0,
        };
        pages as u64
    }

    /// Whether it may change pages, now or by requests that follow it.
    pub fn changes(&self) -> bool {
        !matches!(self, Request::Read { .. } | Request::Flush)
    }
}

/// Raises a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raise {
    /// The lock holder: a number chosen by the client.
    pub holder: u64,
    /// The requested level.
    pub wanted: Level,
    /// The number of the last change that the client knows of.
    pub seen: u64,
    /// Pages to return if one of them changed since.
    pub view: PageRange,
}

/// A client's call to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// A request to the device.
    Device(Request),
    /// Raises a lock. The answer lists the changes of the device.
    Raise(Raise),
    /// Lowers a lock, to `Shared` or `None`. There is no answer.
    Lower {
        /// As in [`Raise`].
        holder: u64,
        /// The level that the holder keeps.
        wanted: Level,
    },
    /// Whether any holder intends to write: its lock is above `Shared`.
    IsReserved,
}

impl Call {
    /// The number of pages that the device reads or writes.
    pub(crate) fn pages_moved(&self) -> u64 {
        match self {
            Call::Device(request) => request.pages_moved(),
            Call::Raise(raise) => raise.view.pages.min(VIEW_PAGES_MAX),
            Call::Lower { .. } | Call::IsReserved => 0,
        }
    }

    /// The number of pages that the device examines.
    pub(crate) fn pages_examined(&self) -> u64 {
        match self {
            // Only the first step of a long trim is counted here; each later one waits for a turn of its own.
            Call::Device(Request::Trim(range)) => range.pages.min(TRIM_PAGES_MAX),
            Call::Device(Request::Share(pairs)) => pairs.len() as u64,
            _ => 0,
        }
    }
}

/// The answer to a successful call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// For a read, the pages read; for a lock, the requested pages if one of them changed.
    pub pages: Vec<PageBuf>,
    /// For `Begin`, the new transaction.
    pub tx: TxId,
    /// For `Raise`, the level reached; for `IsReserved`, `Reserved` if any holder is above `Shared`, else `None`.
    pub level: Level,
    /// The number of the last change.
    pub last_change: u64,
    /// For `Raise`, the pages that changed since the last change that the client knew.
    pub changed: Changed,
}
