//! How an engine writes, and how large things are.
use tantalum_base::{Error, ErrorKind, Limits, Result};

use super::layout::{Layout, LogPlace};
use super::way::{DeviceNeed, Way};
use crate::redo::{HEADER_PAGES, LOG_PAGES_MIN, Shape};

/// How pages lie on the device and in memory, and how they get from here to there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageOptions<W> {
    /// How batches reach their homes.
    pub form: W,
    /// Pages of the database.
    pub database_pages: u64,
    /// Device pages in a database page: 1, 2, 4 for 4, 8, 16 KiB.
    pub device_pages_per_page: u32,
    /// Database pages in memory, those on their way out included.
    pub pool_pages: u32,
    /// Database pages in a batch; an area of their own has as many.
    pub batch_pages: u32,
    /// Device pages that the file system writes for each device page of the database that is
    /// flushed, in every form alike: its journal and metadata.
    pub metadata_per_page: f64,
    /// Device pages over which these go round, as a journal does.
    pub metadata_pages: u32,
}

/// What an engine is made and opened with. Form and sizes on the device are those with which the database was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatabaseOptions<W> {
    /// Pages, on the device and in memory.
    pub pages: PageOptions<W>,
    /// Device pages of the redo log, at least [`LOG_PAGES_MIN`] for each device page of a page, and twice as many where whole pages
    /// are logged. A transaction may take a sixteenth of it. 0 where there is no log.
    pub log_pages: u64,
    /// Trees of the database, each with rows of its own.
    pub trees: u32,
}

fn refuse(kind: ErrorKind, problem: impl Into<String>) -> Result<()> {
    Err(Error::new(kind, problem.into()))
}

impl<W: Way> PageOptions<W> {
    /// Checks the settings against each other and against what the device offers.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` where a form needs what the device has not.
    pub(crate) fn check(&self, limits: &Limits, log: LogPlace) -> Result<()> {
        let invalid = |problem: String| refuse(ErrorKind::InvalidInput, problem);
        if self.database_pages == 0 || self.device_pages_per_page == 0 || self.batch_pages == 0 {
            return invalid(format!("an engine of nothing: {self:?}"));
        }
        if self.pool_pages / 4 < self.batch_pages {
            return invalid(format!(
                "a pool of {} pages is too small for batches of {}: it needs four times as many",
                self.pool_pages, self.batch_pages
            ));
        }
        if !(0.0..=8.0).contains(&self.metadata_per_page)
            || (self.metadata_per_page > 0.0 && self.metadata_pages == 0)
        {
            return invalid(format!("metadata without room: {self:?}"));
        }
        check_room(limits, Layout::new(self, log).pages())?;
        let least = self.device_pages_per_page;
        match self.form.needs() {
            DeviceNeed::Share if limits.share_pairs_max < least => {
                let problem = "the device cannot share a whole page of the database";
                refuse(ErrorKind::Unsupported, problem)
            }
            DeviceNeed::Transactions if limits.transaction_pages_max < least => {
                let problem = "the device has no transactions of a whole page of the database";
                refuse(ErrorKind::Unsupported, problem)
            }
            _ => Ok(()),
        }
    }
}

fn check_room(limits: &Limits, needed: u64) -> Result<()> {
    if needed > limits.pages {
        let problem = format!("{needed} device pages needed, the device has {}", limits.pages);
        return refuse(ErrorKind::InvalidInput, problem);
    }
    Ok(())
}

impl<W: Way> DatabaseOptions<W> {
    /// Checks the settings against each other and against what a device offers that has everything.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` where a form needs what the device has not.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        self.check_on(limits, None)
    }

    /// As [`check`](Self::check), where the log may have a device of its own.
    pub(crate) fn check_on(&self, limits: &Limits, log_apart: Option<&Limits>) -> Result<()> {
        self.check_log(log_apart.is_some())?;
        if self.trees == 0 || u64::from(self.trees) >= self.pages.database_pages {
            let problem = format!(
                "{} trees in a database of {} pages",
                self.trees, self.pages.database_pages
            );
            return refuse(ErrorKind::InvalidInput, problem);
        }
        if self.pages.device_pages_per_page > 8 {
            let problem = "a page of the database has 8 device pages at most";
            return refuse(ErrorKind::InvalidInput, problem);
        }
        let Some(log_apart) = log_apart else {
            return self.pages.check(limits, LogPlace::Here(self.log_pages));
        };
        check_room(log_apart, self.log_pages.saturating_add(HEADER_PAGES))?;
        self.pages.check(limits, LogPlace::Apart(self.log_pages))
    }

    fn check_log(&self, apart: bool) -> Result<()> {
        let form = self.pages.form;
        if !form.has_log() {
            if self.log_pages == 0 && !apart {
                return Ok(());
            }
            let name = form.name();
            let problem =
                format!("with {name} there is no redo log: it has 0 pages, and no device");
            return refuse(ErrorKind::InvalidInput, problem);
        }
        // Where whole pages are logged, those that are split go into it twice as long.
        let whole = if form.logs_whole_pages() { 2 } else { 1 };
        let least = whole * LOG_PAGES_MIN * u64::from(self.pages.device_pages_per_page);
        if self.log_pages < least {
            let pages = self.log_pages;
            let problem =
                format!("a redo log of {pages} pages is too small: it has {least} at least");
            return refuse(ErrorKind::InvalidInput, problem);
        }
        Ok(())
    }

    /// What the database keeps of it, and of the drive with its log.
    pub(crate) fn shape(&self, log_apart: Option<u64>) -> Shape {
        let mode = W::WAYS.iter().position(|way| *way == self.pages.form).unwrap_or(0) as u8;
        Shape {
            mode,
            device_pages: self.pages.device_pages_per_page,
            database_pages: self.pages.database_pages,
            log_pages: self.log_pages,
            batch_pages: self.pages.batch_pages,
            journal_pages: self.pages.metadata_pages,
            trees: self.trees,
            log_apart,
        }
    }
}
