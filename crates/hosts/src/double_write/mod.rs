//! InnoDB's storage engine (SHARE, sections 2 and 4.3; DuraSSD, sections 2.1 and 4.3.1): clustered B+trees whose pages are changed in a buffer
//! pool, a redo log that makes commits durable, and dirty pages that reach their homes in batches.
//!
//! ```text
//! engine       create, open, find, scan, close          options     forms and sizes
//! transaction  changes that are made together           layout      what lies where
//! locks        rows that transactions hold              statistics
//! checkpoint   how the log is kept short, fuzzily       page_load   pages alone, under a load of accesses
//! recovery     after a crash                            image       what these are
//! homes        how a batch reaches its homes: the forms as_rows     as loads see it
//! ```
//!
//! A page of the database may be several device pages. A device need not write those as one, so that a cut can leave a page torn,
//! half old and half new, which the redo log cannot mend. Hence the double write: a batch is first written to an area of its own
//! and made durable, then to the pages' homes. With SHARE the second write is a change of the device's mapping, atomic for the
//! whole batch; in a transaction of the device there is no first one.
//!
//! What happens to a row, in this order:
//!
//! ```text
//! put        kept by the transaction, which holds the row
//! commit     worked out on copies of the pages (btree::plan), appended to the log and put into the pool in one step
//!            log written and flushed; who commits at the same time shares that: committed
//! later      its page leaves the pool in a batch, not before the log of its last change is durable
//! checkpoint all pages that were dirty at its begin are at home: the log before that begin is given up
//! ```
//!
//! So no page ever has a change that was not committed, and recovery only repeats what the log has.
mod as_rows;
mod checkpoint;
mod engine;
mod homes;
mod image;
mod layout;
mod locks;
mod options;
mod page_load;
mod recovery;
mod statistics;
mod transaction;

use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_buffer::{Pool, PoolOptions};
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::Runtime;

use crate::records::Codec;
pub use engine::DoubleWrite;
pub use homes::RestoreReport;
use homes::{BatchRules, HomeStore, Homed, Homes};
pub use options::{DoubleWriteOptions, Form, PageOptions};
pub use page_load::{PageLoad, restore, versions};
pub use recovery::RecoveryReport;
pub use statistics::{EngineStatistics, HostStatistics};
pub use transaction::Transaction;

type HomePool<R, D, C, P, B> = Rc<Pool<HomeStore<R, D, C, P, B>, R>>;

/// A pool over `homes`, with LRU replacement. What waits for a batch and what is being written is memory of the pool, too.
fn pool_of<R, D, C, P, B>(
    runtime: &R,
    homes: &Rc<Homes<R, D, C, P, B>>,
    options: &PageOptions,
) -> Result<HomePool<R, D, C, P, B>>
where
    R: Runtime,
    D: PageDevice,
    P: Homed,
    C: Codec<Page = D::Page, Record = P::Record>,
    B: BatchRules,
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
