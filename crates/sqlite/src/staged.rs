//! The pages of a running transaction that outgrew memory: they are on the volume in a device transaction of their own,
//! invisible to others, and dropped if it does not commit.
use std::collections::BTreeSet;
use tantalum::{PageNo, Transaction};

/// The device transaction that holds pages of a database's transaction.
pub(crate) struct Staged {
    pub(crate) transaction: Transaction,
    /// The pages written in it. The database's first page is never among them, because SQLite reads it all the time.
    pub(crate) pages: BTreeSet<PageNo>,
}

impl Staged {
    /// The transaction, without any pages.
    pub(crate) fn new(transaction: Transaction) -> Self {
        Staged { transaction, pages: BTreeSet::new() }
    }

    /// The first page behind all written pages.
    pub(crate) fn end(&self) -> PageNo {
        self.pages.last().map_or(PageNo(0), |page| PageNo(page.0 + 1))
    }
}
