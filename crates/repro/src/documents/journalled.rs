//! A file on a file system that journals its metadata, as a device: the requests that a host without a raw device causes.
//!
//! A change of the file's size is a change of its metadata; an fsync writes the journal for it. The host's sync journals no times.
//!
//! The host writes past the operating system's cache, as in the papers (`O_DIRECT`). So the file keeps the order of writes if the
//! device does, and only a sync makes them durable, with the size of the file.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Durability, Limits, PageDevice, PageNo, PageRange, Result, Stamp, TxId};

use super::super::journal::Journal;

/// A file that occupies the whole device except the journal at its end.
pub(crate) struct Journalled<D> {
    device: Rc<D>,
    /// The limits of the file.
    limits: Limits,
    journal: Journal,
    journal_range: PageRange,
    journal_blocks: Cell<u64>,
    /// Which pages the file has.
    has: RefCell<Vec<bool>>,
    metadata_changed: Cell<bool>,
}

impl<D: PageDevice<Page = Stamp>> Journalled<D> {
    /// An empty file, and a journal of `journal_pages`.
    pub(crate) fn new(device: Rc<D>, (journal, journal_pages): (Journal, u64)) -> Self {
        let pages = device.limits().pages - journal_pages;
        let limits = Limits {
            pages,
            transaction_pages_max: 0,
            transactions_max: 0,
            durability: match device.limits().durability {
                Durability::Volatile => Durability::Volatile,
                Durability::OnFlush | Durability::OnAck => Durability::OnFlush,
            },
            ..device.limits().clone()
        };
        Journalled {
            device,
            limits,
            journal,
            journal_range: PageRange::new(PageNo(pages), journal_pages),
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
        let has = &mut has[range.first.index()..range.end().index()];
        if has.iter().any(|has| !has) {
            has.fill(true);
            self.metadata_changed.set(true);
        }
    }

    async fn sync(&self) -> Result<()> {
        let changed = self.metadata_changed.replace(false);
        let write = async || self.write_journal().await;
        self.journal.sync(changed, write, async || self.device.flush().await).await
    }

    async fn write_journal(&self) -> Result<()> {
        let block = self.journal_blocks.get();
        self.journal_blocks.set(block + 1);
        let page = PageNo(self.journal_range.first.0 + block % self.journal_range.pages);
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
        self.sync().await
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
            self.sync().await?;
        }
        self.device.share(pairs).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_models::DeviceSpec;
    use tantalum_runtime::{LifeCycle, Virtual};

    /// A commit of a document store: its appends in one write, and a sync.
    #[test]
    fn a_change_of_size_is_journalled_once_a_commit() {
        journals(Journal::BlockAndRecord, 2);
        journals(Journal::OneRecord, 1);
    }

    fn journals(journal: Journal, journal_writes: u64) {
        let ran = Virtual::alone("a file", move |runtime| async move {
            let spec = DeviceSpec::parse("durassd:capacity=256MiB,barrier=on")?;
            let device = spec.build(&runtime, 1).await?.device;
            let file = Journalled::new(Rc::clone(&device), (journal, 64));
            assert_eq!(file.limits().durability, Durability::OnFlush);
            let counted = || (device.counters().pages_written, device.counters().flushes);
            let content = [Stamp::new(PageNo(1), 1); 5];
            for commit in 0..2 {
                let (written, flushes) = counted();
                file.write(PageNo(5 * commit), &content, None).await?;
                file.flush().await?;
                assert_eq!(counted(), (written + 5 + journal_writes, flushes + 2));
                file.flush().await?;
                assert_eq!(counted(), (written + 5 + journal_writes, flushes + 3), "no change");
            }
            // Pages that the file had cause no change; a share is durable together with its metadata.
            let (written, flushes) = counted();
            file.write(PageNo(2), &content, None).await?;
            file.share(&[(PageNo(0), PageNo(2))]).await?;
            assert_eq!(counted(), (written + 5, flushes));
            file.share(&[(PageNo(100), PageNo(2))]).await?;
            assert_eq!(counted(), (written + 5 + journal_writes, flushes + 2));
            let beyond = file.limits().pages;
            let outside = file.write(PageNo(beyond), &content, None).await;
            assert!(outside.is_err(), "the journal's");
            Ok(())
        });
        ran.unwrap();
    }
}
