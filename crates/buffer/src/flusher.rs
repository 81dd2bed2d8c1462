//! The flusher: writes dirty pages ahead of their eviction, in the order that the policy chooses.
use tantalum_base::PageNo;
use tantalum_policy::page_table::NO_FRAME;
use tantalum_runtime::Runtime;

use crate::admission::Admission;
use crate::options::FlusherOptions;
use crate::pool::Pool;
use crate::store::PageStore;

impl Admission {
    /// Requests writes of up to `pages_max` pages that the policy names; returns how many can start
    /// now.
    fn write_ahead(&mut self, pages_max: u32, candidates: &mut Vec<PageNo>) -> u32 {
        self.policy.write_candidates(pages_max as usize, candidates);
        let mut asked = 0;
        for page in candidates.drain(..) {
            let number = self.frames.find(page);
            if number == NO_FRAME {
                continue;
            }
            let frame = self.frames.get_mut(number);
            // Clean now: the policy counted an update that is not done yet, or that an earlier
            // write-back included.
            if !frame.dirty {
                if frame.update_pins == 0 && !frame.writing {
                    self.policy.cleaned(page);
                }
                continue;
            }
            (frame.ahead, frame.by_flusher) = (true, true);
            self.frames.request_write(number);
            asked += u32::from(self.frames.get(number).queued);
        }
        asked
    }
}

impl<D: PageStore, R: Runtime> Pool<D, R> {
    /// Runs the flusher until the pool is closed.
    pub(crate) async fn run_flusher(&self, options: FlusherOptions) {
        let mut candidates = Vec::with_capacity(options.batch_pages as usize);
        loop {
            let work = || match self.over_watermark(&self.state.borrow()) {
                _ if self.closing.get() => Some(false),
                true => Some(true),
                false => None,
            };
            if !self.progress.until(work).await {
                return;
            }
            self.flush_down(options, &mut candidates).await;
        }
    }

    /// Writes until the low watermark is reached.
    async fn flush_down(&self, options: FlusherOptions, candidates: &mut Vec<PageNo>) {
        let low = options.low * f64::from(self.state.borrow().policy.capacity_pages());
        while f64::from(self.state.borrow().frames.dirty) > low && !self.closing.get() {
            let (asked, failures) = {
                let mut state = self.state.borrow_mut();
                let asked = state.write_ahead(options.batch_pages, candidates);
                (asked, state.statistics.write_failures)
            };
            self.write_queued(false).await;
            if asked == 0 || self.state.borrow().statistics.write_failures > failures {
                // All candidates are being written or updated, or the device fails: wait for a
                // change.
                let before = self.state.borrow().statistics;
                let changed = || {
                    let now = self.state.borrow().statistics;
                    (now != before || self.closing.get()).then_some(())
                };
                return self.progress.until(changed).await;
            }
        }
    }
}
