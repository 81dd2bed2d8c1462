//! Closed-loop clients, which share the trace and take its requests in order: fix, use, unfix.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{PageNo, PageRange, Result};
use tantalum_buffer::{Intent, PageStore, Pool};
use tantalum_runtime::{Runtime, Virtual, spawn_all};

use super::{BufferReplayOptions, Sample, Store};
use crate::cache_replay::CacheTrace;
use crate::device_replay::Expected;
use crate::work::Work;

/// State that the clients of one replay share.
struct Replay {
    runtime: Virtual,
    trace: Arc<CacheTrace>,
    pool: Rc<Pool<Store, Virtual>>,
    expected: Rc<RefCell<Expected>>,
    work: Arc<Work>,
    next: Cell<usize>,
    /// Number of pages of the store, and of device pages in one of these.
    pages: u64,
    parts: u64,
    cpu_ns: u64,
    search_step_ns: u64,
    /// Search steps of the policy that were charged so far.
    search_steps: Cell<u64>,
    gauges_every: usize,
    samples: RefCell<Vec<Sample>>,
}

/// Sends every request of `trace` through `pool`, with page numbers folded into the store's. Returns the policy's gauges sampled
/// on the way.
pub(super) async fn run(
    runtime: &Virtual,
    trace: &Arc<CacheTrace>,
    pool: &Rc<Pool<Store, Virtual>>,
    expected: &Rc<RefCell<Expected>>,
    options: &BufferReplayOptions,
    work: &Arc<Work>,
) -> Result<Vec<Sample>> {
    let replay = Rc::new(Replay {
        runtime: runtime.clone(),
        trace: Arc::clone(trace),
        pool: Rc::clone(pool),
        expected: Rc::clone(expected),
        work: Arc::clone(work),
        next: Cell::new(0),
        pages: pool.device().pages(),
        parts: u64::from(pool.device().store().parts()),
        cpu_ns: options.cpu_ns,
        search_step_ns: options.search_step_ns,
        search_steps: Cell::new(0),
        gauges_every: options.gauges_every,
        samples: RefCell::default(),
    });
    let client = |_| {
        let replay = Rc::clone(&replay);
        async move { replay.serve().await }
    };
    spawn_all(runtime, "client", (0..options.clients).map(client)).await?;
    Ok(replay.samples.take())
}

impl Replay {
    async fn serve(&self) -> Result<()> {
        // Computing on pages that are in the pool affects nobody else: that time is added up, and passes before the next wait.
        let mut computed_ns = 0;
        loop {
            let at = self.next.get();
            let Some(&request) = self.trace.requests.get(at) else { break };
            self.next.set(at + 1);
            self.work.takes(at);
            computed_ns += self.cpu_ns;
            let page = PageNo(request.page().0 % self.pages);
            if computed_ns > 0 && !self.pool.is_resident(page) {
                self.runtime.sleep(std::mem::take(&mut computed_ns)).await;
            }
            let intent = if request.is_write() { Intent::Update } else { Intent::Read };
            let mut guard = self.pool.fix(page, intent).await?;
            computed_ns += self.searched_ns();
            let parts = PageRange::new(PageNo(page.0 * self.parts), self.parts);
            self.expected.borrow().check(parts.first, &guard.page())?;
            if request.is_write() {
                let expected = &mut *self.expected.borrow_mut();
                *guard.page_mut() = parts.iter().map(|part| expected.write_one(part)).collect();
            }
            drop(guard);
            self.sample(at + 1);
        }
        self.runtime.sleep(computed_ns).await;
        Ok(())
    }

    /// Samples the policy's gauges if a sample is due after this many requests.
    fn sample(&self, requests: usize) {
        if self.gauges_every > 0 && requests.is_multiple_of(self.gauges_every) {
            let gauges = self.pool.with_policy(|policy| policy.gauges());
            self.samples.borrow_mut().push(Sample { requests, gauges });
        }
    }

    /// Time of the searches that were not charged yet.
    fn searched_ns(&self) -> u64 {
        if self.search_step_ns == 0 {
            return 0;
        }
        let steps = self.pool.with_policy(|policy| policy.search_steps());
        (steps - self.search_steps.replace(steps)) * self.search_step_ns
    }
}
