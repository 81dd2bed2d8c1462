//! The flash device that a host sees: a write cache and transactions over the FTL.
//!
//! ```text
//! Transactional  transactions over any device that writes scattered pages all or nothing
//! Ssd            that over a Drive, which takes commands: read, write, flush, trim, share
//! ├ write_cache  frames of dirty pages: rewrites coalesce, write-back in FIFO order
//! ├ write_back   the flushers: group commit, pairing into flash pages, ordered batches
//! ├ share        remapping, in order with the writes before and behind it
//! ├ trim         giving ranges up, likewise
//! ├ refusals     after a failure, and where it is open read-only
//! ├ kind         how one is made and opened
//! └ power_loss   the dump at a power loss, the reboot
//! ```
pub mod fault_points;
mod kind;
mod options;
mod power_loss;
mod refusals;
mod share;
mod ssd;
mod statistics;
mod transactional;
mod transactions;
mod trim;
mod write_back;
mod write_cache;

pub use kind::SsdKind;
pub use options::{CacheKind, FlushMeaning, SsdOptions};
pub use power_loss::RebootReport;
pub use ssd::{Drive, Ssd};
pub use statistics::SsdStatistics;
pub use transactional::Transactional;
