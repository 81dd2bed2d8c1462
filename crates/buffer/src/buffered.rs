//! A device whose reads are cached and whose changes go through.
//!
//! It promises what the device below promises, as nothing is acknowledged that this has not
//! acknowledged, and everything reaches it in the order in which it was issued. A read that mixes
//! cached pages with others shows one moment all the same: where a change came between, all of it is
//! read again in one command of the device below. What a host would
//! win by write-back, rewrites that meet between two flushes, is the work of the device's write
//! cache, which knows how to keep its order.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{FastMap, Limits, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_policy::Policy;
use tantalum_policy::page_table::NO_FRAME;
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{LifeCycle, forward_life_cycle};

use crate::admission::Admission;
use crate::frames::Content;
use crate::in_flight::{InFlight, Ticket};
use crate::options::{Intent, PoolOptions};
use crate::ranges::Ranges;
use crate::statistics::PoolStatistics;

/// A [`PageDevice`] with a read cache in front. Without a policy there is no cache, and every
/// command passes through.
pub struct Buffered<D: PageDevice> {
    device: Rc<D>,
    cache: Option<Cache<D::Page>>,
}

struct Cache<P> {
    state: RefCell<Admission>,
    contents: Box<[RefCell<P>]>,
    in_flight: RefCell<InFlight>,
    /// A read has ended.
    ended: WaitQueue,
    /// What the open transactions wrote.
    written: RefCell<FastMap<TxId, Written>>,
    /// Some of them was given up, and what it wrote is not known any more.
    forgot: Cell<bool>,
}

/// What a transaction wrote.
#[derive(Default)]
struct Written {
    ranges: Ranges,
    /// It is being committed or aborted, or that was given up: it may be gone.
    ending: bool,
}

impl<D: PageDevice> Buffered<D> {
    /// `device` behind a cache with the frames of `policy`, which must be empty. Nobody else may
    /// change the device meanwhile.
    pub fn new(device: Rc<D>, policy: Option<Box<dyn Policy>>) -> Self {
        let cache = policy.map(|policy| {
            // Nothing is pinned and nothing dirty: one more is for the page that comes in.
            let frames = policy.capacity_pages() + 1;
            Cache {
                state: RefCell::new(Admission::new(policy, frames, &PoolOptions::default())),
                contents: (0..frames).map(|_| RefCell::new(D::Page::zero())).collect(),
                in_flight: RefCell::default(),
                ended: WaitQueue::new("a read of the same page"),
                written: RefCell::default(),
                forgot: Cell::new(false),
            }
        });
        Buffered { device, cache }
    }

    /// The device below.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// Counters of the cache, where there is one: requests are pages read outside of transactions
    /// and pages written; a write hits where its page was cached. The policy is told of reads only:
    /// no page is ever dirty.
    pub fn statistics(&self) -> Option<PoolStatistics> {
        self.cache.as_ref().map(|cache| cache.state.borrow().statistics)
    }

    /// Frames of the policy; 0 without a cache.
    pub fn capacity_pages(&self) -> u32 {
        let capacity = |cache: &Cache<_>| cache.state.borrow().policy.capacity_pages();
        self.cache.as_ref().map_or(0, capacity)
    }

    /// Panics where the cache contradicts itself.
    pub fn validate_cache(&self) {
        if let Some(cache) = &self.cache {
            let state = cache.state.borrow();
            state.validate();
            let (open, open_max) = (cache.written.borrow().len(), self.limits().transactions_max);
            assert!(open <= 2 * open_max as usize, "{open} transactions of {open_max} are known");
            let ranges_max = self.limits().transaction_pages_max as usize;
            let written = cache.written.borrow();
            assert!(written.values().all(|written| written.ranges.iter().count() <= ranges_max));
            assert_eq!((state.frames.dirty, state.frames.pinned), (0, 0));
            if cache.in_flight.borrow().is_empty() {
                let pages = state.frames.numbers().map(|number| state.frames.get(number));
                for frame in pages.filter(|frame| frame.listed) {
                    assert_eq!(frame.content, Content::Ready, "{frame:?}");
                }
            }
        }
    }
}

impl<P: Payload> Cache<P> {
    /// The content of `page` where it is cached; the policy is told.
    fn hit(&self, page: PageNo) -> Option<P> {
        let mut state = self.state.borrow_mut();
        let frame = state.frames.find(page);
        if frame == NO_FRAME || state.frames.get(frame).content != Content::Ready {
            return None;
        }
        state.admit(page, Intent::Read, false).ok()?;
        state.frames.unpin(frame, false);
        Some(self.contents[frame as usize - 1].borrow().clone())
    }

    /// Caches `page`; the policy is told.
    fn install(&self, page: PageNo, content: &P) {
        let mut state = self.state.borrow_mut();
        if let Ok(Some(frame)) = state.admit(page, Intent::Read, false) {
            state.frames.unpin(frame, false);
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

    /// Serves no page of `ranges` from the cache, nor caches a read of one, until the change ends.
    fn begin_change(&self, ranges: impl Iterator<Item = PageRange> + Clone) -> Change<'_, P> {
        for range in ranges.clone() {
            self.each_frame(range, |state, frame| {
                state.frames.get_mut(frame).content = Content::Absent;
            });
        }
        let ticket = self.in_flight.borrow_mut().begin_change(ranges);
        Change { cache: self, ticket: Some(ticket) }
    }

    /// Drops every page of `range`.
    fn discard(&self, range: PageRange) {
        self.each_frame(range, |state, frame| {
            let page = state.frames.get(frame).page;
            state.policy.forget(page);
            state.frames.get_mut(frame).cached = false;
            state.release(frame);
        });
    }

    /// Waits while a read is in flight that brings `page` in. Whether there was one.
    async fn wait_for(&self, page: PageNo) -> bool {
        let is_coming = || self.in_flight.borrow().is_coming(page);
        if !is_coming() {
            return false;
        }
        self.ended.until(|| (!is_coming()).then_some(())).await;
        true
    }

    /// From `first` on, the pages before `end` that only the device has and nobody brings.
    fn missing(&self, first: PageNo, end: PageNo) -> PageRange {
        let (state, in_flight) = (self.state.borrow(), self.in_flight.borrow());
        let is_missing = |page: &PageNo| {
            let frame = state.frames.find(*page);
            let ready = frame != NO_FRAME && state.frames.get(frame).content == Content::Ready;
            !ready && !in_flight.is_coming(*page)
        };
        let pages = (first.0..end.0).map(PageNo).take_while(is_missing).count() as u64;
        PageRange::new(first, pages)
    }

    fn count(&self, count: impl FnOnce(&mut PoolStatistics)) {
        count(&mut self.state.borrow_mut().statistics);
    }

    async fn read<D: PageDevice<Page = P>>(
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
            // From the first await on; the cached pages so far were taken in the same step.
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
        // Undisturbed, no page changed from the first to the last that was taken.
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

    /// Reads what nobody has and caches it where it is known to be the newest.
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
        // Only now: who waited for it finds it cached.
        self.ended.wake_all();
        read
    }
}

/// A read in flight.
struct Reading<'a, P> {
    cache: &'a Cache<P>,
    ticket: Option<Ticket>,
}

impl<'a, P> Reading<'a, P> {
    /// A read of `range` that takes its pages from several places and brings none.
    fn watch(cache: &'a Cache<P>, range: PageRange) -> Self {
        let ticket = cache.in_flight.borrow_mut().begin_watch(range);
        Reading { cache, ticket: Some(ticket) }
    }

    /// Whether a change was in flight together with it.
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

/// A change in flight. Its pages leave the cache at its end. Dropped before that it was given up:
/// the device may do it still.
struct Change<'a, P: Payload> {
    cache: &'a Cache<P>,
    ticket: Option<Ticket>,
}

impl<P: Payload> Change<'_, P> {
    /// The device has done it, or refused it.
    fn end(mut self, is_done: bool) {
        let Some(ticket) = self.ticket.take() else { return };
        let (cache, mut in_flight) = (self.cache, self.cache.in_flight.borrow_mut());
        if is_done {
            in_flight.end_done(ticket, |range, _| cache.discard(range));
        } else {
            in_flight.end(ticket, |range, _| cache.discard(range));
        }
    }

    /// The write of `pages` from `first` on was done.
    fn written(mut self, first: PageNo, pages: &[P]) {
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

/// The pages as ranges, where neighbours follow each other.
fn ranges_of(pages: impl Iterator<Item = PageNo>) -> Vec<PageRange> {
    let mut ranges: Vec<PageRange> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(range) if range.end() == page => range.pages += 1,
            _ => ranges.push(PageRange::new(page, 1)),
        }
    }
    ranges
}

impl<D: LifeCycle> LifeCycle for Buffered<D> {
    forward_life_cycle!(device);

    fn validate(&self) {
        self.validate_cache();
        self.device.validate();
    }
}

impl<D: PageDevice> PageDevice for Buffered<D> {
    type Page = D::Page;

    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page], tx: Option<TxId>) -> Result<()> {
        // A transaction sees what it wrote, which the device knows.
        match &self.cache {
            Some(cache) if tx.is_none() => {
                self.limits().check_range(PageRange::new(first, out.len() as u64))?;
                cache.read(&*self.device, first, out).await
            }
            _ => self.device.read(first, out, tx).await,
        }
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        let Some(cache) = &self.cache else { return self.device.write(first, pages, tx).await };
        self.limits().check_range(range)?;
        if let Some(tx) = tx {
            // Noted before: a write that fails leaves nothing, one that is given up may not.
            if let Some(written) = cache.written.borrow_mut().get_mut(&tx) {
                written.ranges.insert(range);
                // More than the transaction may write are of writes that were refused.
                written.ranges.limit(self.limits().transaction_pages_max as usize);
            }
            return self.device.write(first, pages, Some(tx)).await;
        }
        let change = cache.begin_change(std::iter::once(range));
        let done = self.device.write(first, pages, None).await;
        if done.is_err() {
            change.end(false);
            return done;
        }
        cache.count(|counts| {
            counts.device_writes += 1;
            counts.physical_writes += range.pages;
        });
        change.written(first, pages);
        Ok(())
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let Some(cache) = &self.cache else {
            return self.device.write_scattered(pages, ended).await;
        };
        self.limits().check_scattered(&pages)?;
        let ranges = ranges_of(pages.iter().map(|(page, _)| *page));
        let change = cache.begin_change(ranges.into_iter());
        let done = self.device.write_scattered(pages, ended).await;
        change.end(done.is_ok());
        done
    }

    async fn flush(&self) -> Result<()> {
        self.device.flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        let Some(cache) = &self.cache else { return self.device.trim(range).await };
        self.limits().check_range(range)?;
        let change = cache.begin_change(std::iter::once(range));
        let done = self.device.trim(range).await;
        change.end(done.is_ok());
        done
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        let Some(cache) = &self.cache else { return self.device.share(pairs).await };
        self.limits().check_share(pairs)?;
        let lefts = ranges_of(pairs.iter().map(|(left, _)| *left));
        let change = cache.begin_change(lefts.iter().copied());
        let done = self.device.share(pairs).await;
        change.end(done.is_ok());
        done
    }

    async fn begin(&self) -> Result<TxId> {
        let tx = self.device.begin().await?;
        if let Some(cache) = &self.cache {
            let written = &mut *cache.written.borrow_mut();
            if written.len() >= 2 * self.limits().transactions_max as usize {
                written.retain(|_, written| !written.ending);
                cache.forgot.set(true);
            }
            written.insert(tx, Written::default());
        }
        Ok(tx)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        let Some(cache) = &self.cache else { return self.device.commit(tx).await };
        let all = [PageRange::new(PageNo(0), self.limits().pages)];
        let change = {
            let mut written = cache.written.borrow_mut();
            match written.get_mut(&tx) {
                Some(written) => {
                    written.ending = true;
                    cache.begin_change(written.ranges.iter())
                }
                None if cache.forgot.get() => cache.begin_change(all.iter().copied()),
                None => cache.begin_change(std::iter::empty()),
            }
        };
        let done = self.device.commit(tx).await;
        change.end(done.is_ok());
        // However it ended, the transaction has, but where another call is committing it.
        cache.written.borrow_mut().remove(&tx);
        done
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        if let Some(cache) = &self.cache {
            cache.written.borrow_mut().entry(tx).and_modify(|written| written.ending = true);
        }
        let aborted = self.device.abort(tx).await;
        if let Some(cache) = &self.cache {
            cache.written.borrow_mut().remove(&tx);
        }
        aborted
    }
}
