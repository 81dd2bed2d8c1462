//! The way an engine writes, and its sizes.
use tantalum_base::{Error, ErrorKind, Limits, Result};

use super::layout::{Layout, LogPlace};
use super::way::{DeviceNeed, Way};
use crate::redo::{HEADER_PAGES, LOG_PAGES_MIN, Shape};

/// The layout of pages on the device and in memory, and the way between the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageOptions<W> {
    /// The way batches are written to their homes.
    pub form: W,
    /// Number of pages of the database.
    pub database_pages: u64,
    /// Device pages in a database page: 1, 2, 4 for 4, 8, 16 KiB.
    pub device_pages_per_page: u32,
    /// Number of database pages in memory, including those that are being written out and those that commits keep.
    pub pool_pages: u32,
    /// Number of database pages in a batch; the double-write area has the same size.
    pub batch_pages: u32,
    /// Device pages that the file system writes for its journal and metadata, for each device page of the database that is flushed.
    /// It is the same for every form.
    pub metadata_per_page: f64,
    /// Size of the circular journal for these, in device pages.
    pub metadata_pages: u32,
}

/// The options for making and opening an engine. The form and the sizes on the device must be those with which the database was
/// made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatabaseOptions<W> {
    /// Pages, on the device and in memory.
    pub pages: PageOptions<W>,
    /// Device pages of the redo log: at least [`LOG_PAGES_MIN`] for each device page of a page, and twice as many if whole pages
    /// are logged. A transaction may use a sixteenth of it. 0 if there is no log.
    pub log_pages: u64,
    /// Number of trees of the database, each with rows of its own.
    pub trees: u32,
}

fn refuse(kind: ErrorKind, problem: impl Into<String>) -> Result<()> {
    Err(Error::new(kind, problem.into()))
}

impl<W: Way> PageOptions<W> {
    /// Checks the settings against each other and against the device's limits.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` if a form needs a feature that the device lacks.
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
    /// Checks the settings against each other and against the limits of a device with every feature.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` if a form needs a feature that the device lacks.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        self.check_on(limits, None)
    }

    /// Like [`check`](Self::check); the log may have a device of its own.
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
        // If whole pages are logged, pages that are split occupy twice the room in the log.
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

    /// The settings that the database stores.
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
