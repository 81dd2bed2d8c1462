//! A database of clustered B+trees on a device. It is the common part of storage engines that change pages in a buffer pool, make
//! commits durable by a redo log, and write dirty pages home in batches.
//!
//! ```text
//! engine       create, open, find, scan, close            way         the part of each engine: how it reaches the device
//! transaction  changes that are made together             options     sizes
//! turn         the step in which they take effect         layout      places on the device
//! locks        row locks of transactions                  drives      one device, or two with the log apart
//! commits      a redo log, or transactions of the device  statistics
//! checkpoint   fuzzy checkpoints, which free log space    as_rows     the database as a target of workloads
//! recovery     after a crash                              homes       the steps by which a batch is written home
//! ```
//!
//! The life of a changed row, in this order:
//!
//! ```text
//! put        kept by the transaction, which holds the row's lock
//! commit     planned (btree::plan), appended to the log and put into the pool in one step
//!            the log is written and flushed; simultaneous commits share that: committed
//! later      its page leaves the pool in a batch, once the log of its last change is durable
//! checkpoint all pages that were dirty when it began are at home: the log before that is freed
//! ```
//!
//! So no page ever has an uncommitted change, and recovery only repeats the log. A way without a log writes the changed pages home
//! at the commit, in a device transaction, and skips the later steps.
mod as_rows;
mod checkpoint;
mod commits;
mod drives;
mod engine;
mod homes;
mod layout;
mod locks;
mod options;
mod recovery;
mod statistics;
mod transaction;
mod turn;
mod way;

use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_buffer::{Pool, PoolOptions};
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::Runtime;

use crate::records::Codec;
pub use drives::Drives;
pub use engine::Database;
use homes::HomeStore;
pub use homes::{BatchRules, Homed, Homes, RestoreReport};
pub(crate) use layout::{Layout, LogPlace};
pub use options::{DatabaseOptions, PageOptions};
pub use recovery::RecoveryReport;
pub use statistics::{EngineStatistics, HostStatistics};
pub use transaction::Transaction;
pub use way::{DeviceNeed, Way};

pub(crate) type HomePool<R, D, C, P, B, W> = Rc<Pool<HomeStore<R, D, C, P, B, W>, R>>;

/// A pool over `homes`, with LRU replacement. Pages that wait for a batch or are being written also count as memory of the pool,
/// and so do the `kept_pages` that have frames although the policy evicted them.
pub(crate) fn pool_of<R, D, C, P, B, W>(
    runtime: &R,
    homes: &Rc<Homes<R, D, C, P, B, W>>,
    options: &PageOptions<W>,
    kept_pages: u32,
) -> Result<HomePool<R, D, C, P, B, W>>
where
    R: Runtime,
    D: PageDevice,
    P: Homed,
    C: Codec<Page = D::Page, Record = P::Record>,
    B: BatchRules,
    W: Way,
{
    let transit_frames = kept_pages + 2 * options.batch_pages;
    let frames = options.pool_pages - transit_frames;
    let workload = Workload { pages_end: options.database_pages, future: &[] };
    let policy = PolicySpec::parse("lru")?.build(frames, workload)?;
    let batches = PoolOptions {
        transit_frames: Some(transit_frames),
        writers: 1,
        batch_pages: Some(options.batch_pages),
        ..PoolOptions::default()
    };
    Pool::new(Rc::new(HomeStore(Rc::clone(homes))), runtime.clone(), policy, batches)
}
