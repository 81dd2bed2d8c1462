//! Closed-loop clients, which share the trace and take its requests in order: fix, use, unfix.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{PageDevice, PageNo, Result, Stamp};
use tantalum_buffer::{Intent, Pool};
use tantalum_runtime::{Runtime, Virtual, spawn_all};

use super::{BufferReplayOptions, Sample};
use crate::cache_replay::CacheTrace;
use crate::device_replay::Expected;
use crate::work::Work;

/// What the clients of one replay share.
struct Replay<D: PageDevice<Page = Stamp>> {
    runtime: Virtual,
    trace: Arc<CacheTrace>,
    pool: Rc<Pool<D, Virtual>>,
    expected: Rc<RefCell<Expected>>,
    work: Arc<Work>,
    next: Cell<usize>,
    device_pages: u64,
    cpu_ns: u64,
    search_step_ns: u64,
    /// What was charged of the policy's searches.
    search_steps: Cell<u64>,
    gauges_every: usize,
    samples: RefCell<Vec<Sample>>,
}

/// Sends every request of `trace` through `pool`, pages folded into those of the device. What the policy told of itself on the way.
pub(super) async fn run<D: PageDevice<Page = Stamp> + 'static>(
    runtime: &Virtual,
    trace: &Arc<CacheTrace>,
    pool: &Rc<Pool<D, Virtual>>,
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
        device_pages: pool.device().limits().pages,
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

impl<D: PageDevice<Page = Stamp>> Replay<D> {
    async fn serve(&self) -> Result<()> {
        // Computing on pages that are in the pool meets nobody: it is slept off together, before
        // something has to be waited for.
        let mut computed_ns = 0;
        loop {
            let at = self.next.get();
            let Some(&request) = self.trace.requests.get(at) else { break };
            self.next.set(at + 1);
            self.work.takes(at);
            computed_ns += self.cpu_ns;
            let page = PageNo(request.page().0 % self.device_pages);
            if computed_ns > 0 && !self.pool.is_resident(page) {
                self.runtime.sleep(std::mem::take(&mut computed_ns)).await;
            }
            let intent = if request.is_write() { Intent::Update } else { Intent::Read };
            let mut guard = self.pool.fix(page, intent).await?;
            computed_ns += self.searched_ns();
            self.expected.borrow().check(page, std::slice::from_ref(&*guard.page()))?;
            if request.is_write() {
                *guard.page_mut() = self.expected.borrow_mut().write_one(page);
            }
            drop(guard);
            self.sample(at + 1);
        }
        self.runtime.sleep(computed_ns).await;
        Ok(())
    }

    /// Notes what the policy tells of itself where a sample is due behind so many requests.
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
