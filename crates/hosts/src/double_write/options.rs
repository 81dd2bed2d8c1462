//! How an engine flushes, and how large things are.
use tantalum_base::{Error, ErrorKind, Limits, Result};

use super::layout::Layout;

/// How a batch of dirty pages reaches its homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Write the area, flush, write the homes, flush: each page twice.
    On,
    /// Write the homes, flush: each page once, and torn pages after a cut.
    Off,
    /// Write the area, share the homes with the area: each page once.
    Share,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 3] = [Form::On, Form::Share, Form::Off];

    /// What the paper calls it.
    pub fn name(self) -> &'static str {
        match self {
            Form::On => "DWB-On",
            Form::Off => "DWB-Off",
            Form::Share => "SHARE",
        }
    }
}

/// What an engine is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubleWriteOptions {
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

impl DoubleWriteOptions {
    /// Checks the settings against each other and against what the device offers.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` where a form needs `share` and the device has none.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let refuse = |kind, problem: String| Err(Error::new(kind, problem));
        if self.database_pages == 0 || self.device_pages_per_page == 0 || self.batch_pages == 0 {
            return refuse(ErrorKind::InvalidInput, format!("an engine of nothing: {self:?}"));
        }
        if self.pool_pages < 4 * self.batch_pages {
            let problem = format!(
                "a pool of {} pages is too small for batches of {}: it needs four times as many",
                self.pool_pages, self.batch_pages
            );
            return refuse(ErrorKind::InvalidInput, problem);
        }
        if !(0.0..=8.0).contains(&self.metadata_per_page)
            || (self.metadata_per_page > 0.0 && self.metadata_pages == 0)
        {
            return refuse(ErrorKind::InvalidInput, format!("metadata without room: {self:?}"));
        }
        let needed = Layout::new(self).pages();
        if needed > limits.pages {
            let problem = format!("{needed} device pages needed, the device has {}", limits.pages);
            return refuse(ErrorKind::InvalidInput, problem);
        }
        if self.form == Form::Share && limits.share_pairs_max < self.device_pages_per_page {
            let problem = "the device cannot share a whole page of the database";
            return refuse(ErrorKind::Unsupported, problem.into());
        }
        Ok(())
    }
}
