//! Write-back: dirty pages are taken off the queue in runs of neighbours, with one device write for
//! each run, or in batches.
use tantalum_base::{PageNo, Result};
use tantalum_policy::Physical;
use tantalum_policy::page_table::NO_FRAME;
use tantalum_runtime::Runtime;

use crate::admission::Admission;
use crate::pool::Pool;
use crate::store::PageStore;

/// Pages and their contents, adjacent or a batch, that are being written (as of the write's start)
/// or read.
pub(crate) struct Run<P> {
    pub first: PageNo,
    pub frames: Vec<u32>,
    pub pages: Vec<P>,
}

impl<P> Run<P> {
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.frames.capacity() * size_of::<u32>() + self.pages.capacity() * size_of::<P>()) as u64
    }
}

impl Admission {
    /// Takes up to `pages_max` adjacent pages off the queue, including the one that has waited
    /// longest. Returns the first page; `None` if the queue is empty.
    fn take_run(&mut self, pages_max: u32, frames: &mut Vec<u32>) -> Option<PageNo> {
        let oldest = self.frames.first_queued();
        if oldest == NO_FRAME {
            return None;
        }
        let page = self.frames.get(oldest).page;
        let (mut first, mut end) = (page.0, page.0 + 1);
        let queued = |page: u64| self.frames.find_queued(PageNo(page)) != NO_FRAME;
        while end - first < u64::from(pages_max) && first > 0 && queued(first - 1) {
            first -= 1;
        }
        while end - first < u64::from(pages_max) && queued(end) {
            end += 1;
        }
        for page in first..end {
            let frame = self.frames.find(PageNo(page));
            self.begin_write(frame);
            frames.push(frame);
        }
        Some(PageNo(first))
    }

    /// Takes up to `pages_max` pages off the queue, those that have waited longest.
    fn take_batch(&mut self, pages_max: u32, frames: &mut Vec<u32>) -> Option<PageNo> {
        while frames.len() < pages_max as usize && self.has_queued() {
            let frame = self.frames.first_queued();
            self.begin_write(frame);
            frames.push(frame);
        }
        Some(self.frames.get(*frames.first()?).page)
    }

    fn begin_write(&mut self, frame: u32) {
        self.frames.dequeue(frame);
        self.frames.set_dirty(frame, false);
        self.frames.set_writing(frame, true);
        let held = self.frames.get_mut(frame);
        held.write_due = false;
        let page = held.page;
        self.statistics.cluster_switches += self.write_switches.switch(page);
        self.statistics.write_backs_waited += u64::from(self.frame_waiters > 0);
    }

    /// Ends the write of the page in `frame`.
    fn end_write(&mut self, frame: u32, written: bool) {
        self.frames.set_writing(frame, false);
        let held = self.frames.get_mut(frame);
        let ahead = std::mem::take(&mut held.ahead);
        let by_flusher = std::mem::take(&mut held.by_flusher);
        let waits = held.flush_waits;
        held.flush_waits = waits.saturating_sub(1);
        self.flush_left -= u32::from(waits == 1);
        if written {
            let held = *self.frames.get(frame);
            self.statistics.flusher_writes += u64::from(by_flusher);
            if ahead && held.cached && !held.dirty && held.update_pins == 0 {
                self.policy.cleaned(held.page);
            }
            self.frames.enqueue(frame);
        } else {
            // The frame's content is at least as new as the content that was not written.
            self.frames.set_dirty(frame, true);
            self.frames.get_mut(frame).write_due = false;
            self.frames.set_failed(frame, true);
            // Recorded here, as the write may be retried before the flush checks.
            self.flush_failed |= waits > 0;
            // A flush that waits for a second write of the page has failed with the first.
            let rest = std::mem::take(&mut self.frames.get_mut(frame).flush_waits);
            self.flush_left -= u32::from(rest > 0);
        }
        self.release(frame);
    }

    /// Ends a write whose future was dropped: the page must be written again.
    fn give_up_write(&mut self, frame: u32) {
        self.frames.set_writing(frame, false);
        self.frames.set_dirty(frame, true);
        // One write is left to do, even if the page was updated meanwhile.
        let held = self.frames.get_mut(frame);
        held.flush_waits = held.flush_waits.min(1);
        self.frames.request_write(frame);
    }
}

impl<D: PageStore, R: Runtime> Pool<D, R> {
    /// A task that writes queued pages until the pool is closed.
    pub(crate) async fn run_writer(&self) {
        loop {
            let open = || match self.state.borrow().is_due() {
                true => Some(true),
                false => self.closing.get().then_some(false),
            };
            if !self.progress.until(open).await {
                return;
            }
            self.write_next(false).await;
        }
    }

    /// Writes until the queue is empty. `waited`: a fix waits for it.
    pub(crate) async fn write_queued(&self, waited: bool) {
        while self.write_next(waited).await {}
    }

    /// Writes one run or batch; false if nothing is due. `waited` as above.
    pub(crate) async fn write_next(&self, waited: bool) -> bool {
        let Some(mut turn) = self.take(waited) else { return false };
        let start_ns = self.runtime.now_ns();
        let written = match self.options.batch_pages {
            None => self.device.write(turn.run.first, &turn.run.pages).await,
            Some(_) => {
                let batch = self.batch(&mut turn.run);
                self.device.write_batch(batch).await
            }
        };
        let time_ns = self.runtime.now_ns().saturating_sub(start_ns);
        turn.end(written, time_ns);
        true
    }

    fn batch(&self, run: &mut Run<D::Page>) -> Vec<(PageNo, D::Page)> {
        let state = self.state.borrow();
        let pages = run.frames.iter().map(|frame| state.frames.get(*frame).page);
        pages.zip(run.pages.drain(..)).collect()
    }

    /// An empty run, reusing the memory of an earlier one.
    pub(crate) fn spare_run(&self) -> Run<D::Page> {
        let spare = self.spare_runs.borrow_mut().pop();
        spare.unwrap_or(Run { first: PageNo(0), frames: Vec::new(), pages: Vec::new() })
    }

    /// Keeps the memory of `run` for a later one.
    pub(crate) fn recycle(&self, run: &mut Run<D::Page>) {
        run.frames.clear();
        run.pages.clear();
        let (frames, pages) = (std::mem::take(&mut run.frames), std::mem::take(&mut run.pages));
        self.spare_runs.borrow_mut().push(Run { first: PageNo(0), frames, pages });
    }

    fn take(&self, waited: bool) -> Option<WriteTurn<'_, D, R>> {
        let mut state = self.state.borrow_mut();
        if !state.is_due() {
            return None;
        }
        let mut run = self.spare_run();
        run.first = match self.options.batch_pages {
            None => state.take_run(self.run_pages_max, &mut run.frames)?,
            Some(pages_max) => state.take_batch(pages_max, &mut run.frames)?,
        };
        run.pages.extend(run.frames.iter().map(|frame| self.content(*frame).borrow().clone()));
        let counted = state.frame_waiters > 0;
        let pages = run.frames.len() as u64;
        state.statistics.write_backs_waited += if waited && !counted { pages } else { 0 };
        Some(WriteTurn { pool: self, run, ended: false })
    }
}

/// A run being written. If it is dropped before its end, its pages are written again.
struct WriteTurn<'a, D: PageStore, R: Runtime> {
    pool: &'a Pool<D, R>,
    run: Run<D::Page>,
    ended: bool,
}

impl<D: PageStore, R: Runtime> WriteTurn<'_, D, R> {
    fn end(&mut self, written: Result<()>, time_ns: u64) {
        self.ended = true;
        let pages = self.run.frames.len() as u64;
        let mut state = self.pool.state.borrow_mut();
        state.statistics.device_writes += 1;
        if written.is_ok() {
            state.statistics.physical_writes += pages;
            for _ in 0..pages {
                state.policy.measured(Physical::Write, time_ns / pages);
            }
        } else {
            state.statistics.write_failures += 1;
        }
        for frame in &self.run.frames {
            state.end_write(*frame, written.is_ok());
        }
        if let Err(error) = written {
            let (first, context) = (self.run.first, "from the buffer");
            let error = error.wrap(format!("writing {pages} pages from page {first} on {context}"));
            state.write_error = Some(error);
        }
    }
}

impl<D: PageStore, R: Runtime> Drop for WriteTurn<'_, D, R> {
    fn drop(&mut self) {
        let pool = self.pool;
        let mut state = pool.state.borrow_mut();
        if !self.ended {
            self.run.frames.iter().for_each(|frame| state.give_up_write(*frame));
        }
        if state.frame_waiters > 0 {
            pool.room.wake_all();
        }
        drop(state);
        pool.progress.wake_all();
        pool.recycle(&mut self.run);
    }
}
