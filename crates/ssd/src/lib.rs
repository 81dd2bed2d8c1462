//! The flash device that a host sees: a write cache and transactions over the FTL.
//!
//! ```text
//! Ssd            PageDevice: read, write, flush, trim, share, begin, commit, abort
//! ├ write_cache  frames of dirty pages: rewrites coalesce, write-back in FIFO order
//! ├ write_back   the flushers: group commit, pairing into flash pages, ordered batches
//! ├ share        remapping, in order with the writes before and behind it
//! ├ trim         giving ranges up, likewise
//! ├ refusals     after a failure, and where it is open read-only
//! ├ transactions pages of open transactions, invisible until commit
//! └ power_loss   the energy budget, the dump at a power loss, the reboot
//! tx_cache       TxCache: another device over the FTL, whose cache in NVRAM carries transactions
//! HostQueue      a PageDevice over another: what the link to a host costs
//! baselines      TxFlash, atomic-write log, redo log: what TxCache was measured against;
//!                page_turns: their changes of the same pages keep their order
//! profile        devices of the papers as numbers; builds them over simulated NAND
//! ```
pub mod baselines;
mod host_queue;
mod issue_order;
mod options;
mod page_turns;
pub mod power_loss;
pub mod profile;
mod refusals;
mod share;
mod ssd;
mod statistics;
mod transactions;
mod trim;
pub mod tx_cache;
mod write_back;
mod write_cache;

pub use host_queue::{HostQueue, HostQueueOptions};
pub use options::{CacheKind, FlushMeaning, SsdOptions};
pub use power_loss::{Capacitors, RebootReport};
pub use profile::{DeviceConfig, DeviceSpec, Profile, SimulatedDevice, SimulatedSsd};
pub use ssd::Ssd;
pub use statistics::SsdStatistics;
pub use tx_cache::{TxCache, TxCacheOptions};
