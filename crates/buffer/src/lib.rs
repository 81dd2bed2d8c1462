//! The top tier: a buffer pool over any [`PageDevice`](tantalum_base::PageDevice).
//!
//! ```text
//! Pool           fix, use, unfix; dirty pages stay until they are written back: for engines
//! ├ guard        a fixed page, held for reading or for an update
//! ├ fix          from a request to a guard: admission, the one read that all share, the latch
//! ├ prefetch     pages read along, where pages are asked for one after the other
//! ├ write_back   runs of adjacent pages on their way to the device, one write each
//! ├ flusher      dirty pages written ahead of their eviction, between two watermarks
//! └ flush        every dirty page, then the device
//! Buffered       a PageDevice whose reads are cached and whose changes go through: for front ends
//! ├ in_flight    which reads may be cached beside the changes in flight
//! ├ ranges       what a transaction wrote
//! └ kind         how one is made and opened over any device
//! frames         frames, pins, latches, the queue of pages to write; no I/O, no content
//! admission      asks the policy and carries out its effects on frames
//! options, statistics
//! ```
//!
//! The policy is asked once a fix, and what it decides depends on the order of the fixes alone: the
//! pool decides like the cache-only replay of the same requests, whatever the device takes.
mod admission;
mod buffered;
mod fix;
mod flush;
mod flusher;
mod frames;
mod guard;
mod in_flight;
mod kind;
mod options;
mod pool;
mod prefetch;
mod ranges;
mod statistics;
mod write_back;

pub use buffered::Buffered;
pub use guard::Guard;
pub use kind::BufferedKind;
pub use options::{FlusherOptions, Intent, PoolOptions, PrefetchOptions};
pub use pool::{Pool, PoolFrames};
pub use statistics::PoolStatistics;
