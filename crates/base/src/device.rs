//! The interface between a device and its front ends and hosts.
use crate::{Error, ErrorKind, Extent, PageNo, PageRange, Payload, Result, TxId};

/// The guarantee of a device about writes at a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Durability {
    /// Completed writes survive; `flush` costs nothing.
    OnAck,
    /// Writes completed before the last completed `flush` survive. After a power cut the device holds a prefix of the
    /// completed writes, each all or nothing.
    OnFlush,
    /// Writes completed before the last completed `flush` survive. Later ones may survive, be missing or be torn, in
    /// any order. This is an ordinary SSD with a volatile cache.
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

/// Limits and promises of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Number of pages.
    pub pages: u64,
    /// Maximum pages in one `write`. A `write` is all or nothing at a power cut, except on `Volatile` devices and on
    /// the disks used for comparison (`docs/devices/disk.md`).
    pub atomic_write_pages_max: u32,
    /// Maximum pages in a transaction, and in a `write_scattered`.
    pub transaction_pages_max: u32,
    /// Maximum number of open transactions; 0 if transactions are not supported.
    pub transactions_max: u32,
    /// Maximum pairs in a `share`; 0 if it is not supported.
    pub share_pairs_max: u32,
    /// The guarantee about writes at a power cut.
    pub durability: Durability,
}

/// A device of numbered pages. See `docs/durability.md` for the promises.
///
/// All calls may run concurrently. The device chooses the order of overlapping calls that are in flight together. A
/// call that returns an error leaves nothing half done.
///
/// A transaction holds the pages it wrote until it ends. A `write_scattered` holds its pages while it is in flight.
/// Another change of a held page fails with `Conflict` and changes nothing. This applies to a write (inside or
/// outside a transaction), a `write_scattered`, a trim of a range that contains the page, and a share or clone with
/// it as the left page. Reads are never refused. The order of acceptance decides: if a change was accepted before a
/// transaction took one of its pages, the change continues, like any change in flight together with the transaction.
///
/// The future of a call may be dropped. Its change then takes effect as a whole or not at all, either at once or
/// later, but before any change of the same pages that is issued after it.
#[allow(async_fn_in_trait, reason = "devices live on one thread; their futures need not be Send")]
pub trait PageDevice: 'static {
    /// Content of a page: bytes or a stamp.
    type Page: Payload;

    /// The device's limits and promises.
    fn limits(&self) -> &Limits;

    /// Reads `out.len()` pages from `first`. With `tx`, the read sees the writes of that transaction.
    async fn read(&self, first: PageNo, out: &mut [Self::Page], tx: Option<TxId>) -> Result<()>;

    /// Writes `pages` from `first` on, all or nothing. With `tx`, others see the new content only after the commit.
    ///
    /// # Errors
    /// With nothing changed: `OutOfRange`, `TooLarge`; `Conflict` if one of the pages is held; `OutOfSpace`; with
    /// `tx`, `UnknownTransaction`.
    async fn write(&self, first: PageNo, pages: &[Self::Page], tx: Option<TxId>) -> Result<()>;

    /// Writes distinct pages anywhere on the device, all or nothing. They become visible together and are durable
    /// when this returns. It is a transaction in one call: it accepts at most `transaction_pages_max` pages, and none
    /// that an open transaction holds. It does not count towards `transactions_max`.
    ///
    /// `ended` is called in the step in which the pages become visible, or once it is certain that they never will.
    /// If the future is dropped before that, `ended` is dropped without a call.
    ///
    /// # Errors
    /// With nothing changed: `Unsupported` if the device has no such call, `TooLarge`, `OutOfRange`, `InvalidInput`
    /// if a page occurs twice, `Conflict`. Other errors as for [`commit`](Self::commit).
    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, Self::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let _ = (pages, ended);
        no_transactions()
    }

    /// Makes everything that completed before the call durable.
    async fn flush(&self) -> Result<()>;

    /// Trims the range; afterwards it reads as zeros.
    ///
    /// # Errors
    /// With nothing changed: `OutOfRange`; `Conflict` if a page of the range is held.
    async fn trim(&self, range: PageRange) -> Result<()>;

    /// Reports how the first pages of `range` are stored. `range` must be non-empty and lie on the device. The extent
    /// covers at least one page and at most the range. A read issued in the same step finds zeros in a hole. But a page
    /// that reads as zeros may also be reported as a page with content, or as one that does not seem zero. The cost is
    /// at most one look-up per page, without I/O. A device that does not know reports that all pages may have content.
    fn extent(&self, range: PageRange) -> Extent {
        Extent::data(range.pages)
    }

    /// Remaps pages: each left page gets the content of its right page without another write of it; all pairs or none
    /// (SHARE, section 3.2). Afterwards either page may be written or trimmed, and the other keeps its content. When
    /// this returns, the share and everything that completed before the call are durable (section 4.2.2: a share
    /// returns when it is logged).
    ///
    /// # Errors
    /// With nothing changed: `Unsupported` if the device does not remap; `TooLarge` above `share_pairs_max`;
    /// `OutOfRange`; `InvalidInput` if a page is left in two pairs, or left in one and right in another; `Unmapped`
    /// if a right page has no content; `Conflict` if a left page is held.
    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        let _ = pairs;
        no_remapping()
    }

    /// Like [`share`](Self::share), with any number of pairs, plus a trim of `zeros`. Nobody except the caller may use
    /// the right pages. `ended` is called as in [`write_scattered`](Self::write_scattered).
    ///
    /// # Errors
    /// As for `share`.
    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let _ = (pairs, zeros, ended);
        no_remapping()
    }

    /// [`share`](Self::share) of `pages` consecutive pages: those from `to` on get the content of those from `from`
    /// on. The ranges must not overlap.
    async fn share_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        self.share(&self.limits().share_range_pairs(to, from, pages)?).await
    }

    /// Makes the `pages` pages from `to` on equal to those from `from` on, as they are at one moment. The number of
    /// pages is not limited. Source pages with content are remapped, as in [`share`](Self::share); for those without
    /// content the target is trimmed. All or nothing; durable when it returns, with everything that completed before
    /// the call. Afterwards either page may be changed, and the other keeps its content.
    ///
    /// # Errors
    /// With nothing changed: `Unsupported` if the device does not remap; `OutOfRange`; `InvalidInput` if the ranges
    /// overlap; `Uncorrectable` if the medium lost a page; `Conflict` if a page to be changed is held; `TooLarge` if
    /// more content must be written again than there is room for.
    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        let _ = (to, from, pages);
        no_remapping()
    }

    /// Opens a transaction.
    async fn begin(&self) -> Result<TxId> {
        no_transactions()
    }

    /// Makes all writes of the transaction visible and durable, all or nothing. Until then others read the old
    /// content of its pages, and get `Conflict` if they change them.
    ///
    /// # Errors
    /// `UnknownTransaction` if `tx` is not open, or is being committed. After any other error the transaction has
    /// ended and holds nothing: it need not be aborted, and must be retried as a new one. None of its writes took
    /// effect, unless the device latched. In that case either all or none of them are there when the device is opened
    /// again.
    async fn commit(&self, tx: TxId) -> Result<()> {
        let _ = tx;
        no_transactions()
    }

    /// Drops all writes of the transaction.
    async fn abort(&self, tx: TxId) -> Result<()> {
        let _ = tx;
        no_transactions()
    }

    /// Waits while a page of `range` is held; for callers that retry after `Conflict`. Another transaction may already
    /// hold such a page again when this returns. Devices without transactions return at once.
    async fn until_released(&self, range: PageRange) {
        let _ = range;
    }
}

fn no_remapping<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "this device does not remap pages"))
}

fn no_transactions<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "this device has no transactions"))
}

impl Limits {
    /// Checks that `range` lies on the device.
    pub fn check_range(&self, range: PageRange) -> Result<()> {
        if range.first.0.checked_add(range.pages).is_none_or(|end| end > self.pages) {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!(
                    "{} pages from page {} on reach past the end of the device ({} pages)",
                    range.pages, range.first, self.pages
                ),
            ));
        }
        Ok(())
    }

    /// Checks the range and length of a `write` outside a transaction.
    pub fn check_write(&self, range: PageRange) -> Result<()> {
        self.check_range(range)?;
        let most = self.atomic_write_pages_max;
        if range.pages > u64::from(most) {
            let context = format!("a write of {} pages is over the limit of {most}", range.pages);
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        Ok(())
    }

    /// Checks the pages of a `write_scattered`: their number and range, and that they are distinct.
    pub fn check_scattered<P>(&self, pages: &[(PageNo, P)]) -> Result<()> {
        if pages.len() as u64 > u64::from(self.transaction_pages_max) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "a transaction of {} pages is over the device's limit of {}",
                    pages.len(),
                    self.transaction_pages_max
                ),
            ));
        }
        if let Some(last) = pages.iter().map(|(page, _)| *page).max() {
            self.check_range(PageRange::new(last, 1))?;
        }
        if pages.is_sorted_by(|(page, _), (next, _)| page < next) {
            return Ok(());
        }
        let mut numbers: Vec<PageNo> = pages.iter().map(|(page, _)| *page).collect();
        numbers.sort_unstable();
        match numbers.windows(2).find(|two| two[0] == two[1]) {
            Some(twice) => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("page {} appears twice in one call", twice[0]),
            )),
            None => Ok(()),
        }
    }

    /// Checks a batch of `share`: its size, its range, and that no page is left in two pairs, or
    /// left in one and right in another. A page may be right in several pairs.
    pub fn check_share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.check_share_len(pairs.len() as u64)?;
        for (left, right) in pairs {
            self.check_range(PageRange::new(*left, 1))?;
            self.check_range(PageRange::new(*right, 1))?;
        }
        let mut lefts: Vec<PageNo> = pairs.iter().map(|(left, _)| *left).collect();
        lefts.sort_unstable();
        let refuse = |context| Err(Error::new(ErrorKind::InvalidInput, context));
        if let Some(twice) = lefts.windows(2).find(|two| two[0] == two[1]) {
            return refuse(format!(
                "page {} is the destination of two shares in one batch",
                twice[0]
            ));
        }
        if let Some((_, both)) = pairs.iter().find(|(_, right)| lefts.binary_search(right).is_ok())
        {
            return refuse(format!("page {both} is both source and destination in one batch"));
        }
        Ok(())
    }

    /// The pairs of a `share_range`, after a check.
    pub fn share_range_pairs(
        &self,
        to: PageNo,
        from: PageNo,
        pages: u64,
    ) -> Result<Vec<(PageNo, PageNo)>> {
        self.check_share_len(pages)?;
        let (left, right) = self.clone_ranges(to, from, pages)?;
        Ok(left.iter().zip(right.iter()).collect())
    }

    /// The ranges of a `clone_range`, after a check.
    pub fn clone_ranges(
        &self,
        to: PageNo,
        from: PageNo,
        pages: u64,
    ) -> Result<(PageRange, PageRange)> {
        self.check_share_len(0)?;
        let (left, right) = (PageRange::new(to, pages), PageRange::new(from, pages));
        self.check_range(left)?;
        self.check_range(right)?;
        if left.overlaps(right) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("pages {left} and {right} overlap"),
            ));
        }
        Ok((left, right))
    }

    fn check_share_len(&self, pairs: u64) -> Result<()> {
        if self.share_pairs_max == 0 {
            return no_remapping();
        }
        if pairs > u64::from(self.share_pairs_max) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a share of {pairs} pages is over the limit of {}", self.share_pairs_max),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        page_bytes: 4096,
        pages: 100,
        atomic_write_pages_max: 1,
        transaction_pages_max: 0,
        transactions_max: 0,
        share_pairs_max: 4,
        durability: Durability::OnAck,
    };

    fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn batches_to_share_are_checked() {
        let check = |pairs: &[(u64, u64)]| {
            let pairs: Vec<_> =
                pairs.iter().map(|(left, right)| (PageNo(*left), PageNo(*right))).collect();
            kind(LIMITS.check_share(&pairs))
        };
        assert_eq!(check(&[]), None);
        assert_eq!(check(&[(0, 9), (1, 9), (99, 8)]), None, "one page may be right of several");
        assert_eq!(check(&[(0, 9), (0, 8)]), Some(ErrorKind::InvalidInput), "left twice");
        assert_eq!(check(&[(0, 1), (1, 2)]), Some(ErrorKind::InvalidInput), "left and right");
        assert_eq!(check(&[(3, 3)]), Some(ErrorKind::InvalidInput), "itself");
        assert_eq!(check(&[(0, 100)]), Some(ErrorKind::OutOfRange));
        assert_eq!(check(&[(u64::MAX, 0)]), Some(ErrorKind::OutOfRange));
        let five = [(0, 9), (1, 9), (2, 9), (3, 9), (4, 9)];
        assert_eq!(check(&five), Some(ErrorKind::TooLarge));
        let none = Limits { share_pairs_max: 0, ..LIMITS };
        assert_eq!(kind(none.check_share(&[])), Some(ErrorKind::Unsupported));
    }

    #[test]
    fn ranges_to_share_are_checked() {
        let range = |to, from, pages| LIMITS.share_range_pairs(PageNo(to), PageNo(from), pages);
        let pairs = [(PageNo(10), PageNo(20)), (PageNo(11), PageNo(21))];
        assert_eq!(range(10, 20, 2).unwrap(), pairs);
        assert_eq!(range(10, 10, 0).unwrap(), []);
        assert_eq!(range(10, 14, 4).unwrap().len(), 4, "side by side");
        assert_eq!(kind(range(10, 13, 4)), Some(ErrorKind::InvalidInput), "overlap");
        assert_eq!(kind(range(13, 10, 4)), Some(ErrorKind::InvalidInput), "overlap");
        assert_eq!(kind(range(0, 97, 4)), Some(ErrorKind::OutOfRange));
        assert_eq!(kind(range(0, u64::MAX, 4)), Some(ErrorKind::OutOfRange));
        assert_eq!(kind(range(0, 20, u64::MAX)), Some(ErrorKind::TooLarge));
    }
}
