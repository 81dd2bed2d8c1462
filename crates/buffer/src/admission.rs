//! The effects of a request on frames: the policy is called once, and its effects are applied. No
//! I/O, and no await.
//!
//! Policy and frames may disagree for a while. Each difference is resolved as follows:
//!
//! - A dirty page that the policy evicted must be written back, and keeps its frame until then. If
//!   it is requested again, the policy caches it again, in the state that the request gives it. The
//!   write-back stays due, as the policy relies on it.
//! - A page that is fixed for an update is dirty for the policy at once, but in its frame only from
//!   the unfix on. If the policy evicts it or requests a write meanwhile, the write is due at the
//!   last unfix.
//! - A page that is updated again before its due write-back began is written once for both updates.
//!   The policy still counts it as dirty, and its next write-back finds nothing to do.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PageNo, Result};
use tantalum_policy::page_table::NO_FRAME;
use tantalum_policy::{Effect, Policy, Request};

use crate::frames::{Content, Frames, Pin};
use crate::options::{Intent, PoolOptions};
use crate::prefetch::Prefetch;
use crate::statistics::{ClusterCounter, PoolStatistics};

/// Policy, frames and counters: the state of a pool without contents, device and clock.
pub(crate) struct Admission {
    pub policy: Box<dyn Policy>,
    pub prefetch: Prefetch,
    /// Pages written together in one batch; 0 if pages are written as they become due.
    batch_pages: u32,
    /// Number of free frames that prefetching must not use.
    pub frames_kept: u32,
    pub frames: Frames,
    pub statistics: PoolStatistics,
    pub write_switches: ClusterCounter,
    request_switches: ClusterCounter,
    /// Fixes that wait for a frame.
    pub frame_waiters: u32,
    /// Pages that the flush in progress waits for.
    pub flush_left: u32,
    /// A write that the flush waited for failed.
    pub flush_failed: bool,
    /// The error of the last failed write-back.
    pub write_error: Option<Error>,
    /// The read errors of the frames with [`Content::Failed`].
    pub read_errors: BTreeMap<u32, Error>,
    effects: Vec<Effect>,
    /// The frames of a flush, with their page numbers, for sorting.
    pub flush_order: Vec<(u64, u32)>,
}

/// The next step of a fix that has a frame.
pub(crate) enum Step {
    /// It holds the latch, and the content is present.
    Enter,
    /// It must read the page, for all fixes that wait for it.
    Read,
    /// The page could not be read.
    Fail(Error),
}

impl Admission {
    pub(crate) fn new(policy: Box<dyn Policy>, frames: u32, options: &PoolOptions) -> Self {
        Admission {
            prefetch: Prefetch::default(),
            batch_pages: options.batch_pages.unwrap_or(0),
            frames_kept: options.transit_frames(policy.capacity_pages()) / 2,
            policy,
            frames: Frames::new(frames),
            statistics: PoolStatistics::default(),
            write_switches: ClusterCounter::new(options.cluster_pages),
            request_switches: ClusterCounter::new(options.cluster_pages),
            frame_waiters: 0,
            flush_left: 0,
            flush_failed: false,
            write_error: None,
            read_errors: BTreeMap::new(),
            effects: Vec::with_capacity(64),
            flush_order: Vec::new(),
        }
    }

    /// Serves a request and pins the frame of its page; `None` if no frame is free, with nothing
    /// changed. `retry`: also retry failed write-backs to make room.
    ///
    /// # Errors
    /// `OutOfSpace` if guards keep all frames, with nothing changed.
    pub(crate) fn admit(
        &mut self,
        page: PageNo,
        (intent, pin): (Intent, Pin),
        retry: bool,
    ) -> Result<Option<u32>> {
        let found = self.frames.find(page);
        if found == NO_FRAME && self.frames.free_count() == 0 && !self.make_room(retry)? {
            return Ok(None);
        }
        let hit = self.ask(page, intent);
        let frame = if found == NO_FRAME { self.frames.take_free(page) } else { found };
        let prefetched = self.frames.get(frame).prefetched;
        self.frames.set_prefetched(frame, false);
        self.frames.get_mut(frame).cached = true;
        self.statistics.prefetch_hits += u64::from(prefetched);
        self.statistics.rescues += u64::from(!hit && found != NO_FRAME && !prefetched);
        self.frames.pin(frame, pin);
        Ok(Some(frame))
    }

    /// Serves a request for reading if a fix would not have to wait: the page is cached, and no fix
    /// is changing it or waiting to change it. Returns the frame; `None` otherwise, with nothing
    /// changed.
    pub(crate) fn request_ready(&mut self, page: PageNo) -> Option<u32> {
        let frame = self.frames.find(page);
        if frame == NO_FRAME || !self.frames.get(frame).is_ready() {
            return None;
        }
        let hit = self.ask(page, Intent::Read);
        debug_assert!(hit && self.frames.get(frame).is_ready(), "page {page} is cached");
        Some(frame)
    }

    /// Serves a request for reading if the page has a frame with its content and no fix is changing
    /// it, even if the policy evicted it while it was pinned. Returns the frame; `None` otherwise, with
    /// nothing changed.
    pub(crate) fn request_resident(&mut self, page: PageNo) -> Option<u32> {
        if let Some(frame) = self.request_ready(page) {
            return Some(frame);
        }
        let frame = self.frames.find(page);
        if frame == NO_FRAME || !self.frames.get(frame).is_readable() {
            return None;
        }
        let admitted = self.admit(page, (Intent::Read, Pin::Passing), true).ok().flatten()?;
        self.unfix(admitted, Pin::Passing, false, false, false);
        Some(admitted)
    }

    /// Whether `page` has a frame.
    pub(crate) fn is_resident(&self, page: PageNo) -> bool {
        self.frames.find(page) != NO_FRAME
    }

    /// Whether write-backs are in flight or about to be.
    pub(crate) fn is_writing(&self) -> bool {
        self.frames.writing > 0 || self.has_queued()
    }

    /// Whether a page waits to be written.
    pub(crate) fn has_queued(&self) -> bool {
        self.frames.first_queued() != NO_FRAME
    }

    /// Whether there is something to write now: a page, or a batch. A batch that is not full is
    /// written only if a task waits for it.
    pub(crate) fn is_due(&self) -> bool {
        let frames = &self.frames;
        let stuck = self.frame_waiters > 0 && frames.writing == 0 && frames.free_count() == 0;
        let any = self.flush_left > 0 || stuck;
        frames.queued >= self.batch_pages.max(1) || (any && frames.queued > 0)
    }

    /// Calls the policy and applies its effects; returns whether the policy had cached the page.
    fn ask(&mut self, page: PageNo, intent: Intent) -> bool {
        let write = intent.is_write();
        let mut effects = std::mem::take(&mut self.effects);
        let hit = self.policy.access(Request::new(page, write), &mut effects);
        let counts = &mut self.statistics;
        counts.requests += 1;
        counts.request_cluster_switches += self.request_switches.switch(page);
        counts.hits += u64::from(hit);
        counts.misses += u64::from(!hit);
        counts.write_misses += u64::from(!hit && write);
        for effect in effects.drain(..) {
            self.apply(effect);
        }
        self.effects = effects;
        hit
    }

    fn apply(&mut self, effect: Effect) {
        self.statistics.evictions += u64::from(effect.leaves());
        self.statistics.write_backs += u64::from(effect.writes());
        let frame = self.frames.find(effect.page());
        if frame == NO_FRAME {
            // The frame was reused for another page.
            return;
        }
        let held = self.frames.get_mut(frame);
        held.cached &= !effect.leaves();
        // Regardless of the policy, a dirty page is never dropped unwritten.
        if held.update_pins > 0 {
            held.write_due_at_unfix |= effect.writes();
        } else if held.dirty {
            self.frames.request_write(frame);
        }
        self.release(frame);
    }

    /// Frees a frame if none is free, or requests a write that will free one; returns whether one
    /// is free.
    fn make_room(&mut self, retry: bool) -> Result<bool> {
        if self.give_up_prefetched() {
            return Ok(true);
        }
        if self.frames.kept == self.frames.count() {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                format!("all {} frames of the buffer are pinned", self.frames.count()),
            ));
        }
        if self.is_writing() {
            return Ok(false);
        }
        if retry && self.frames.failed > 0 {
            self.retry_failed();
        }
        // No write is in flight, so every transit frame is pinned or cannot be written. If the
        // policy had to choose another victim, its decisions would depend on which pages are
        // pinned. So the frame of a clean page is taken, and the policy still counts that page as
        // cached.
        let clean = self.frames.sweep(|frame| frame.cached && frame.is_idle());
        if clean != NO_FRAME {
            self.frames.get_mut(clean).cached = false;
            self.statistics.frames_taken += 1;
            return Ok(self.release(clean));
        }
        let dirty = self.frames.sweep(|frame| frame.pins == 0 && frame.dirty && !frame.failed);
        if dirty != NO_FRAME {
            self.frames.get_mut(dirty).ahead = true;
            self.frames.request_write(dirty);
        }
        Ok(false)
    }

    /// Requests a write of every page whose write-back failed.
    pub(crate) fn retry_failed(&mut self) {
        for frame in self.frames.numbers() {
            if self.frames.get(frame).failed {
                self.frames.request_write(frame);
            }
        }
    }

    /// Lets a fix with `intent` proceed; `None` if it must wait. `waits`: whether it is counted in
    /// `updaters_waiting`.
    pub(crate) fn enter(&mut self, frame: u32, intent: Intent, waits: &mut bool) -> Option<Step> {
        let held = self.frames.get_mut(frame);
        if held.content == Content::Failed {
            let error = self.read_errors.get(&frame).cloned();
            let lost = || Error::new(ErrorKind::Closed, "the page could not be read");
            return Some(Step::Fail(error.unwrap_or_else(lost)));
        }
        if held.content == Content::Absent && !held.updating && intent != Intent::Overwrite {
            held.content = Content::Reading;
            return Some(Step::Read);
        }
        let there = held.content == Content::Ready
            || (held.content == Content::Absent && intent == Intent::Overwrite);
        if !intent.is_write() {
            let free = !held.updating && held.updaters_waiting == 0;
            held.readers += u32::from(there && free);
            return (there && free).then_some(Step::Enter);
        }
        let free = !held.updating && held.readers == 0;
        if there && free {
            held.updating = true;
            held.updaters_waiting -= u32::from(std::mem::take(waits));
            // It is queued again at the unfix: a page must not be written in the middle of a
            // change.
            self.frames.dequeue(frame);
            return Some(Step::Enter);
        }
        held.updaters_waiting += u32::from(!std::mem::replace(waits, true));
        None
    }

    /// Ends the use of the latch by a fix for reading, which keeps its pin.
    pub(crate) fn leave(&mut self, frame: u32) {
        self.frames.get_mut(frame).readers -= 1;
    }

    /// Ends a read of the page in `frame`.
    pub(crate) fn end_read(&mut self, frame: u32, failure: Option<Error>) {
        let held = self.frames.get_mut(frame);
        let Some(error) = failure else {
            held.content = Content::Ready;
            return;
        };
        held.content = Content::Failed;
        held.cached = false;
        let page = held.page;
        self.statistics.read_failures += 1;
        self.policy.forget(page);
        self.frames.unlist(frame);
        self.read_errors.insert(frame, error);
        self.release(frame);
    }

    /// Ends a fix. `entered`: it held the latch; `updated`: it changed the page; `waits`: as in
    /// [`enter`](Self::enter).
    pub(crate) fn unfix(
        &mut self,
        frame: u32,
        pin: Pin,
        entered: bool,
        updated: bool,
        waits: bool,
    ) {
        let write = pin == Pin::Update;
        let held = self.frames.get_mut(frame);
        held.readers -= u32::from(entered && !write);
        held.updating &= !(entered && write);
        held.updaters_waiting -= u32::from(waits);
        self.frames.unpin(frame, pin);
        if updated {
            self.frames.get_mut(frame).content = Content::Ready;
            self.frames.set_dirty(frame, true);
        }
        if write {
            self.end_update(frame);
        }
        self.release(frame);
    }

    /// Reconciles policy and frame after a fix for an update.
    fn end_update(&mut self, frame: u32) {
        let held = *self.frames.get(frame);
        if held.write_due {
            self.frames.request_write(frame);
        }
        if held.update_pins > 0 {
            // The unfix of the last update requests one write for all of them.
            return;
        }
        self.frames.get_mut(frame).write_due_at_unfix = false;
        if held.dirty && (!held.cached || held.write_due_at_unfix) {
            self.frames.request_write(frame);
        }
        if held.cached && !held.dirty && !held.writing {
            // The policy counted an update that did not happen.
            self.policy.cleaned(held.page);
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let effects = self.effects.capacity() * size_of::<Effect>();
        let scratch = self.flush_order.capacity() * size_of::<(u64, u32)>();
        self.policy.memory_bytes() + self.frames.memory_bytes() + (effects + scratch) as u64
    }

    /// Frees `frame` if nothing keeps it.
    pub(crate) fn release(&mut self, frame: u32) -> bool {
        let freed = self.frames.release(frame);
        if freed && !self.read_errors.is_empty() {
            self.read_errors.remove(&frame);
        }
        freed
    }

    /// Panics if policy and frames contradict each other.
    pub(crate) fn validate(&self) {
        self.frames.validate();
        let mut dirty = Vec::new();
        self.policy.write_candidates(usize::MAX, &mut dirty);
        dirty.sort_unstable();
        for number in self.frames.numbers() {
            let frame = self.frames.get(number);
            assert!(!frame.cached || self.policy.contains(frame.page), "{frame:?}");
            let pending = frame.write_due || frame.writing || frame.failed || frame.update_pins > 0;
            let known = dirty.binary_search(&frame.page).is_ok();
            assert!(!frame.dirty || pending || known, "the policy has it clean: {frame:?}");
        }
    }
}
