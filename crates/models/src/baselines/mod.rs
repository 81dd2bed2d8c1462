//! The transactional devices that TxCache was measured against, over the same FTL and media.
//!
//! ```text
//! shadow   new versions to new places, one atomic batch a commit: TxFlash, atomic-write log
//! cycles   what TxFlash's recovery does: every page of the drive, every cycle
//! wal      a redo log in flash, copied home when it fills
//! ```
//! All keep the rule of [`PageDevice`](tantalum_base::PageDevice) that a completed commit is
//! durable, and the rule for conflicts of the write cache's transactions: the first of two open
//! transactions to write a page holds it, the other is refused with `Conflict`.
mod cycles;
mod shadow;
mod wal;

pub use cycles::{CycleScan, scan_cycles};
pub use shadow::{
    Clustering, ShadowDevice, ShadowKind, ShadowLog, ShadowOptions, ShadowStatistics,
};
pub use wal::{RedoLog, Wal, WalCommit, WalKind, WalOptions, WalRecovery, WalStatistics};
