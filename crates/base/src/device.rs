//! The contract that every front end and host sees.
use crate::{PageNo, PageRange, Payload, Result, TxId};

/// What survives a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Durability {
    /// What completed survives; `flush` costs nothing.
    OnAck,
    /// What completed before the last completed `flush` survives; after a cut the device holds a
    /// prefix of the completed writes, each all or nothing.
    OnFlush,
    /// What completed before the last completed `flush` survives; what came after may be there,
    /// be missing, or be torn, in any order: an ordinary SSD with a volatile cache.
    Volatile,
}

impl Durability {
    /// The word used in configuration files and output.
    pub fn name(self) -> &'static str {
        match self {
            Durability::OnAck => "on_ack",
            Durability::OnFlush => "on_flush",
            Durability::Volatile => "volatile",
        }
    }
}

/// What a device offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages the device offers.
    pub pages: u64,
    /// Pages a single `write` may have and still be all or nothing.
    pub atomic_write_pages_max: u32,
    /// Pages a transaction may write.
    pub transaction_pages_max: u32,
    /// Transactions that may be open at once; 0 where there are none.
    pub transactions_max: u32,
    /// Pairs a `share` may have; 0 where there is none.
    pub share_pairs_max: u32,
    /// What survives a power cut.
    pub durability: Durability,
}

/// A device of numbered pages. See `docs/durability.md` for the promises.
///
/// Every call may be made concurrently with others; the order of overlapping calls that are in
/// flight together is the device's choice. An error leaves nothing half done.
#[allow(async_fn_in_trait, reason = "devices live on one thread; their futures need not be Send")]
pub trait PageDevice: 'static {
    /// Content of a page: bytes or a stamp.
    type Page: Payload;

    /// What the device offers.
    fn limits(&self) -> &Limits;

    /// Reads `out.len()` pages from `first`. With `tx`, sees what that transaction wrote.
    async fn read(&self, first: PageNo, out: &mut [Self::Page], tx: Option<TxId>) -> Result<()>;

    /// Writes `pages` from `first` on, all or nothing. With `tx`, invisible to others until the
    /// commit.
    async fn write(&self, first: PageNo, pages: &[Self::Page], tx: Option<TxId>) -> Result<()>;

    /// Makes everything that completed before the call durable.
    async fn flush(&self) -> Result<()>;

    /// Gives the range up; it reads as zeros.
    async fn trim(&self, range: PageRange) -> Result<()>;

    /// Remaps: each left page takes the right page's content; all pairs or none
    /// (SHARE, section 3.2).
    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()>;

    /// Opens a transaction.
    async fn begin(&self) -> Result<TxId>;

    /// Makes all that the transaction wrote visible and durable, all or nothing.
    async fn commit(&self, tx: TxId) -> Result<()>;

    /// Drops all that the transaction wrote.
    async fn abort(&self, tx: TxId) -> Result<()>;
}

impl Limits {
    /// Checks that `range` lies on the device.
    pub fn check_range(&self, range: PageRange) -> Result<()> {
        if range.first.0.checked_add(range.pages).is_none_or(|end| end > self.pages) {
            return Err(crate::Error::new(
                crate::ErrorKind::OutOfRange,
                format!("pages {range} reach past the end of the device ({} pages)", self.pages),
            ));
        }
        Ok(())
    }
}
