//! Transactions.
use std::collections::BTreeSet;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Payload, Result, TxId};
use tantalum_local::Request;

use crate::bytes;
use crate::volume::Volume;

/// A transaction. It sees its own writes; no other caller sees them before [`commit`](Self::commit). If it is dropped without a
/// commit, it has no effect.
///
/// A page that it has written is locked until it ends: any other call that changes the page fails at once with `Conflict`.
/// Reads lock nothing.
#[derive(Debug)]
#[must_use = "dropped, it is aborted"]
pub struct Transaction {
    volume: Volume,
    tx: TxId,
    /// Pages that it has written, and so has locked.
    own: BTreeSet<PageNo>,
    ended: bool,
}

impl Transaction {
    pub(crate) fn begin(volume: Volume) -> Result<Transaction> {
        let tx = volume.0.call(Request::Begin)?.tx;
        Ok(Transaction::open(volume, tx))
    }

    /// The open transaction `tx`.
    pub(crate) fn open(volume: Volume, tx: TxId) -> Transaction {
        Transaction { volume, tx, own: BTreeSet::new(), ended: false }
    }

    /// Drops the handle without ending the transaction.
    pub(crate) fn leave_open(mut self) {
        self.ended = true;
    }

    /// Its number, which no other open transaction of the volume has.
    pub fn number(&self) -> u64 {
        self.tx.0
    }

    /// Reads `pages` pages starting at `first`, including this transaction's writes.
    ///
    /// # Errors
    /// As [`Volume::read`].
    pub fn read(&self, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.volume.0.read(first, pages, Some(self.tx))
    }

    /// Writes `pages` starting at `first`, as a part of this transaction.
    ///
    /// # Errors
    /// `Conflict` if another open transaction has written one of the pages; `TooLarge` beyond
    /// `limits().transaction_pages_max`; `OutOfRange`, `OutOfSpace`, `Latched`. After an error some of the pages may be
    /// written: abort the transaction, or write them again.
    pub fn write(&mut self, mut first: PageNo, mut pages: Vec<PageBuf>) -> Result<()> {
        let at_once = self.volume.limits().atomic_write_pages_max.max(1) as usize;
        loop {
            let after = pages.split_off(pages.len().min(at_once));
            let end = PageNo(first.0.saturating_add(pages.len() as u64));
            self.volume.0.call(Request::Write { first, pages, tx: Some(self.tx) })?;
            self.own.extend((first.0..end.0).map(PageNo));
            if after.is_empty() {
                return Ok(());
            }
            (first, pages) = (end, after);
        }
    }

    /// Fills `out` with the bytes at `offset`, including this transaction's writes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        bytes::read(offset, out, |first, pages| self.read(first, pages))
    }

    /// Writes `bytes` at `offset`, as a part of this transaction. The rest of their pages does not change.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let pages = bytes::pages(offset, bytes, |page| self.taken(page))?;
        self.write(PageNo(offset / PAGE_BYTES as u64), pages)
    }

    /// Locks `page` for this transaction, so that no other caller can change it, and returns its content.
    fn taken(&mut self, page: PageNo) -> Result<PageBuf> {
        if !self.own.contains(&page) {
            // The first write only locks the page. Another caller may have changed the page after it was read, so it is read
            // again under the lock.
            let before = self.volume.read(page, 1)?;
            self.write(page, before)?;
            let now = self.volume.read(page, 1)?;
            self.write(page, now)?;
        }
        Ok(self.read(page, 1)?.pop().unwrap_or_else(PageBuf::zero))
    }

    /// Makes all writes visible and durable, all or nothing.
    ///
    /// # Errors
    /// After an error the transaction has had no effect, except after `Latched` and `Closed`: then it has taken effect
    /// completely or not at all, and the next opening shows which.
    pub fn commit(mut self) -> Result<()> {
        self.ended = true;
        self.volume.0.call(Request::Commit(self.tx)).map(drop)
    }

    /// Discards all writes, and reports an error if that fails. Dropping the transaction does the same silently.
    ///
    /// # Errors
    /// `Closed` if the server of the volume has gone, and the transaction with it.
    pub fn abort(mut self) -> Result<()> {
        self.ended = true;
        self.volume.0.call(Request::Abort(self.tx)).map(drop)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            // If this fails, the volume discards the writes when it is closed.
            let _ = self.volume.0.call(Request::Abort(self.tx));
        }
    }
}
