//! The flash device that a host sees: a write cache and transactions over the FTL.
//!
//! ```text
//! Transactional  transactions over any device that writes scattered pages all or nothing
//! ├ transactions open transactions: their pages in memory, and the places of the staged ones
//! ├ holders      which transaction holds which page
//! ├ large        transactions that outgrow their memory
//! └ staging      pages for their content until the commit
//! Ssd            Transactional over a Drive, which accepts commands: read, write, flush, trim, share
//! ├ write_cache  frames of dirty pages: rewrites coalesce, write-back in FIFO order
//! ├ write_back   the flushers: group commit, pairing into flash pages, ordered batches
//! ├ room         admits writes to pages without content; staged pages of open transactions count too
//! ├ share        remapping, ordered with the writes before and after it
//! ├ trim         trims, ordered in the same way
//! ├ extent       which pages have content
//! ├ refusals     refused changes: after a failure, or if opened read-only
//! ├ over_home    the interface for a cache of a slower home
//! ├ kind         makes and opens an SSD
//! ├ life         from start to close
//! └ power_loss   the dump at a power loss, the reboot
//! ```
mod extent;
pub mod fault_points;
mod holders;
mod kind;
mod large;
mod life;
mod options;
mod over_home;
mod power_loss;
mod refusals;
mod room;
mod share;
mod ssd;
mod staging;
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
