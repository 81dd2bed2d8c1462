//! The pool: its state and its wait queues.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result};
use tantalum_policy::Policy;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::{Semaphore, WaitQueue};

use crate::admission::Admission;
use crate::frames::Content;
use crate::options::PoolOptions;
use crate::statistics::PoolStatistics;
use crate::store::PageStore;
use crate::write_back::Run;

/// Number of queues in which fixes wait for a page's latch; each frame uses one of them.
const LATCH_QUEUES: usize = 64;

/// A buffer pool over a device, or over an engine's own [`PageStore`]. While the pool is in use,
/// the device's pages must not be written in any other way.
///
/// Updates become durable, in no order, with [`flush`](Self::flush): an engine that needs more
/// keeps a log.
pub struct Pool<D: PageStore, R: Runtime> {
    pub(crate) device: Rc<D>,
    pub(crate) runtime: R,
    pub(crate) options: PoolOptions,
    /// Maximum pages in one device write.
    pub(crate) run_pages_max: u32,
    pub(crate) state: RefCell<Admission>,
    contents: Box<[RefCell<D::Page>]>,
    latches: Box<[WaitQueue]>,
    /// Woken when a frame may have become free, or all may have been pinned.
    pub(crate) room: WaitQueue,
    /// Woken when there is something to write, or something was written.
    pub(crate) progress: WaitQueue,
    /// Fixes get free frames in order of arrival.
    pub(crate) frame_turn: Semaphore,
    pub(crate) flush_turn: Semaphore,
    pub(crate) spare_runs: RefCell<Vec<Run<D::Page>>>,
    pub(crate) closing: Cell<bool>,
    started: Cell<bool>,
}

impl<D: PageStore, R: Runtime> Pool<D, R> {
    /// An empty pool over `device` with the frames of `policy`, which must be empty, and the
    /// transit frames of `options`.
    ///
    /// # Errors
    /// `InvalidInput` if the options are invalid, or there would be 2^31 frames or more.
    pub fn new(
        device: Rc<D>,
        runtime: R,
        policy: Box<dyn Policy>,
        options: PoolOptions,
    ) -> Result<Rc<Self>> {
        options.check()?;
        let capacity = policy.capacity_pages();
        let frames = capacity.checked_add(options.transit_frames(capacity));
        let Some(frames) = frames.filter(|frames| *frames < 1 << 31) else {
            return Err(Error::new(ErrorKind::InvalidInput, "a buffer has fewer than 2^31 frames"));
        };
        let write_pages_max = device.write_pages_max();
        let state = RefCell::new(Admission::new(policy, frames, &options));
        Ok(Rc::new(Pool {
            runtime,
            run_pages_max: options.write_run_pages_max.min(write_pages_max),
            options,
            state,
            contents: (0..frames).map(|_| RefCell::new(device.blank())).collect(),
            device,
            latches: (0..LATCH_QUEUES).map(|_| WaitQueue::new("a page of the buffer")).collect(),
            room: WaitQueue::new("a free frame of the buffer"),
            progress: WaitQueue::new("write-backs of the buffer"),
            frame_turn: Semaphore::new("its turn to get a frame", 1),
            flush_turn: Semaphore::new("its turn to flush", 1),
            spare_runs: RefCell::new(Vec::new()),
            closing: Cell::new(false),
            started: Cell::new(false),
        }))
    }

    /// Starts the writers and the flusher of the options. A pool with neither works without this.
    pub fn start(self: &Rc<Self>) {
        if self.started.replace(true) {
            return;
        }
        for _ in 0..self.options.writers {
            let pool = Rc::clone(self);
            self.runtime.spawn("buffer writer", async move { pool.run_writer().await });
        }
        if let Some(options) = self.options.flusher {
            let pool = Rc::clone(self);
            self.runtime.spawn("buffer flusher", async move { pool.run_flusher(options).await });
        }
    }

    /// Writes every dirty page, makes it durable, and ends the tasks. No page may be fixed.
    ///
    /// # Errors
    /// As [`flush`](Self::flush); the tasks end anyway.
    pub async fn close(&self) -> Result<()> {
        let flushed = self.flush().await;
        self.stop();
        flushed
    }

    /// Ends the tasks without writing: dirty pages stay dirty.
    pub fn stop(&self) {
        self.closing.set(true);
        self.progress.wake_all();
    }

    /// The device or store below.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// The settings.
    pub fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// Counters.
    pub fn statistics(&self) -> PoolStatistics {
        self.state.borrow().statistics
    }

    /// Whether `page` has a frame, one of the policy's or a transit frame.
    pub fn is_resident(&self, page: PageNo) -> bool {
        self.state.borrow().is_resident(page)
    }

    /// Numbers of all frames, and of those that are free, pinned and dirty.
    pub fn frames(&self) -> PoolFrames {
        let frames = &self.state.borrow().frames;
        PoolFrames {
            total: frames.count(),
            free: frames.free_count(),
            pinned: frames.pinned,
            dirty: frames.dirty,
        }
    }

    /// Bytes of memory besides the pages: constant once every kind of task has run.
    pub fn memory_bytes(&self) -> u64 {
        let state = self.state.borrow();
        let runs: u64 = self.spare_runs.borrow().iter().map(Run::memory_bytes).sum();
        state.memory_bytes() + runs + (self.contents.len() * size_of::<RefCell<D::Page>>()) as u64
    }

    /// Calls `look` with the policy, for anything specific to that policy.
    pub fn with_policy<T>(&self, look: impl FnOnce(&dyn Policy) -> T) -> T {
        look(&*self.state.borrow().policy)
    }

    /// Panics if the pool's structures contradict each other. Checks all frames.
    pub fn validate(&self) {
        self.state.borrow().validate();
    }

    pub(crate) fn latch(&self, frame: u32) -> &WaitQueue {
        &self.latches[frame as usize % LATCH_QUEUES]
    }

    pub(crate) fn content(&self, frame: u32) -> &RefCell<D::Page> {
        &self.contents[frame as usize - 1]
    }

    /// Zeroes the page in `frame` if it was never read: it is about to be overwritten.
    pub(crate) fn zero_if_absent(&self, frame: u32) {
        if self.state.borrow().frames.get(frame).content == Content::Absent {
            *self.content(frame).borrow_mut() = self.device.blank();
        }
    }

    /// Wakes the writers and the fixes that wait for a frame.
    #[inline]
    pub(crate) fn wake_waiting(&self, state: &Admission) {
        if state.frame_waiters > 0 {
            self.room.wake_all();
        }
        if state.is_due() || self.over_watermark(state) {
            self.progress.wake_all();
        }
    }

    /// Whether the flusher has something to do.
    #[inline]
    pub(crate) fn over_watermark(&self, state: &Admission) -> bool {
        self.options.flusher.is_some_and(|flusher| {
            f64::from(state.frames.dirty) > flusher.high * f64::from(state.policy.capacity_pages())
        })
    }
}

/// Counts of a pool's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFrames {
    /// All frames: the policy's and the transit frames.
    pub total: u32,
    /// Frames without a page.
    pub free: u32,
    /// Frames with a page that is fixed, or being fixed.
    pub pinned: u32,
    /// Frames with a page that was changed since it was written back.
    pub dirty: u32,
}
