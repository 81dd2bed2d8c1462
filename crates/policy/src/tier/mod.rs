//! What the middle tier of three decides: which pages a flash cache between a buffer pool and a slow home
//! keeps, where it writes them, and when they go home.
//!
//! The top tier is a buffer pool. It reads a page here when it misses it, writes a page here when it
//! evicts it dirty, and where the tier is exclusive it tells of pages that it evicts clean. Like a
//! [`Policy`](crate::Policy), a tier does no I/O and knows no time: it counts what it would do to its two
//! media, and a [`CostModel`] says how long that takes.
//!
//! ```text
//! random_write      slots that are overwritten where they are: LRU or densest track first;
//!                   with the admission strategies, LOC and GLB
//! sequential_write  slots that are written in a ring
//! flash_blocks      blocks of flash pages, written out of place and collected
//! indirect          slots over such blocks: BL, and LPD, which deletes the coldest
//! native            no slots, blocks alone: NFA
//! lazy              the same, with pages that are given up one by one and let go late
//! none              every request goes home
//! offline           what no tier can do without
//! operations        what is done to the media, told to those who carry it out
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

/// When a page comes into the tier (write cache, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// AOR: when it is read and missed. A page that is written and not here goes home.
    Read,
    /// AOW: when it is written.
    Write,
    /// AOE: when the top tier evicts it, clean or dirty; it leaves when it is read. The two tiers hold no
    /// page twice.
    Eviction,
}

/// What is known of the disk below, and what is done with it (write cache, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracks {
    /// Pages in a track, 1 to 64.
    pub pages: u32,
    /// CF: pages of one track go home together.
    pub coalesce: bool,
    /// PB: a read of a track that misses also writes home what is dirty of that track. What was written
    /// stays, clean.
    pub piggyback: bool,
}

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the page was read from home.
    Missed,
    /// The page, which stays.
    Hit,
    /// The page, which left with the read. Where `dirty`, home has an older one, and the top tier has to
    /// write it back.
    Taken {
        /// Whether it is newer than at home.
        dirty: bool,
    },
}

/// A middle tier: a flash cache of a number of pages over a slow home.
pub trait MiddleTier: Send {
    /// The top tier reads `page`, which it misses.
    fn read(&mut self, page: PageNo) -> Found;

    /// The top tier writes `page`, which it evicts dirty.
    fn write(&mut self, page: PageNo);

    /// The top tier evicts `page` clean. Exclusive tiers take it.
    fn evict(&mut self, _page: PageNo) {}

    /// Writes everything home that is newer here.
    fn flush(&mut self);

    /// Whether `page` is cached.
    fn contains(&self, page: PageNo) -> bool;

    /// Pages that are newer here than at home.
    fn dirty_pages(&self) -> u64;

    /// What was done so far.
    fn counts(&self) -> &TierCounts;

    /// From now on keeps a list of what it does to its media. False where there is no such list: where pages of a
    /// track leave together, and below a translation layer, no page has a slot of its own.
    fn tell_operations(&mut self) -> bool {
        false
    }

    /// Moves the list to `operations`, in the order in which they are to be done.
    fn take_operations(&mut self, _operations: &mut Vec<Operation>) {}

    /// The blocks of flash, where the tier sees any.
    fn blocks(&self) -> Option<&FlashBlocks> {
        None
    }

    /// Panics where the tier contradicts itself.
    #[cfg(test)]
    fn validate(&self);
}

/// What a tier did, in pages unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Read by the top tier.
    pub reads: u64,
    /// Of these, found here.
    pub read_hits: u64,
    /// Written by the top tier.
    pub writes: u64,
    /// Of these, found here.
    pub write_hits: u64,
    /// Read from flash: for hits, and to be written home.
    pub flash_reads: u64,
    /// Written to flash behind the write before.
    pub flash_sequential_writes: u64,
    /// Written to flash anywhere else.
    pub flash_random_writes: u64,
    /// Read and written again by garbage collection; not among the above.
    pub collected_pages: u64,
    /// Blocks that garbage collection erased.
    pub erases: u64,
    /// Read from home.
    pub disk_reads: u64,
    /// Written home.
    pub disk_writes: u64,
    /// Times that the disk had to go to another place. Pages of one track that are written together, or
    /// behind a read there, share one.
    pub seeks: u64,
}

impl TierCounts {
    /// Hits of all requests, 0 to 1; 0 where there was none.
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

/// What operations cost, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// Reading a page of flash.
    pub flash_read_ns: u64,
    /// Writing one behind the write before.
    pub flash_sequential_write_ns: u64,
    /// Writing one anywhere.
    pub flash_random_write_ns: u64,
    /// Erasing a block.
    pub erase_ns: u64,
    /// Reading or writing a page of the home.
    pub disk_ns: u64,
}

/// How long something took, in nanoseconds, by what took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierTime {
    /// Garbage collection: reads, writes and erases of its own.
    pub collection_ns: u64,
    /// All else on flash.
    pub flash_ns: u64,
    /// The home.
    pub disk_ns: u64,
}

impl TierTime {
    /// All of it: the virtual execution time.
    pub fn total_ns(&self) -> u64 {
        self.collection_ns + self.flash_ns + self.disk_ns
    }
}

impl CostModel {
    /// How long `counts` take, one after the other (write cache, equation 3; dissertation, equations 6.5
    /// to 6.7 and 7.1).
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
