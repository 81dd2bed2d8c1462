//! A database of clustered B+trees on a device: what storage engines have in common whose pages are changed in a buffer pool, whose
//! commits a redo log makes durable, and whose dirty pages reach their homes in batches.
//!
//! ```text
//! engine       create, open, find, scan, close          way         what an engine has of its own: how it reaches the device
//! transaction  changes that are made together           options     sizes
//! locks        rows that transactions hold              layout      what lies where
//! commits      a redo log, or transactions of the device  drives    one device, or two with the log apart
//! checkpoint   how the log is kept short, fuzzily       statistics
//! recovery     after a crash                            as_rows     as loads see it
//! homes        the steps by which a batch gets home
//! ```
//!
//! What happens to a row, in this order:
//!
//! ```text
//! put        kept by the transaction, which holds the row
//! commit     worked out (btree::plan), appended to the log and put into the pool in one step
//!            log written and flushed; who commits at the same time shares that: committed
//! later      its page leaves the pool in a batch, not before the log of its last change is durable
//! checkpoint all pages that were dirty at its begin are at home: the log before that begin is given up
//! ```
//!
//! So no page ever has a change that was not committed, and recovery only repeats what the log has. A way without a log writes the
//! changed pages home at the commit, in a transaction of the device, and leaves out what comes after.
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

/// A pool over `homes`, with LRU replacement. What waits for a batch and what is being written is memory of the pool, too.
pub(crate) fn pool_of<R, D, C, P, B, W>(
    runtime: &R,
    homes: &Rc<Homes<R, D, C, P, B, W>>,
    options: &PageOptions<W>,
) -> Result<HomePool<R, D, C, P, B, W>>
where
    R: Runtime,
    D: PageDevice,
    P: Homed,
    C: Codec<Page = D::Page, Record = P::Record>,
    B: BatchRules,
    W: Way,
{
    let frames = options.pool_pages - 2 * options.batch_pages;
    let workload = Workload { pages_end: options.database_pages, future: &[] };
    let policy = PolicySpec::parse("lru")?.build(frames, workload)?;
    let batches = PoolOptions {
        transit_frames: Some(2 * options.batch_pages),
        writers: 1,
        batch_pages: Some(options.batch_pages),
        ..PoolOptions::default()
    };
    Pool::new(Rc::new(HomeStore(Rc::clone(homes))), runtime.clone(), policy, batches)
}
