//! What a client asks of a device, and what it is answered.
use crate::changes::Changed;
use crate::locks::Level;
use tantalum_base::{PageBuf, PageNo, PageRange, TxId};

/// A command to a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Reads `pages` pages from `first`, as `tx` sees them.
    Read {
        /// The first page.
        first: PageNo,
        /// How many.
        pages: usize,
        /// The transaction.
        tx: Option<TxId>,
    },
    /// Writes from `first` on, in `tx`.
    Write {
        /// The first page.
        first: PageNo,
        /// Their new content.
        pages: Vec<PageBuf>,
        /// The transaction.
        tx: Option<TxId>,
    },
    /// Writes anywhere, each page once, as a transaction of its own.
    WriteScattered(Vec<(PageNo, PageBuf)>),
    /// Makes everything that completed before durable.
    Flush,
    /// Gives a range up.
    Trim(PageRange),
    /// Gives each left page the right page's content.
    Share(Vec<(PageNo, PageNo)>),
    /// Opens a transaction.
    Begin,
    /// Commits one.
    Commit(TxId),
    /// Drops one.
    Abort(TxId),
}

impl Request {
    /// The transaction that it is of.
    pub(crate) fn tx(&self) -> Option<TxId> {
        match self {
            Request::Read { tx, .. } | Request::Write { tx, .. } => *tx,
            Request::Commit(tx) | Request::Abort(tx) => Some(*tx),
            _ => None,
        }
    }

    /// Whether it may change something, now or by what comes after it.
    pub fn changes(&self) -> bool {
        !matches!(self, Request::Read { .. } | Request::Flush)
    }
}

/// Takes a lock higher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raise {
    /// Who holds it: a number of the client's own.
    pub holder: u64,
    /// The level that it wants.
    pub wanted: Level,
    /// The number of the last change that the client knows of.
    pub seen: u64,
    /// Pages that it wants to have if one of them changed since.
    pub view: PageRange,
}

/// What a client asks of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Something of the device.
    Device(Request),
    /// To take a lock higher. The answer says what changed on the device.
    Raise(Raise),
    /// To lower a lock, to `Shared` or `None`. There is no answer.
    Lower {
        /// As in [`Raise`].
        holder: u64,
        /// The level that it keeps.
        wanted: Level,
    },
    /// Whether anybody means to write: its lock is above `Shared`.
    IsReserved,
}

/// What a call that was granted brings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// What was read, of a read; what the client wanted to have of what changed, of a lock.
    pub pages: Vec<PageBuf>,
    /// What was opened, of `Begin`.
    pub tx: TxId,
    /// What is held now, of `Raise`; what the writer holds, of `IsReserved`.
    pub level: Level,
    /// The number of the last change.
    pub last_change: u64,
    /// What changed since the one that the client knew of, of `Raise`.
    pub changed: Changed,
}
