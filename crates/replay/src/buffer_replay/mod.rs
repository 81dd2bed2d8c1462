//! Replays a trace through a buffer pool over a simulated device, in virtual time: the pool of the
//! engine, every page checked.
//!
//! ```text
//! run     one policy, one size, one device: a world of its own
//! clients closed-loop clients that fix, use and unfix
//! meter   how long the device is busy
//! row     what a run gives
//! ```
//!
//! What the dissertation does with its engine ("Caching for flash-based databases and flash-based
//! caching for databases", Ou, 2012, section 2.5): logical page requests go to the buffer manager,
//! which asks the device for what it does not have. Commit points ask a buffer for nothing, as
//! changes need not be written back at a commit; trims are left out.
mod clients;
mod meter;
mod row;
#[cfg(test)]
mod tests;

pub use meter::{Meter, Metered};
pub use row::{BufferReplayRow, Sample};
pub use tantalum_buffer::PoolOptions;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageDevice, Result};
use tantalum_buffer::{LargePages, PageStore, Pool};
use tantalum_models::DeviceSpec;
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::{Runtime, Virtual};

use crate::cache_replay::CacheTrace;
use crate::device_replay::{Age, Device, Expected, age_device};
use crate::side_by_side::side_by_side;
use crate::work::Work;

/// What a pool is over: a device with pages as large as the trace's, timed.
type Store = Meter<Virtual, LargePages<Device>>;

/// One policy with one size over one device.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferRun {
    /// The policy.
    pub policy: PolicySpec,
    /// Pages that it may have in the pool.
    pub buffer_pages: u32,
    /// The device.
    pub device: DeviceSpec,
}

/// How to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferReplayOptions {
    /// Clients; each sends its next request when the one before is done.
    pub clients: u32,
    /// Time that a client computes for a request, besides waiting.
    pub cpu_ns: u64,
    /// Time that it computes for each page that a search of the policy looks at (`Policy::search_steps`).
    pub search_step_ns: u64,
    /// Bytes of a page of the trace: so many neighbouring pages of the device, which are read and written together.
    pub page_bytes: u32,
    /// Preconditioning of the device; `None` replays on a fresh one, of which a read of what was
    /// never written costs nothing.
    pub age: Option<Age>,
    /// The pool.
    pub pool: PoolOptions,
    /// Requests between two samples of what the policy tells of itself; 0: none but at the end.
    pub gauges_every: usize,
    /// Seed of everything that is left to chance.
    pub seed: u64,
    /// Threads at the most; the rows do not depend on it.
    pub threads: usize,
}

impl Default for BufferReplayOptions {
    fn default() -> Self {
        BufferReplayOptions {
            clients: 1,
            cpu_ns: 10_000,
            search_step_ns: 0,
            page_bytes: PAGE_BYTES as u32,
            age: Some(Age::default()),
            pool: PoolOptions::classic(),
            gauges_every: 0,
            seed: 1,
            threads: 1,
        }
    }
}

/// Replays `trace` in every run, on all threads, and tells `work` how far it is; the rows come in the order of the
/// runs. A run that was not done when runs were asked to end has none.
///
/// # Errors
/// `InvalidInput` where options, policy or device make no sense, such as pages that are no whole number of the device's; `Corrupt` where a page does not
/// hold what was written; the device's own.
pub fn replay(
    trace: &Arc<CacheTrace>,
    runs: &[BufferRun],
    options: &BufferReplayOptions,
    work: &Arc<Work>,
) -> Result<Vec<Option<BufferReplayRow>>> {
    work.begin("replaying on devices", runs.len(), trace.requests.len());
    side_by_side(runs, options.threads, work, |run| replay_one(trace, run, options, work))
}

fn replay_one(
    trace: &Arc<CacheTrace>,
    run: &BufferRun,
    options: &BufferReplayOptions,
    work: &Arc<Work>,
) -> Result<BufferReplayRow> {
    let what = format!(
        "replay of {} through {} over {}",
        trace.name,
        run.policy.text(),
        run.device.name()
    );
    let (trace, run, options) = (Arc::clone(trace), run.clone(), options.clone());
    let work = Arc::clone(work);
    Virtual::alone(what, |runtime| async move {
        replay_on(&runtime, &trace, &run, &options, &work).await
    })
}

async fn replay_on(
    runtime: &Virtual,
    trace: &Arc<CacheTrace>,
    run: &BufferRun,
    options: &BufferReplayOptions,
    work: &Arc<Work>,
) -> Result<BufferReplayRow> {
    if options.clients == 0 {
        let context = "a replay has one client at least";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let simulated = run.device.build(runtime, options.seed).await?;
    let device = Rc::clone(&simulated.device);
    let store = LargePages::new(Rc::clone(&device), options.page_bytes)?;
    let (pages, device_pages) = (store.pages(), device.limits().pages);
    // A disk may be far larger than what is asked of it; it needs no aging either.
    let held = match run.device {
        DeviceSpec::Disk(_) => device_pages.min(trace.pages_end * u64::from(store.parts())),
        _ => device_pages,
    };
    let expected = Rc::new(RefCell::new(Expected::new(held)));
    if let Some(age) = &options.age {
        age_device(runtime, &simulated, &expected, age, options.seed).await?;
    }
    PageDevice::flush(&*device).await?;
    // Requests of several clients overtake one another, and folded pages are others: then what
    // is to come is not known, and who must know it refuses.
    let known = options.clients == 1 && trace.pages_end <= pages;
    let future: &[_] = if known { &trace.requests } else { &[] };
    let workload = Workload { pages_end: trace.pages_end.min(pages), future };
    let policy = run.policy.build(run.buffer_pages, workload)?;
    let meter = Rc::new(Meter::new(runtime.clone(), store));
    let pool = Pool::new(Rc::clone(&meter), runtime.clone(), policy, options.pool)?;
    pool.start();
    let start_ns = runtime.now_ns();
    let samples = clients::run(runtime, trace, &pool, &expected, options, work).await?;
    let took_ns = runtime.now_ns() - start_ns;
    let counted = row::Counted {
        took_ns,
        pool: pool.statistics(),
        device: meter.counted(),
        dirty_pages: pool.with_policy(|policy| policy.dirty_pages()),
        gauges: pool.with_policy(|policy| policy.gauges()),
        samples,
        search_steps: pool.with_policy(|policy| policy.search_steps()),
    };
    Ok(BufferReplayRow::new(trace, run, options, counted))
}
