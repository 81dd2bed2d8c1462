//! Policies of the middle tier of three: which pages a flash cache between a buffer pool and a slow home
//! keeps, where it writes them, and when it destages them to the home.
//!
//! The top tier is a buffer pool. It reads a missed page from this tier and writes each dirty page that
//! it evicts to it. If the tier is exclusive, the pool also reports the clean pages that it evicts. Like
//! a [`Policy`](crate::Policy), a tier does no I/O and has no clock: it counts the operations on its two
//! media, and a [`CostModel`] computes their time.
//!
//! ```text
//! random_write      slots that are overwritten in place: LRU or densest track first;
//!                   with the admission strategies, LOC and GLB
//! sequential_write  slots that are written in a ring
//! flash_blocks      blocks of flash pages, written out of place and collected
//! indirect          slots on such blocks: BL, and LPD, which deletes the coldest
//! native            no slots, blocks only: NFA
//! lazy              the same, but pages are given up one by one and dropped late
//! none              every request goes home
//! offline           lower bounds for any tier
//! operations        the operations on the media, for a caller that carries them out
//! spec              "write_cache:place=sequential" -> Box<dyn MiddleTier>
//! ```
//!
//! Sources: Ou, Härder, "Improving database performance using a flash-based write cache", DASFAA
//! workshops 2012; Ou, "Caching for flash-based databases and flash-based caching for databases",
//! 2012, chapters 6 and 7.
mod flash_blocks;
mod indirect;
mod lazy;
mod native;
mod none;
mod offline;
mod operations;
mod random_write;
mod sequential_write;
mod spec;
#[cfg(test)]
mod tests;

pub use flash_blocks::{BlockGeometry, FlashBlocks};
pub use indirect::Indirect;
pub use lazy::Lazy;
pub use native::Native;
pub use none::NoTier;
pub use offline::{least_counts, least_time_ns};
pub use operations::Operation;
pub use random_write::{Order, RandomWrite, RandomWriteOptions};
pub use sequential_write::{SequentialWrite, SequentialWriteOptions};
pub use spec::TierSpec;

use tantalum_base::PageNo;

/// The event that admits a page to the tier (write cache, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// AOR: a read that misses the page. A write of a page that is not cached goes home.
    Read,
    /// AOW: a write of the page.
    Write,
    /// AOE: the eviction of the page by the top tier, clean or dirty; a read removes it. So no page is in both tiers.
    Eviction,
}

/// The tracks of the disk below, and their use (write cache, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracks {
    /// Pages in a track, 1 to 64.
    pub pages: u32,
    /// CF (coalesced flushing): pages of one track go home together.
    pub coalesce: bool,
    /// PB (piggybacking): a read of a track that misses also writes the dirty pages of that track home.
    /// They stay, clean.
    pub piggyback: bool,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A miss: the page was read from home.
    Missed,
    /// A hit: the page stays.
    Hit,
    /// A hit that removed the page. If `dirty`, home has an older version, and the top tier has to write
    /// the page back.
    Taken {
        /// Whether it is newer than the version at home.
        dirty: bool,
    },
}

/// A middle tier: a flash cache of a number of pages over a slow home.
pub trait MiddleTier: Send {
    /// The top tier reads `page`, which it has missed.
    fn read(&mut self, page: PageNo) -> Found;

    /// The top tier writes `page`, because it evicts it dirty.
    fn write(&mut self, page: PageNo);

    /// The top tier evicts `page` clean. Exclusive tiers admit it.
    fn evict(&mut self, _page: PageNo) {}

    /// Writes home every page whose version here is newer.
    fn flush(&mut self);

    /// Whether `page` is cached.
    fn contains(&self, page: PageNo) -> bool;

    /// Number of pages whose version here is newer than the one at home.
    fn dirty_pages(&self) -> u64;

    /// The counters of all operations so far.
    fn counts(&self) -> &TierCounts;

    /// Starts to record the operations on the media. Returns false if the tier cannot record them, because its pages
    /// have no slots of their own. That is so if whole tracks are evicted together, and if the cache uses
    /// `flash_blocks`.
    fn tell_operations(&mut self) -> bool {
        false
    }

    /// Moves the recorded operations to `operations`, in the order in which they must be carried
    /// out.
    fn take_operations(&mut self, _operations: &mut Vec<Operation>) {}

    /// The blocks of flash, if the tier uses blocks.
    fn blocks(&self) -> Option<&FlashBlocks> {
        None
    }

    /// Panics if the tier is inconsistent.
    #[cfg(test)]
    fn validate(&self);
}

/// The counters of a tier, in pages unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Pages read by the top tier.
    pub reads: u64,
    /// Reads that hit.
    pub read_hits: u64,
    /// Pages written by the top tier.
    pub writes: u64,
    /// Writes that hit.
    pub write_hits: u64,
    /// Pages read from flash, for hits and to be written home.
    pub flash_reads: u64,
    /// Pages written to flash right after the previous write.
    pub flash_sequential_writes: u64,
    /// Pages written to flash anywhere else.
    pub flash_random_writes: u64,
    /// Pages read and written again by garbage collection; not included above.
    pub collected_pages: u64,
    /// Blocks that garbage collection erased.
    pub erases: u64,
    /// Pages read from home.
    pub disk_reads: u64,
    /// Pages written home.
    pub disk_writes: u64,
    /// Seeks of the disk. Pages of one track that are written together, or after a read of that track,
    /// share one seek.
    pub seeks: u64,
}

impl TierCounts {
    /// Share of the requests that hit, 0 to 1; 0 if there were none.
    pub fn hit_ratio(&self) -> f64 {
        let requests = self.reads + self.writes;
        if requests == 0 {
            0.0
        } else {
            (self.read_hits + self.write_hits) as f64 / requests as f64
        }
    }

    /// A page was read from home, with a seek of its own.
    pub(crate) fn read_home(&mut self) {
        self.disk_reads += 1;
        self.seeks += 1;
    }

    /// A page of the top tier was written home, with a seek of its own.
    pub(crate) fn overwrite_home(&mut self) {
        self.disk_writes += 1;
        self.seeks += 1;
    }

    /// `pages` of one track are read from flash and written home together.
    pub(crate) fn write_home(&mut self, pages: u64) {
        self.flash_reads += pages;
        self.disk_writes += pages;
        self.seeks += u64::from(pages > 0);
    }
}

/// Times of the operations, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// Reading a page of flash.
    pub flash_read_ns: u64,
    /// Writing a page of flash right after the previous write.
    pub flash_sequential_write_ns: u64,
    /// Writing a page of flash anywhere.
    pub flash_random_write_ns: u64,
    /// Erasing a block.
    pub erase_ns: u64,
    /// Reading or writing a page of the home.
    pub disk_ns: u64,
}

/// Total times in nanoseconds, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierTime {
    /// Garbage collection: reads, writes and erases of its own.
    pub collection_ns: u64,
    /// All other operations on flash.
    pub flash_ns: u64,
    /// The home.
    pub disk_ns: u64,
}

impl TierTime {
    /// The sum: the virtual execution time.
    pub fn total_ns(&self) -> u64 {
        self.collection_ns + self.flash_ns + self.disk_ns
    }
}

impl CostModel {
    /// The time of `counts` if the operations run one after the other (write cache, equation 3;
    /// dissertation, equations 6.5 to 6.7 and 7.1).
    pub fn time(&self, counts: &TierCounts) -> TierTime {
        let moved_ns = self.flash_read_ns + self.flash_sequential_write_ns;
        TierTime {
            collection_ns: counts.collected_pages * moved_ns + counts.erases * self.erase_ns,
            flash_ns: counts.flash_reads * self.flash_read_ns
                + counts.flash_sequential_writes * self.flash_sequential_write_ns
                + counts.flash_random_writes * self.flash_random_write_ns,
            disk_ns: (counts.disk_reads + counts.disk_writes) * self.disk_ns,
        }
    }
}
