//! The read cache in front of a device: frames, the reads and the changes in flight.
use std::cell::{Cell, RefCell};
use tantalum_base::{FastMap, Limits, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_policy::Policy;
use tantalum_policy::page_table::NO_FRAME;
use tantalum_runtime::sync::WaitQueue;

use crate::admission::Admission;
use crate::frames::{Content, Pin};
use crate::in_flight::{InFlight, Ticket};
use crate::options::{Intent, PoolOptions};
use crate::ranges::Ranges;
use crate::statistics::PoolStatistics;

/// The cache of a [`Buffered`](crate::Buffered) device.
pub(crate) struct ReadCache<P> {
    pub state: RefCell<Admission>,
    contents: Box<[RefCell<P>]>,
    in_flight: RefCell<InFlight>,
    /// Woken when a read has ended.
    ended: WaitQueue,
    /// The pages that each open transaction wrote, which its commit changes.
    pub written: RefCell<FastMap<TxId, Written>>,
    /// An entry of `written` was dropped although its transaction may still be committed.
    pub lost_writes: Cell<bool>,
}

/// The pages that a transaction wrote.
#[derive(Default)]
pub(crate) struct Written {
    pub ranges: Ranges,
    /// A commit or abort was issued: the transaction may have ended.
    pub ending: bool,
}

impl<P: Payload> ReadCache<P> {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Self {
        // Nothing is pinned or dirty, so one more frame suffices, for the incoming page.
        let frames = policy.capacity_pages() + 1;
        ReadCache {
            state: RefCell::new(Admission::new(policy, frames, &PoolOptions::default())),
            contents: (0..frames).map(|_| RefCell::new(P::zero())).collect(),
            in_flight: RefCell::default(),
            ended: WaitQueue::new("a read of the same page"),
            written: RefCell::default(),
            lost_writes: Cell::new(false),
        }
    }

    /// Panics if the cache contradicts itself.
    pub(crate) fn validate(&self, limits: &Limits) {
        let state = self.state.borrow();
        state.validate();
        let (open, open_max) = (self.written.borrow().len(), limits.transactions_max);
        assert!(open <= 2 * open_max as usize, "{open} transactions of {open_max} are known");
        let ranges_max = limits.transaction_pages_max as usize;
        let written = self.written.borrow();
        assert!(written.values().all(|written| written.ranges.iter().count() <= ranges_max));
        assert_eq!((state.frames.dirty, state.frames.pinned), (0, 0));
        if self.in_flight.borrow().is_empty() {
            let pages = state.frames.numbers().map(|number| state.frames.get(number));
            for frame in pages.filter(|frame| frame.listed) {
                assert_eq!(frame.content, Content::Ready, "{frame:?}");
            }
        }
    }

    /// The content of `page` if it is cached; the policy counts a read.
    fn hit(&self, page: PageNo) -> Option<P> {
        let mut state = self.state.borrow_mut();
        let frame = state.frames.find(page);
        if frame == NO_FRAME || state.frames.get(frame).content != Content::Ready {
            return None;
        }
        state.admit(page, (Intent::Read, Pin::Read), false).ok()?;
        state.frames.unpin(frame, Pin::Read);
        Some(self.contents[frame as usize - 1].borrow().clone())
    }

    /// Caches `page`; the policy counts a read.
    fn install(&self, page: PageNo, content: &P) {
        let mut state = self.state.borrow_mut();
        if let Ok(Some(frame)) = state.admit(page, (Intent::Read, Pin::Read), false) {
            state.frames.unpin(frame, Pin::Read);
            state.frames.get_mut(frame).content = Content::Ready;
            *self.contents[frame as usize - 1].borrow_mut() = content.clone();
        }
    }

    /// Calls `act` with the frame of every page of `range` that has one.
    fn each_frame(&self, range: PageRange, mut act: impl FnMut(&mut Admission, u32)) {
        let mut state = self.state.borrow_mut();
        if range.pages > u64::from(state.frames.count()) {
            for frame in state.frames.numbers() {
                let held = state.frames.get(frame);
                if held.listed && range.contains(held.page) {
                    act(&mut state, frame);
                }
            }
        } else {
            for page in range.iter() {
                match state.frames.find(page) {
                    NO_FRAME => {}
                    frame => act(&mut state, frame),
                }
            }
        }
    }

    /// Begins a change of `ranges`. Until it ends, the cache does not serve these pages, and reads
    /// do not cache them.
    pub(crate) fn begin_change(
        &self,
        ranges: impl Iterator<Item = PageRange> + Clone,
    ) -> Change<'_, P> {
        for range in ranges.clone() {
            self.each_frame(range, |state, frame| {
                state.frames.get_mut(frame).content = Content::Absent;
            });
        }
        let ticket = self.in_flight.borrow_mut().begin_change(ranges);
        Change { cache: self, ticket: Some(ticket) }
    }

    /// Drops every page of `range` from the cache.
    fn discard(&self, range: PageRange) {
        self.each_frame(range, |state, frame| {
            let page = state.frames.get(frame).page;
            state.policy.forget(page);
            state.frames.get_mut(frame).cached = false;
            state.release(frame);
        });
    }

    /// Waits while a read is in flight that will cache `page`; returns whether there was one.
    async fn wait_for(&self, page: PageNo) -> bool {
        let will_be_cached = || self.in_flight.borrow().will_be_cached(page);
        if !will_be_cached() {
            return false;
        }
        self.ended.until(|| (!will_be_cached()).then_some(())).await;
        true
    }

    /// The leading pages from `first` to `end` that are neither cached nor being read.
    fn missing(&self, first: PageNo, end: PageNo) -> PageRange {
        let (state, in_flight) = (self.state.borrow(), self.in_flight.borrow());
        let is_missing = |page: &PageNo| {
            let frame = state.frames.find(*page);
            let ready = frame != NO_FRAME && state.frames.get(frame).content == Content::Ready;
            !ready && !in_flight.will_be_cached(*page)
        };
        let pages = (first.0..end.0).map(PageNo).take_while(is_missing).count() as u64;
        PageRange::new(first, pages)
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut PoolStatistics)) {
        count(&mut self.state.borrow_mut().statistics);
    }

    /// Reads from cache and device, all pages as of one moment: if a change of them was in flight
    /// meanwhile, all are read again in one command of the device.
    pub(crate) async fn read<D: PageDevice<Page = P>>(
        &self,
        device: &D,
        first: PageNo,
        out: &mut [P],
    ) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        let end = range.end();
        let mut page = first;
        let mut watch = None;
        while page < end {
            let at = (page.0 - first.0) as usize;
            if let Some(content) = self.hit(page) {
                out[at] = content;
                page.0 += 1;
                continue;
            }
            let missing = self.missing(page, end);
            if missing == range {
                return self.read_through(device, range, out).await;
            }
            // The watch must begin before the first await: the cached pages so far were copied in
            // one step.
            if range.pages > 1 {
                watch.get_or_insert_with(|| Reading::watch(self, range));
            }
            if self.wait_for(page).await {
                continue;
            }
            let out = &mut out[at..at + missing.pages as usize];
            self.read_through(device, missing, out).await?;
            page = missing.end();
        }
        // If undisturbed, no page changed while the pages were collected.
        let disturbed = watch.is_some_and(Reading::end);
        if disturbed { self.read_from(device, first, out).await } else { Ok(()) }
    }

    /// Reads from the device, and counts it.
    async fn read_from<D: PageDevice<Page = P>>(
        &self,
        device: &D,
        first: PageNo,
        out: &mut [P],
    ) -> Result<()> {
        let read = device.read(first, out, None).await;
        self.count(|counts| {
            counts.device_reads += 1;
            match &read {
                Ok(()) => counts.physical_reads += out.len() as u64,
                Err(_) => counts.read_failures += 1,
            }
        });
        read
    }

    /// Reads missing pages and caches them, unless a change of them was in flight meanwhile.
    async fn read_through<D: PageDevice<Page = P>>(
        &self,
        device: &D,
        range: PageRange,
        out: &mut [P],
    ) -> Result<()> {
        let ticket = self.in_flight.borrow_mut().begin_read(range);
        let reading = Reading { cache: self, ticket: Some(ticket) };
        let read = self.read_from(device, range.first, out).await;
        let disturbed = reading.end();
        if read.is_ok() && !disturbed {
            range.iter().zip(&*out).for_each(|(page, content)| self.install(page, content));
        }
        // Tasks are woken after the pages are cached, so that they find them.
        self.ended.wake_all();
        read
    }
}

/// A read in flight.
struct Reading<'a, P> {
    cache: &'a ReadCache<P>,
    ticket: Option<Ticket>,
}

impl<'a, P> Reading<'a, P> {
    /// Watches for changes of `range` during a read that collects its pages from several places.
    fn watch(cache: &'a ReadCache<P>, range: PageRange) -> Self {
        let ticket = cache.in_flight.borrow_mut().begin_watch(range);
        Reading { cache, ticket: Some(ticket) }
    }

    /// Ends the read; returns whether a change of its pages was in flight meanwhile.
    fn end(mut self) -> bool {
        let mut disturbed = false;
        if let Some(ticket) = self.ticket.take() {
            self.cache.in_flight.borrow_mut().end(ticket, |_, by_change| disturbed |= by_change);
        }
        disturbed
    }
}

impl<P> Drop for Reading<'_, P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.cache.in_flight.borrow_mut().end(ticket, |_, _| {});
            self.cache.ended.wake_all();
        }
    }
}

/// A change in flight. At its end its pages leave the cache. If it is dropped before that, the
/// device may still do the change.
pub(crate) struct Change<'a, P: Payload> {
    cache: &'a ReadCache<P>,
    ticket: Option<Ticket>,
}

impl<P: Payload> Change<'_, P> {
    /// Ends the change, which the device has completed or refused.
    pub(crate) fn end(mut self, is_done: bool) {
        let Some(ticket) = self.ticket.take() else { return };
        let (cache, mut in_flight) = (self.cache, self.cache.in_flight.borrow_mut());
        if is_done {
            in_flight.end_done(ticket, |range, _| cache.discard(range));
        } else {
            in_flight.end(ticket, |range, _| cache.discard(range));
        }
    }

    /// Ends a write of `pages` from `first` on, and caches them if no other change was in flight.
    pub(crate) fn written(mut self, first: PageNo, pages: &[P]) {
        let Some(ticket) = self.ticket.take() else { return };
        let (cache, mut known) = (self.cache, true);
        cache.in_flight.borrow_mut().end_done(ticket, |_, disturbed| known &= !disturbed);
        if known {
            let numbers = (first.0..).map(PageNo);
            numbers.zip(pages).for_each(|(page, content)| cache.install(page, content));
        } else {
            cache.discard(PageRange::new(first, pages.len() as u64));
        }
    }
}

impl<P: Payload> Drop for Change<'_, P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let cache = self.cache;
            cache.in_flight.borrow_mut().give_up(ticket, |range| cache.discard(range));
        }
    }
}
