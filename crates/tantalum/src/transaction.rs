//! Changes that come together or not at all.
use std::collections::BTreeSet;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Payload, Result, TxId};

use crate::bytes;
use crate::volume::Volume;

/// A transaction: it sees its own writes, and nobody else does before [`commit`](Self::commit). Dropped without that, it
/// leaves nothing.
///
/// A page that it has written is its own until it ends: another call that changes the page is refused as `Conflict` at once.
/// Reads take no page.
#[must_use = "dropped, it is aborted"]
pub struct Transaction {
    volume: Volume,
    tx: TxId,
    /// Pages that it has written, and so are its own.
    own: BTreeSet<PageNo>,
    ended: bool,
}

impl Transaction {
    pub(crate) fn begin(volume: Volume) -> Result<Transaction> {
        let tx = volume.client().begin()?;
        Ok(Transaction { volume, tx, own: BTreeSet::new(), ended: false })
    }

    /// Reads `pages` pages from `first` on, with what this transaction has written.
    ///
    /// # Errors
    /// As [`Volume::read`].
    pub fn read(&self, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.volume.client().read_tx(self.tx, first, pages)
    }

    /// Writes `pages` from `first` on, as a part of this transaction.
    ///
    /// # Errors
    /// `Conflict` where another open transaction has written one of the pages; `TooLarge` beyond
    /// `limits().transaction_pages_max`; `OutOfRange`, `OutOfSpace`, `Latched`. A part of the pages may be written: give the
    /// transaction up, or write them again.
    pub fn write(&mut self, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        let at_once = self.volume.limits().atomic_write_pages_max.max(1) as usize;
        let mut at = first.0;
        for part in pages.chunks(at_once) {
            self.volume.client().write_tx(self.tx, PageNo(at), part.to_vec())?;
            self.own.extend((at..at + part.len() as u64).map(PageNo));
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Fills `out` with the bytes from `offset` on, with what this transaction has written.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        bytes::read(offset, out, |first, pages| self.read(first, pages))
    }

    /// Writes `bytes` from `offset` on, as a part of this transaction. The rest of their pages stays as it is.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let pages = bytes::pages(offset, bytes, |page| self.taken(page))?;
        self.write(PageNo(offset / PAGE_BYTES as u64), pages)
    }

    /// The content of `page`, which is this transaction's from now on, so that nobody changes it any more.
    fn taken(&mut self, page: PageNo) -> Result<PageBuf> {
        if !self.own.contains(&page) {
            // What is written here is not yet what counts: somebody may have changed the page since it was read.
            let before = self.volume.client().read(page, 1)?;
            self.write(page, before)?;
            let now = self.volume.client().read(page, 1)?;
            self.write(page, now)?;
        }
        Ok(self.read(page, 1)?.pop().unwrap_or_else(PageBuf::zero))
    }

    /// Makes all that was written visible and durable, all or nothing.
    ///
    /// # Errors
    /// Nothing of it is there then, but for `Latched` and `Closed`: it may be there whole, as the next opening tells.
    pub fn commit(mut self) -> Result<()> {
        self.ended = true;
        self.volume.client().commit(self.tx)
    }

    /// Gives up all that was written, and says if that could not be done. To drop it does the same, silently.
    ///
    /// # Errors
    /// `Closed` where the server of the volume has gone, and the transaction with it.
    pub fn abort(mut self) -> Result<()> {
        self.ended = true;
        self.volume.client().abort(self.tx)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            // Where that fails the volume drops it when it is closed.
            let _ = self.volume.client().abort(self.tx);
        }
    }
}
