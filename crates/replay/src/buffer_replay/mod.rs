//! Replays a trace through a buffer pool over a simulated device, in virtual time: the pool of the
//! engine, every page checked.
//!
//! ```text
//! run     one policy, one size, one device: independent of other runs
//! clients closed-loop clients that fix, use and unfix
//! meter   the busy time of the device
//! row     the result of a run
//! ```
//!
//! As the dissertation does with its engine ("Caching for flash-based databases and flash-based caching for databases", Ou, 2012, section
//! 2.5): logical page requests go to the buffer manager, which reads missing pages from the device. Commit points do not affect a buffer,
//! as changes need not be written back at a commit; trims are left out.
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

/// The store under a pool: a device with pages as large as the trace's, timed.
type Store = Meter<Virtual, LargePages<Device>>;

/// One policy with one size over one device.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferRun {
    /// The policy.
    pub policy: PolicySpec,
    /// Maximum number of pages in the pool.
    pub buffer_pages: u32,
    /// The device.
    pub device: DeviceSpec,
}

/// The options of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferReplayOptions {
    /// Number of clients; each sends its next request when the previous one is done.
    pub clients: u32,
    /// Computing time of a client per request, in addition to waiting.
    pub cpu_ns: u64,
    /// Computing time for each page that a search of the policy visits (`Policy::search_steps`).
    pub search_step_ns: u64,
    /// Bytes of a page of the trace: a number of neighbouring pages of the device, which are read and written together.
    pub page_bytes: u32,
    /// Preconditioning of the device; `None` replays on a fresh one, on which reads of unwritten pages cost nothing.
    pub age: Option<Age>,
    /// The pool.
    pub pool: PoolOptions,
    /// Number of requests between two samples of the policy's gauges; 0: only at the end.
    pub gauges_every: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Maximum number of threads; the rows do not depend on it.
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

/// Replays `trace` in every run, on all threads, and reports its progress to `work`; the rows are in the order of the runs. A run that was
/// not finished when runs were requested to end has no row.
///
/// # Errors
/// `InvalidInput` if options, policy or device are not valid, for example if the page size is not a multiple of the device's; `Corrupt` if
/// a page does not hold the content that was written; those of the device.
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
        let context = "a replay has at least one client";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let simulated = run.device.build(runtime, options.seed).await?;
    let device = Rc::clone(&simulated.device);
    let store = LargePages::new(Rc::clone(&device), options.page_bytes)?;
    let (pages, device_pages) = (store.pages(), device.limits().pages);
    // A disk may be far larger than the trace's pages; it needs no aging either.
    let held = match run.device {
        DeviceSpec::Disk(_) => device_pages.min(trace.pages_end * u64::from(store.parts())),
        _ => device_pages,
    };
    let expected = Rc::new(RefCell::new(Expected::new(held)));
    if let Some(age) = &options.age {
        age_device(runtime, &simulated, &expected, age, options.seed).await?;
    }
    PageDevice::flush(&*device).await?;
    // Requests of several clients overtake one another, and folded pages have other numbers: then the future is not known, and a policy
    // that needs it refuses.
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
