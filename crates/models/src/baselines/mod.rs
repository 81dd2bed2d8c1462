//! The transactional devices with which TxCache was compared, on the same FTL and media.
//!
//! ```text
//! shadow   new versions to new places, one atomic batch per commit: TxFlash, atomic-write log
//! cycles   TxFlash's recovery: reads every page of the drive, checks every cycle
//! wal      a redo log in flash, copied home when it fills
//! ```
//! All keep the rule of [`PageDevice`](tantalum_base::PageDevice) that a completed commit is
//! durable. They share the conflict rule of the write cache's transactions: the first of two open
//! transactions to write a page holds it, and the other gets `Conflict`.
mod cycles;
mod shadow;
mod wal;

pub use cycles::{CycleScan, scan_cycles};
pub use shadow::{
    Clustering, ShadowDevice, ShadowKind, ShadowLog, ShadowOptions, ShadowStatistics,
};
pub use wal::{RedoLog, Wal, WalCommit, WalKind, WalOptions, WalRecovery, WalStatistics};
