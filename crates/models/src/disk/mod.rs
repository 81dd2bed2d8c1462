//! A disk: one arm, platters that turn, an elevator over what is queued, and a write cache.
//!
//! ```text
//! geometry   zones of tracks: where a page lies, how fast it passes under the head
//! mechanics  seek, settle, rotation, transfer: how long an access takes from here
//! cache      pages that were acknowledged and are not on the platters yet
//! device     commands, the arm's task that serves the nearest first, flush
//! platters   what is on the disk, also after a power cut
//! ```
//!
//! With the write cache on, a write is acknowledged when it is in the cache: `volatile`, only a
//! flush promises anything. With it off, a write is acknowledged when it is on the platters:
//! `on_ack`. What is atomic on a disk is a sector of 512 bytes: a write that a power cut meets
//! may leave any of its pages old, new or torn, and a host that cannot bear that must write twice.
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

/// What a disk is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Pages that it offers.
    pub pages: u64,
    /// One turn of the platters.
    pub rotation_ns: u64,
    /// Zones of tracks of equal length, each with as many cylinders as the others.
    pub zones: u32,
    /// Surfaces, each with its head; a cylinder has a track on each.
    pub heads: u32,
    /// Rate at which the outermost zone passes under the head.
    pub outer_bytes_per_second: u64,
    /// Rate of the innermost; those between lie on a line.
    pub inner_bytes_per_second: u64,
    /// Seek to a neighbouring cylinder.
    pub seek_track_ns: u64,
    /// Seek between two cylinders drawn at random, on average.
    pub seek_average_ns: u64,
    /// What a write waits more than a read after the arm moved, before the head may be used.
    pub write_settle_ns: u64,
    /// The controller's time an access to the platters, before the arm moves.
    pub overhead_ns: u64,
    /// Accesses among which the nearest is chosen: queued commands first, then pages of the cache.
    pub queue_depth: u32,
    /// Pages of the write cache; 0: off.
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
