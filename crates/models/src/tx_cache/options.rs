//! Options of a TxCache.
use tantalum_base::{Error, ErrorKind, Result};

/// When the header of a committed transaction, and with it its id, may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderRelease {
    /// When all its pages are written back or replaced (TxCache, section III-C).
    WrittenBack,
    /// When all its pages are in the mapping; from then on recovery need not process it. A short
    /// transaction then holds its header only during its commit.
    Mapped,
}

/// Options of a TxCache. Sizes are in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxCacheOptions {
    /// Number of frames of the page cache in NVRAM.
    pub cache_pages: u32,
    /// Size of the extended cache: the log area in flash for transactions that do not fit in the
    /// page cache.
    pub extended_pages: u32,
    /// Maximum number of open transactions; 0 for a cache without transactions (NVCache).
    pub transactions_max: u32,
    /// Number of transaction headers, for open transactions and for committed ones that are not released. If there
    /// are too few for the content of the cache, pages go home early only to release headers.
    pub headers: u32,
    /// When headers are released.
    pub header_release: HeaderRelease,
    /// Maximum number of pages in a single write, also inside of a transaction.
    pub write_pages_max: u32,
    /// Number of frames that write-back keeps free, approximately.
    pub free_frames: u32,
    /// Number of batches written back at the same time.
    pub write_backs_in_flight: u32,
    /// Time of an access to a page or a header in NVRAM (section IV-A: 0.15 µs).
    pub nvram_access_ns: u64,
}

impl TxCacheOptions {
    /// Defaults for a page cache of `cache_pages`: 128 open transactions (section IV-E), a header for every second
    /// page, an extended cache of the same size.
    pub fn new(cache_pages: u32) -> Self {
        let transactions_max = 128;
        TxCacheOptions {
            cache_pages,
            extended_pages: cache_pages,
            transactions_max,
            headers: transactions_max.max(cache_pages / 2),
            header_release: HeaderRelease::WrittenBack,
            write_pages_max: (cache_pages / 8).clamp(1, 256),
            free_frames: (cache_pages / 8).max(1),
            write_backs_in_flight: 8,
            nvram_access_ns: 150,
        }
    }

    /// The paper's NVCache (section IV-B): the same page cache and replacement, no transactions.
    pub fn nv_cache(cache_pages: u32) -> Self {
        TxCacheOptions {
            extended_pages: 0,
            transactions_max: 0,
            headers: 0,
            ..TxCacheOptions::new(cache_pages)
        }
    }

    /// Maximum number of frames with uncommitted pages. The rest is reserved for writes outside of
    /// transactions, which therefore always find room eventually.
    pub fn uncommitted_frames_max(&self) -> u32 {
        self.cache_pages.saturating_sub(self.write_pages_max)
    }

    /// Checks the options against each other.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn check(&self) -> Result<()> {
        let problem = if self.write_pages_max == 0 || self.write_backs_in_flight == 0 {
            "a write has at least one page, and at least one write-back is in flight"
        } else if self.cache_pages < 2 * self.write_pages_max {
            "the page cache must hold two writes of the largest size"
        } else if self.free_frames >= self.cache_pages {
            "write-back cannot keep the whole page cache free"
        } else if self.headers < self.transactions_max {
            "every open transaction needs a header"
        } else if self.cache_pages.checked_add(self.extended_pages).is_none_or(|sum| sum > 1 << 30)
        {
            "page cache and extended cache have at most 2^30 pages"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, format!("{problem}: {self:?}")))
    }
}
