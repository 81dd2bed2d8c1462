//! How an engine flushes, and how large things are.
use tantalum_base::{Error, ErrorKind, Limits, Result};

use super::layout::Layout;
use crate::redo::{LOG_PAGES_MIN, Shape};

/// How a batch of dirty pages reaches its homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Write the area, flush, write the homes, flush: each page twice.
    On,
    /// Write the area, share the homes with the area: each page once.
    Share,
    /// Write the homes, flush: each page once, and torn pages after a cut where the device tears a write of a page.
    Off,
    /// Write the homes in transactions of the device: each page once.
    Transactions,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 4] = [Form::On, Form::Share, Form::Off, Form::Transactions];

    /// What the papers call it.
    pub fn name(self) -> &'static str {
        match self {
            Form::On => "DWB-On",
            Form::Off => "DWB-Off",
            Form::Share => "SHARE",
            Form::Transactions => "transactions",
        }
    }
}

/// How pages lie on the device and in memory, and how they get from here to there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageOptions {
    /// How batches reach their homes.
    pub form: Form,
    /// Pages of the database.
    pub database_pages: u64,
    /// Device pages in a database page: 1, 2, 4 for 4, 8, 16 KiB.
    pub device_pages_per_page: u32,
    /// Database pages in memory, those on their way out included.
    pub pool_pages: u32,
    /// Database pages in a batch; the double-write area has as many.
    pub batch_pages: u32,
    /// Device pages that the file system writes for each device page of the database that is
    /// flushed, in every form alike: its journal and metadata.
    pub metadata_per_page: f64,
    /// Device pages over which these go round, as a journal does.
    pub metadata_pages: u32,
}

/// What an engine is made and opened with. Form and sizes on the device are those with which the database was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubleWriteOptions {
    /// Pages, on the device and in memory.
    pub pages: PageOptions,
    /// Device pages of the redo log, at least [`LOG_PAGES_MIN`] for each device page of a page. A transaction may take a sixteenth
    /// of it.
    pub log_pages: u64,
    /// Trees of the database, each with rows of its own.
    pub trees: u32,
}

fn refuse(kind: ErrorKind, problem: impl Into<String>) -> Result<()> {
    Err(Error::new(kind, problem.into()))
}

impl PageOptions {
    /// Checks the settings against each other and against what the device offers, with a log of `log_pages` device pages.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` where a form needs what the device has not.
    pub(super) fn check(&self, limits: &Limits, log_pages: u64) -> Result<()> {
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
        let needed = Layout::new(self, log_pages).pages();
        if needed > limits.pages {
            return invalid(format!(
                "{needed} device pages needed, the device has {}",
                limits.pages
            ));
        }
        let least = self.device_pages_per_page;
        match self.form {
            Form::Share if limits.share_pairs_max < least => {
                let problem = "the device cannot share a whole page of the database";
                refuse(ErrorKind::Unsupported, problem)
            }
            Form::Transactions if limits.transaction_pages_max < least => {
                let problem = "the device has no transactions of a whole page of the database";
                refuse(ErrorKind::Unsupported, problem)
            }
            _ => Ok(()),
        }
    }
}

impl DoubleWriteOptions {
    /// Checks the settings against each other and against what the device offers.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` where a form needs what the device has not.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let least = LOG_PAGES_MIN * u64::from(self.pages.device_pages_per_page);
        if self.log_pages < least {
            let problem = format!(
                "a redo log of {} pages is too small: it has {least} at least",
                self.log_pages
            );
            return refuse(ErrorKind::InvalidInput, problem);
        }
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
        self.pages.check(limits, self.log_pages)
    }

    /// What the database keeps of it.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            mode: Form::ALL.iter().position(|form| *form == self.pages.form).unwrap_or(0) as u8,
            device_pages: self.pages.device_pages_per_page,
            database_pages: self.pages.database_pages,
            log_pages: self.log_pages,
            batch_pages: self.pages.batch_pages,
            journal_pages: self.pages.metadata_pages,
            trees: self.trees,
        }
    }
}
