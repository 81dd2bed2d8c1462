//! A file on a file system that journals its metadata, as a device: the requests that a host without a raw device causes.
//!
//! ```text
//! write  if the file lacked one of the pages its metadata changes
//! fsync  if the metadata changed: a journal block, a flush, a commit record; then, or only, a flush
//! ```
//!
//! As with couchstore: it extends the file to the end of the header before the first of a commit's two syncs, so that the
//! second one has no change of the file's size to journal; and its `fdatasync` journals no times. So a write also allocates
//! the page after it, and only pages that the file lacked count as a change.
//!
//! A file system promises nothing about unsynchronised writes, so its host sees a `volatile` device, whatever the device
//! below is.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Durability, Limits, PageDevice, PageNo, PageRange, Result, Stamp, TxId};

/// A file that occupies the whole device except the journal at its end.
pub(crate) struct Journalled<D> {
    device: Rc<D>,
    /// The limits of the file.
    limits: Limits,
    journal: PageRange,
    journal_blocks: Cell<u64>,
    /// Which pages the file has.
    has: RefCell<Vec<bool>>,
    metadata_changed: Cell<bool>,
}

impl<D: PageDevice<Page = Stamp>> Journalled<D> {
    /// An empty file, and a journal of `journal_pages`.
    pub(crate) fn new(device: Rc<D>, journal_pages: u64) -> Self {
        let pages = device.limits().pages - journal_pages;
        let limits = Limits {
            pages,
            transaction_pages_max: 0,
            transactions_max: 0,
            durability: Durability::Volatile,
            ..device.limits().clone()
        };
        Journalled {
            device,
            limits,
            journal: PageRange::new(PageNo(pages), journal_pages),
            journal_blocks: Cell::new(0),
            has: RefCell::new(vec![false; pages as usize]),
            metadata_changed: Cell::new(false),
        }
    }

    /// The device below.
    pub(crate) fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// From now on the file has these pages.
    fn allocate(&self, range: PageRange) {
        let mut has = self.has.borrow_mut();
        let end = (range.end().index() + 1).min(has.len());
        let new = has[range.first.index()..range.end().index()].iter().any(|has| !has);
        if new {
            has[range.first.index()..end].fill(true);
            self.metadata_changed.set(true);
        }
    }

    async fn journal_metadata(&self) -> Result<()> {
        if self.metadata_changed.replace(false) {
            self.write_journal().await?;
            self.device.flush().await?;
            self.write_journal().await?;
        }
        Ok(())
    }

    async fn write_journal(&self) -> Result<()> {
        let block = self.journal_blocks.get();
        self.journal_blocks.set(block + 1);
        let page = PageNo(self.journal.first.0 + block % self.journal.pages);
        self.device.write(page, &[Stamp::new(page, block)], None).await
    }
}

impl<D: PageDevice<Page = Stamp>> PageDevice for Journalled<D> {
    type Page = Stamp;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        self.device.read(first, out, tx).await
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_range(range)?;
        self.allocate(range);
        self.device.write(first, pages, tx).await
    }

    async fn flush(&self) -> Result<()> {
        self.journal_metadata().await?;
        self.device.flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.has.borrow_mut()[range.first.index()..range.end().index()].fill(false);
        self.metadata_changed.set(true);
        self.device.trim(range).await
    }

    /// It is durable when it returns, and so must be the allocation of the pages.
    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        for (left, _) in pairs {
            let range = PageRange::new(*left, 1);
            self.limits.check_range(range)?;
            self.allocate(range);
        }
        if self.metadata_changed.get() {
            self.journal_metadata().await?;
            self.device.flush().await?;
        }
        self.device.share(pairs).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_models::DeviceSpec;
    use tantalum_runtime::{LifeCycle, Virtual};

    /// A commit of couchstore: its appends, a sync, the header, a sync.
    #[test]
    fn a_change_of_size_is_journalled_once_a_commit() {
        let ran = Virtual::alone("a file", |runtime| async move {
            let spec = DeviceSpec::parse("durassd:capacity=256MiB,barrier=on")?;
            let device = spec.build(&runtime, 1).await?.device;
            let file = Journalled::new(Rc::clone(&device), 64);
            let counted = || (device.counters().pages_written, device.counters().flushes);
            let content = [Stamp::new(PageNo(1), 1); 4];
            for commit in 0..2 {
                let (written, flushes) = counted();
                file.write(PageNo(5 * commit), &content, None).await?;
                file.flush().await?;
                // Four pages, a journal block and its commit record.
                assert_eq!(counted(), (written + 6, flushes + 2));
                file.write(PageNo(5 * commit + 4), &content[..1], None).await?;
                file.flush().await?;
                assert_eq!(counted(), (written + 7, flushes + 3));
            }
            // Pages that the file had cause no change; a share is durable together with its metadata.
            let (written, flushes) = counted();
            file.write(PageNo(2), &content, None).await?;
            file.share(&[(PageNo(0), PageNo(2))]).await?;
            assert_eq!(counted(), (written + 4, flushes));
            file.share(&[(PageNo(100), PageNo(2))]).await?;
            assert_eq!(counted(), (written + 6, flushes + 2));
            let beyond = file.limits().pages;
            assert!(
                file.write(PageNo(beyond), &content[..1], None).await.is_err(),
                "the journal's"
            );
            Ok(())
        });
        ran.unwrap();
    }
}
