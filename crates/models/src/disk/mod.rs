//! A disk: one arm, rotating platters, an elevator over queued accesses, and a write cache.
//!
//! ```text
//! geometry   zones of tracks: the location of a page, its time under the head
//! mechanics  seek, settle, rotation, transfer: the time of an access
//! cache      acknowledged pages that are not yet on the platters
//! device     commands, the arm's task that serves the nearest first, flush
//! platters   the content of the disk, which survives power cuts
//! ```
//!
//! With the write cache on, a write is acknowledged when it is in the cache: the durability is
//! `volatile`, and only a flush guarantees anything. With it off, a write is acknowledged when it
//! is on the platters: `on_ack`. The atomic unit of a disk is a sector of 512 bytes: a power cut
//! during a write may leave each of its pages old, new or torn. A host that cannot tolerate this
//! must write twice.
mod cache;
mod device;
mod geometry;
mod mechanics;
mod platters;
#[cfg(test)]
mod tests;

pub use device::{Disk, DiskStatistics};
pub use platters::Platters;

use tantalum_base::{Error, ErrorKind, Result};

/// Options of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Number of logical pages.
    pub pages: u64,
    /// Time of one revolution of the platters.
    pub rotation_ns: u64,
    /// Number of zones with tracks of equal length; all zones have the same number of cylinders.
    pub zones: u32,
    /// Number of surfaces, each with its head; a cylinder has a track on each.
    pub heads: u32,
    /// Media transfer rate of the outermost zone.
    pub outer_bytes_per_second: u64,
    /// Media transfer rate of the innermost zone; the zones between are interpolated linearly.
    pub inner_bytes_per_second: u64,
    /// Seek time to a neighbouring cylinder.
    pub seek_track_ns: u64,
    /// Mean seek time between two random cylinders.
    pub seek_average_ns: u64,
    /// Additional settle time of a write compared with a read after the arm moved.
    pub write_settle_ns: u64,
    /// Controller time per access to the platters, before the arm moves.
    pub overhead_ns: u64,
    /// Number of accesses among which the nearest is chosen: queued commands first, then pages of
    /// the cache.
    pub queue_depth: u32,
    /// Size of the write cache in pages; 0 switches it off.
    pub cache_pages: u32,
}

impl DiskOptions {
    fn check(&self) -> Result<()> {
        let problem = if self.pages == 0 || self.zones == 0 || self.heads == 0 {
            "a disk needs pages, zones and heads"
        } else if self.rotation_ns == 0 || self.queue_depth == 0 {
            "a disk turns, and its queue has room for one access at least"
        } else if self.inner_bytes_per_second == 0
            || self.inner_bytes_per_second > self.outer_bytes_per_second
        {
            "the inner zone of a disk has a rate, and not the higher one"
        } else if self.seek_track_ns > self.seek_average_ns {
            "the shortest seek of a disk is not longer than the average one"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, format!("{problem}: {self:?}")))
    }
}
