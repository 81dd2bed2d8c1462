//! A redo log in a part of a device, and the checkpoints that record its start.
//!
//! ```text
//! block     the content of the device: headers, pages, blocks of the log
//! log       groups of changes: appended in memory, written a block at a time, durable, and freed
//! group_commit  commits that arrive while a block is written share the next one
//! reading   the blocks after a checkpoint, in order
//! header    checkpoints: two places, written in turn
//! ```
//!
//! The log is circular in its part of the device. A block begins at a device page and has whole groups. A group is all changes of
//! one transaction, so the block's checksum makes it all or nothing. LSNs count groups.
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

/// Device pages of the headers, which precede the log.
pub(crate) const HEADER_PAGES: u64 = 2;

/// Minimum device pages of a log for each device page of a database page: enough for a transaction of one row, which may split
/// pages of several levels.
pub const LOG_PAGES_MIN: u64 = 64;

/// Maximum number of device pages of a block, in a log of `log_pages`.
pub(crate) fn block_pages_max(log_pages: u64) -> u64 {
    log_pages / 16
}
