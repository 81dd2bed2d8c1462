//! The top tier: a buffer pool over any [`PageDevice`](tantalum_base::PageDevice).
//!
//! ```text
//! Pool           fix, use, unfix; dirty pages stay until they are written back: for engines
//! ├ guard        a fixed page, held for reading or for an update
//! ├ fix          from a request to a guard: admission, one read for all waiting fixes, the latch
//! ├ prefetch     pages read ahead in sequences of requests
//! ├ store        the storage of its pages: a device, or an engine's own pages over one
//! ├ large_pages  pages that consist of several neighbours of a device
//! ├ write_back   runs of adjacent dirty pages, each in one device write, or batches of any pages
//! ├ flusher      dirty pages written ahead of their eviction, between two watermarks
//! └ flush        writes every dirty page, then flushes the device
//! Buffered       a PageDevice with a read cache, which passes every change on: for front ends
//! ├ read_cache   the cached pages, and the reads that fill it
//! ├ in_flight    which reads may be cached while changes are in flight
//! ├ range_index  ranges by position
//! ├ ranges       the pages that a transaction wrote
//! └ kind         how a Buffered is made and opened over any device
//! frames         frames, pins, latches, the queue of pages to write; no I/O, no content
//! admission      calls the policy and applies its effects to frames
//! options, statistics
//! ```
//!
//! The policy is called once per fix, and its decisions depend only on the order of the fixes: the
//! pool decides like the cache-only replay of the same requests, however slow the device is.
mod admission;
mod buffered;
mod fix;
mod flush;
mod flusher;
mod frames;
mod guard;
mod in_flight;
mod kind;
mod large_pages;
mod options;
mod pool;
mod prefetch;
mod range_index;
mod ranges;
mod read_cache;
mod statistics;
mod store;
mod write_back;

pub use buffered::Buffered;
pub use guard::{Guard, Hold};
pub use kind::BufferedKind;
pub use large_pages::LargePages;
pub use options::{FlusherOptions, Intent, PoolOptions, PrefetchOptions};
pub use pool::{Pool, PoolFrames};
pub use statistics::PoolStatistics;
pub use store::PageStore;
