//! The two drives of a database whose files are opened with `O_DSYNC` (section 4.3.2), as one device.
//!
//! The log has a drive of its own (section 4.2). A write of the database has reached the drive when it returns, and with write barriers
//! on the drive was flushed behind it: each write is made durable by itself. No file grows, so that no metadata is journalled.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Result, Stamp, TxId,
};
use tantalum_replay::device_replay::Device;

/// Two drives: the first pages are of the one with the log, all behind them of the one with the database.
pub(super) struct Drives {
    log: Rc<Device>,
    log_pages: u64,
    database: Rc<Device>,
    limits: Limits,
    /// Flushes reach the drives.
    barrier: Cell<bool>,
    /// The log was written since it was flushed.
    log_written: Cell<bool>,
}

impl Drives {
    pub(super) fn new(log: Rc<Device>, log_pages: u64, database: Rc<Device>) -> Drives {
        let pages = log_pages + database.limits().pages;
        // A host of write barriers counts on nothing else.
        let durability = Durability::Volatile;
        let limits = Limits {
            pages,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability,
            ..database.limits().clone()
        };
        let barrier = Cell::new(true);
        Drives { log, log_pages, database, limits, barrier, log_written: Cell::new(false) }
    }

    /// Mounts the file systems with write barriers or without.
    pub(super) fn set_barrier(&self, on: bool) {
        self.barrier.set(on);
    }

    /// The drive with a page, and the page there.
    fn drive(&self, page: PageNo) -> (&Rc<Device>, PageNo) {
        match page.0.checked_sub(self.log_pages) {
            Some(page) => (&self.database, PageNo(page)),
            None => (&self.log, page),
        }
    }

    /// Whether a request is for one of the drives alone.
    fn check(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        if range.first.0 < self.log_pages && range.end().0 > self.log_pages {
            let context = format!("pages {range} lie on two drives");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }

    fn is_of_log(&self, page: PageNo) -> bool {
        page.0 < self.log_pages
    }
}

impl PageDevice for Drives {
    type Page = Stamp;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], tx: Option<TxId>) -> Result<()> {
        self.check(PageRange::new(first, out.len() as u64))?;
        let (drive, first) = self.drive(first);
        drive.read(first, out, tx).await
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], tx: Option<TxId>) -> Result<()> {
        self.check(PageRange::new(first, pages.len() as u64))?;
        let (drive, at) = self.drive(first);
        drive.write(at, pages, tx).await?;
        if self.is_of_log(first) {
            self.log_written.set(true);
            return Ok(());
        }
        if self.barrier.get() { drive.flush().await } else { Ok(()) }
    }

    /// The log's: a database that is opened so has nothing left to flush.
    async fn flush(&self) -> Result<()> {
        if self.log_written.replace(false) && self.barrier.get() {
            return self.log.flush().await;
        }
        Ok(())
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        let log = self.log_pages.clamp(range.first.0, range.end().0) - range.first.0;
        if log > 0 {
            self.log.trim(PageRange::new(range.first, log)).await?;
        }
        if log < range.pages {
            let first = PageNo(range.first.0 + log - self.log_pages);
            self.database.trim(PageRange::new(first, range.pages - log)).await?;
        }
        Ok(())
    }
}
