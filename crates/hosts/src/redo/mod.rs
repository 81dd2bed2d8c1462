//! A redo log in a part of a device, and the checkpoints that say where it begins.
//!
//! ```text
//! block     what an engine keeps on its device: headers, pages, blocks of the log
//! log       groups of changes are appended in memory, written a block at a time, durable, and given up
//! group_commit  who commits while a block is written shares the next one
//! reading   the blocks behind a checkpoint, in order
//! header    checkpoints: two places, written in turn
//! ```
//!
//! The log goes round in its part of the device. A block begins a device page and has whole groups; a group is all changes of one
//! transaction, so that a checksum over the block makes it all or nothing. LSNs count groups.
mod block;
mod group_commit;
mod header;
mod log;
mod reading;

pub use block::{Block, Group, Header, LogBlock, Shape};
pub(crate) use group_commit::{GroupCommit, closed};
pub(crate) use header::Headers;
pub(crate) use log::{Log, LogEnd};
pub(crate) use reading::LogReader;

/// Device pages of the headers, which lie before the log.
pub(crate) const HEADER_PAGES: u64 = 2;

/// Least device pages of a log for each device page of a page: a transaction of one row, which may split pages of several levels,
/// has room in it.
pub const LOG_PAGES_MIN: u64 = 64;

/// Most device pages of a block, in a log of so many.
pub(crate) fn block_pages_max(log_pages: u64) -> u64 {
    log_pages / 16
}
