//! The settings of a cache over a home.
use crate::mode::Mode;
use tantalum_base::{Error, ErrorKind, Result};

/// One in this many of the pages that may be dirty is reserved for pages other than staged ones.
const OTHERS_DIVISOR: u64 = 8;

/// The order in which dirty pages are destaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// In epochs: everything dirty at one moment is first written to a journal beside the home,
    /// then in place. At every moment the home, with its journal, is a consistent image, as old as
    /// the last epoch, even if the flash is lost.
    Ordered,
    /// The tracks with the most dirty pages first. Without the flash the home is consistent only
    /// when nothing is dirty.
    Dense,
}

/// Settings of a cache. Sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TieredOptions {
    /// The mode of the cache at the opening.
    pub mode: Mode,
    /// The order in which dirty pages are destaged.
    pub destage: Destage,
    /// Whether pages read from the home are admitted to the cache (AOR as well as AOW; write cache,
    /// section 3.1), or only written ones (AOW).
    pub admit_reads: bool,
    /// Above this number of dirty pages writes are slowed down, to the rate of destaging and below.
    pub dirty_soft_pages: u64,
    /// At this number of dirty pages writes wait.
    pub dirty_hard_pages: u64,
    /// Maximum pages staged for open transactions at once, out of those that may be dirty. The rest
    /// is left for others.
    pub staged_pages_max: u64,
    /// Target age at which a dirty page is destaged even if there is space.
    pub destage_after_ns: u64,
    /// Maximum writes to the home in flight.
    pub home_writes_max: u32,
    /// Pages that are read and appended to the journal at a time.
    pub journal_batch_pages: u32,
    /// Pages that are written to the home and marked clean at a time.
    pub slice_pages: u32,
    /// Pages of a track. The dirty pages of a track are destaged together ([`Destage::Dense`]).
    pub track_pages: u32,
    /// Maximum number of clean pages between two dirty ones that are destaged with them in one
    /// write ([`Destage::Ordered`]).
    pub fill_pages_max: u32,
    /// Maximum pages read from the home that wait for admission to the cache.
    pub admission_queue_pages: u32,
    /// Pages of a sequential stream that is longer than this do not stay in the flash; 0: all
    /// streams stay.
    pub stream_pages_max: u32,
    /// Whether reads of clean pages go to the home if it serves them sooner.
    pub balance_reads: bool,
    /// Bytes per day that may be written to the flash; beyond them only host writes enter it. 0: no
    /// limit.
    pub wear_bytes_per_day: u64,
    /// The wait after a failure of the home; it doubles each time, up to about a hundred times
    /// this.
    pub retry_after_ns: u64,
}

impl TieredOptions {
    /// Defaults for a cache with at most `dirty_pages_max` dirty pages.
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

    /// Lets transactions be staged, beside writes of up to `write_pages_max` pages.
    pub fn staged(self, write_pages_max: u32) -> Self {
        let hard = self.dirty_hard_pages;
        let others = (hard / OTHERS_DIVISOR).max(2 * u64::from(write_pages_max));
        TieredOptions { staged_pages_max: hard.saturating_sub(others), ..self }
    }

    /// Checks that the settings agree with each other, for writes of up to `write_pages_max` pages.
    ///
    /// # Errors
    /// `InvalidInput` with the contradiction.
    pub fn check(&self, write_pages_max: u32) -> Result<()> {
        let problem = if self.dirty_soft_pages >= self.dirty_hard_pages {
            "the limit at which writes are slowed down must be below the limit at which they wait"
                .to_owned()
        } else if self.dirty_hard_pages < 2 * u64::from(write_pages_max) {
            format!(
                "with at most {} dirty pages, a write of {write_pages_max} pages would wait for ever",
                self.dirty_hard_pages
            )
        } else if self.home_writes_max == 0
            || self.journal_batch_pages == 0
            || self.slice_pages == 0
            || self.track_pages == 0
        {
            "the writes to the home in flight, and the pages of a batch for the journal, of a slice and of a \
             track, must be at least 1"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, problem))
    }
}
