//! The settings of a cache over a home.
use crate::mode::Mode;
use tantalum_base::{Error, ErrorKind, Result};

/// Of the pages that may be dirty, one in so many is left to others than staged transactions.
const OTHERS_DIVISOR: u64 = 8;

/// In which order dirty pages are written home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// In epochs: all that was dirty at one moment is written to a journal beside the home first, then to
    /// its places. Home is at every moment a consistent image, as old as the last epoch, also where
    /// the flash is lost.
    Ordered,
    /// The tracks with the most dirty pages first. Home alone is consistent only when nothing is dirty.
    Dense,
}

/// Settings of a cache. Sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TieredOptions {
    /// What the cache is for when it is opened.
    pub mode: Mode,
    /// The order in which dirty pages go home.
    pub destage: Destage,
    /// Whether a page that is read from home comes into the cache (AOR as well as AOW; write cache, section
    /// 3.1), or only what is written (AOW).
    pub admit_reads: bool,
    /// From so many dirty pages on writes are slowed down, up to the rate at which pages go home.
    pub dirty_soft_pages: u64,
    /// At so many dirty pages writes wait.
    pub dirty_hard_pages: u64,
    /// So many pages may be staged for open transactions at once, of those that may be dirty. The rest is left for others.
    pub staged_pages_max: u64,
    /// So long a page stays dirty, about, before it goes home though there is room for more.
    pub destage_after_ns: u64,
    /// Writes to home that are in flight at once.
    pub home_writes_max: u32,
    /// Pages that are read and put in the journal at a time.
    pub journal_batch_pages: u32,
    /// Pages that are written home and marked clean at a time.
    pub slice_pages: u32,
    /// Pages of a track, whose dirty pages go home together ([`Destage::Dense`]).
    pub track_pages: u32,
    /// Clean pages between two dirty ones that go home with them as one write, at the most ([`Destage::Ordered`]).
    pub fill_pages_max: u32,
    /// Pages that were read from home and wait to come into the cache.
    pub admission_queue_pages: u32,
    /// A stream of sequential requests that is longer does not stay in the flash; 0: all do.
    pub stream_pages_max: u32,
    /// Whether reads of clean pages go home where they are served sooner there.
    pub balance_reads: bool,
    /// Bytes that may be written to the flash a day, beyond which only what hosts write comes in; 0: any.
    pub wear_bytes_per_day: u64,
    /// How long to wait after a failure of the home; it doubles, up to a hundred times this.
    pub retry_after_ns: u64,
}

impl TieredOptions {
    /// Defaults for a cache in which `dirty_pages_max` pages may be dirty.
    pub fn new(destage: Destage, dirty_pages_max: u64) -> Self {
        TieredOptions {
            mode: Mode::default(),
            destage,
            admit_reads: true,
            dirty_soft_pages: dirty_pages_max / 2,
            dirty_hard_pages: dirty_pages_max,
            staged_pages_max: 0,
            destage_after_ns: 5_000_000_000,
            home_writes_max: 16,
            journal_batch_pages: 256,
            slice_pages: 2048,
            track_pages: 256,
            fill_pages_max: 8,
            admission_queue_pages: 1024,
            stream_pages_max: 0,
            balance_reads: false,
            wear_bytes_per_day: 0,
            retry_after_ns: 100_000_000,
        }
    }

    /// The same, in which transactions may be staged beside writes of up to `write_pages_max` pages.
    pub fn staged(self, write_pages_max: u32) -> Self {
        let hard = self.dirty_hard_pages;
        let others = (hard / OTHERS_DIVISOR).max(2 * u64::from(write_pages_max));
        TieredOptions { staged_pages_max: hard.saturating_sub(others), ..self }
    }

    /// Checks that the settings agree with each other, for writes of up to `write_pages_max` pages.
    ///
    /// # Errors
    /// `InvalidInput` with what contradicts what.
    pub fn check(&self, write_pages_max: u32) -> Result<()> {
        let problem = if self.dirty_soft_pages >= self.dirty_hard_pages {
            "writes must be slowed down at fewer dirty pages than they wait at".to_owned()
        } else if self.dirty_hard_pages < 2 * u64::from(write_pages_max) {
            format!(
                "with {} dirty pages at the most a write of {write_pages_max} pages would wait for ever",
                self.dirty_hard_pages
            )
        } else if self.home_writes_max == 0
            || self.journal_batch_pages == 0
            || self.slice_pages == 0
            || self.track_pages == 0
        {
            "at least one page is written home at a time".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, problem))
    }
}
