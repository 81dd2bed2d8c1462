//! What of a running transaction outgrew memory: it lies on the volume in a device transaction of its own, seen by nobody
//! else, and gone if that does not commit.
use std::collections::BTreeSet;
use tantalum_base::{PageNo, TxId};

/// The device transaction that holds pages of a database's transaction.
pub(crate) struct Staged {
    pub(crate) tx: TxId,
    /// What was written in it. The first page of the database is never among them: SQLite asks for it all the time.
    pub(crate) pages: BTreeSet<PageNo>,
}

impl Staged {
    /// Nothing yet in the transaction `tx`.
    pub(crate) fn new(tx: TxId) -> Self {
        Staged { tx, pages: BTreeSet::new() }
    }

    /// The first page past all that was written.
    pub(crate) fn end(&self) -> PageNo {
        self.pages.last().map_or(PageNo(0), |page| PageNo(page.0 + 1))
    }
}
