//! From a request to a guard.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result};
use tantalum_policy::Physical;
use tantalum_runtime::Runtime;

use crate::admission::Admission;
use crate::frames::{Content, Pin};
use crate::guard::{Guard, Hold};
use crate::options::Intent;
use crate::pool::Pool;
use crate::store::PageStore;
use crate::write_back::Run;

/// The next step of a fix that waits for a frame.
enum Room {
    Frame(u32),
    /// Pages must be written to make room, and only the fix can write them.
    Help,
    Fail(Error),
}

impl<D: PageStore, R: Runtime> Pool<D, R> {
    /// Fixes `page`: it is in the pool, and stays there until the guard is dropped. Waits for
    /// guards that exclude `intent`, and for a free frame.
    ///
    /// # Errors
    /// - `OutOfRange`.
    /// - `OutOfSpace` if guards keep all frames, with nothing changed.
    /// - The device's error if the page cannot be read. All fixes that wait for the page get it,
    ///   and the page is not in the pool.
    /// - The device's error if pages cannot be written back to make room.
    pub async fn fix(self: &Rc<Self>, page: PageNo, intent: Intent) -> Result<Guard<D, R>> {
        let pin = if intent.is_write() { Pin::Update } else { Pin::Read };
        self.fix_as(page, (intent, pin)).await
    }

    /// Keeps `page` in the pool until the hold is dropped. Waits for a free frame, and for the page's
    /// content.
    ///
    /// # Errors
    /// As [`fix`](Self::fix).
    pub async fn hold(self: &Rc<Self>, page: PageNo) -> Result<Hold<D, R>> {
        Ok(Hold::of(self.fix(page, Intent::Read).await?))
    }

    /// Keeps a frame for `page`, which need not be read: it will be overwritten.
    ///
    /// # Errors
    /// As [`fix`](Self::fix), except those of reading.
    pub async fn hold_frame(self: &Rc<Self>, page: PageNo) -> Result<Hold<D, R>> {
        Ok(Hold::of(self.pin(page, (Intent::Read, Pin::Read)).await?))
    }

    async fn fix_as(self: &Rc<Self>, page: PageNo, how: (Intent, Pin)) -> Result<Guard<D, R>> {
        let mut guard = self.pin(page, how).await?;
        guard.enter().await?;
        Ok(guard)
    }

    /// A fix that has a frame, and not the latch yet.
    async fn pin(self: &Rc<Self>, page: PageNo, how: (Intent, Pin)) -> Result<Guard<D, R>> {
        if page.0 >= self.device.pages() {
            let context = format!("page {page} of {} under a buffer", self.device.pages());
            return Err(Error::new(ErrorKind::OutOfRange, context));
        }
        let frame = match self.admit_now(page, how)? {
            Some(frame) => frame,
            None => self.admit_when_free(page, how).await?,
        };
        let guard = Guard::pinned(Rc::clone(self), frame, how);
        if self.options.writers == 0 && self.state.borrow().has_queued() {
            self.write_queued(true).await;
        }
        Ok(guard)
    }

    /// Returns a copy of the current page: fixes it for reading, copies it and unfixes it. Any
    /// number of tasks may read at once; each waits until it gets a frame.
    ///
    /// # Errors
    /// As [`fix`](Self::fix).
    pub async fn read(self: &Rc<Self>, page: PageNo) -> Result<D::Page> {
        if let Some(content) = self.read_now(page) {
            return Ok(content);
        }
        let fixed = self.fix_as(page, (Intent::Read, Pin::Passing)).await?;
        let content = fixed.page().clone();
        Ok(content)
    }

    /// Reads without waiting; `None` if it might have to wait, with nothing changed.
    fn read_now(&self, page: PageNo) -> Option<D::Page> {
        self.read_if(page, Admission::request_ready)
    }

    /// Returns a copy of the current page if it is in the pool, in one step; `None` if reading it may
    /// have to wait, with nothing changed. A page that is [held](Self::hold) is there, unless a guard
    /// for an update excludes readers.
    pub fn read_resident(&self, page: PageNo) -> Option<D::Page> {
        self.read_if(page, Admission::request_resident)
    }

    fn read_if(
        &self,
        page: PageNo,
        request: impl FnOnce(&mut Admission, PageNo) -> Option<u32>,
    ) -> Option<D::Page> {
        // Without writers a fix may have to write.
        if self.options.writers == 0 {
            return None;
        }
        let mut state = self.state.borrow_mut();
        let frame = request(&mut state, page)?;
        self.wake_waiting(&state);
        drop(state);
        self.latch(frame).wake_all();
        Some(self.content(frame).borrow().clone())
    }

    fn admit_now(&self, page: PageNo, how: (Intent, Pin)) -> Result<Option<u32>> {
        let mut state = self.state.borrow_mut();
        if state.frame_waiters > 0 && !state.is_resident(page) {
            return Ok(None);
        }
        let admitted = state.admit(page, how, true);
        self.wake_waiting(&state);
        admitted
    }

    /// Waits for a frame, in order of arrival.
    async fn admit_when_free(&self, page: PageNo, how: (Intent, Pin)) -> Result<u32> {
        let _waiter = FrameWaiter::new(self);
        let _turn = self.frame_turn.acquire(1).await;
        let failures = self.state.borrow().statistics.write_failures;
        loop {
            let room = || self.room_for(page, how, failures);
            match self.room.until(room).await {
                Room::Frame(frame) => return Ok(frame),
                Room::Fail(error) => return Err(error),
                Room::Help => {
                    self.write_next(true).await;
                }
            }
        }
    }

    /// `failures`: number of failed write-backs when the fix began to wait. A new failure ends the
    /// wait if no other write-back is in flight.
    fn room_for(&self, page: PageNo, how: (Intent, Pin), failures: u64) -> Option<Room> {
        let mut state = self.state.borrow_mut();
        let failed = state.statistics.write_failures > failures;
        match state.admit(page, how, !failed) {
            Ok(Some(frame)) => {
                self.wake_waiting(&state);
                return Some(Room::Frame(frame));
            }
            Ok(None) => {}
            Err(error) => return Some(Room::Fail(error)),
        }
        if state.has_queued() {
            if self.options.writers == 0 {
                return Some(Room::Help);
            }
            self.progress.wake_all();
        } else if failed && !state.is_writing() {
            let error = state.write_error.clone()?;
            return Some(Room::Fail(error.wrap("no frame of the buffer can be made free")));
        }
        None
    }

    /// Reads the page in `frame`, which is [`Content::Reading`], for all fixes that wait for it,
    /// and the following pages that are to be prefetched.
    pub(crate) async fn read_into(&self, frame: u32) {
        let mut run = self.spare_run();
        run.frames.push(frame);
        {
            let mut state = self.state.borrow_mut();
            let held = *state.frames.get(frame);
            run.first = held.page;
            if let Some(options) = self.options.prefetch.filter(|_| !held.read_alone) {
                let pages_end = self.device.pages();
                state.begin_prefetch(run.first, pages_end, options, &mut run.frames);
            }
        }
        run.pages.resize(run.frames.len(), self.device.blank());
        let mut turn = ReadTurn { pool: self, run };
        let start_ns = self.runtime.now_ns();
        let (first, out) = (turn.run.first, &mut turn.run.pages);
        let read = self.device.read(first, out).await;
        let time_ns = self.runtime.now_ns().saturating_sub(start_ns);
        turn.end(read, time_ns);
    }
}

/// A read of a page and of prefetched ones. If it is dropped, the next fix reads the page.
struct ReadTurn<'a, D: PageStore, R: Runtime> {
    pool: &'a Pool<D, R>,
    run: Run<D::Page>,
}

impl<D: PageStore, R: Runtime> ReadTurn<'_, D, R> {
    fn end(&mut self, read: Result<()>, time_ns: u64) {
        let (pool, run) = (self.pool, &mut self.run);
        let pages = run.frames.len() as u64;
        let mut state = pool.state.borrow_mut();
        state.statistics.device_reads += 1;
        let failure = match read {
            Ok(()) => {
                for (frame, content) in run.frames.iter().zip(run.pages.drain(..)) {
                    *pool.content(*frame).borrow_mut() = content;
                    state.policy.measured(Physical::Read, time_ns / pages);
                }
                state.statistics.physical_reads += pages;
                None
            }
            // Another page may have caused the failure: the waiting fixes read this page alone.
            Err(_) if pages > 1 => {
                state.frames.get_mut(run.frames[0]).read_alone = true;
                return;
            }
            Err(error) => Some(error.wrap(format!("reading page {} into the buffer", run.first))),
        };
        for frame in &run.frames[1..] {
            state.end_prefetch(*frame, true);
        }
        state.end_read(run.frames[0], failure);
    }
}

impl<D: PageStore, R: Runtime> Drop for ReadTurn<'_, D, R> {
    fn drop(&mut self) {
        let (pool, run) = (self.pool, &mut self.run);
        let mut state = pool.state.borrow_mut();
        for (at, frame) in run.frames.iter().enumerate() {
            if state.frames.get(*frame).content != Content::Reading {
                continue;
            }
            if at == 0 {
                state.frames.get_mut(*frame).content = Content::Absent;
            } else {
                state.end_prefetch(*frame, false);
            }
        }
        pool.wake_waiting(&state);
        drop(state);
        run.frames.iter().for_each(|frame| pool.latch(*frame).wake_all());
        pool.recycle(run);
    }
}

/// Counts a fix that waits for a frame, until dropped.
struct FrameWaiter<'a, D: PageStore, R: Runtime>(&'a Pool<D, R>);

impl<'a, D: PageStore, R: Runtime> FrameWaiter<'a, D, R> {
    fn new(pool: &'a Pool<D, R>) -> Self {
        let mut state = pool.state.borrow_mut();
        state.frame_waiters += 1;
        state.statistics.free_frame_waits += 1;
        drop(state);
        FrameWaiter(pool)
    }
}

impl<D: PageStore, R: Runtime> Drop for FrameWaiter<'_, D, R> {
    fn drop(&mut self) {
        self.0.state.borrow_mut().frame_waiters -= 1;
    }
}
