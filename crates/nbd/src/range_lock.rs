//! Locks on ranges of pages: shared by whole-page writes, exclusive for a read-modify-write.
//!
//! Requests are served in order of arrival. A request waits for each earlier one, waiting or
//! holding, that overlaps it, if either of the two is exclusive. So no request starves. A task
//! holds one range at a time, so there is no deadlock.
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use tantalum_base::PageRange;

/// The mode in which a range is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Together with other shared holders: for writes of whole pages.
    Shared,
    /// Alone: for a read-modify-write.
    Exclusive,
}

struct Lock {
    ticket: u64,
    range: PageRange,
    mode: Mode,
    /// Number of earlier requests that it waits for.
    blockers: usize,
    waker: Option<Waker>,
}

impl Lock {
    fn blocks(&self, later: &Lock) -> bool {
        self.ticket < later.ticket
            && (self.mode == Mode::Exclusive || later.mode == Mode::Exclusive)
            && self.range.overlaps(later.range)
    }
}

/// The locked ranges of one export.
pub(crate) struct RangeLock {
    // Slots are reused through `free`; `None` is a free slot.
    entries: RefCell<Vec<Option<Lock>>>,
    free: RefCell<Vec<usize>>,
    next_ticket: Cell<u64>,
    exclusive: Cell<usize>,
}

/// A range that is held or waited for, until dropped.
pub(crate) struct RangeGuard<'a> {
    lock: &'a RangeLock,
    slot: usize,
}

impl RangeLock {
    pub(crate) fn new() -> Self {
        RangeLock {
            entries: RefCell::new(Vec::new()),
            free: RefCell::new(Vec::new()),
            next_ticket: Cell::new(0),
            exclusive: Cell::new(0),
        }
    }

    /// Locks `range`, waiting for earlier requests.
    pub(crate) async fn acquire(&self, range: PageRange, mode: Mode) -> RangeGuard<'_> {
        let guard = self.enter(range, mode);
        poll_fn(|context| match &mut self.entries.borrow_mut()[guard.slot] {
            Some(lock) if lock.blockers > 0 => {
                lock.waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await;
        guard
    }

    fn enter(&self, range: PageRange, mode: Mode) -> RangeGuard<'_> {
        let ticket = self.next_ticket.get();
        self.next_ticket.set(ticket + 1);
        if mode == Mode::Exclusive {
            self.exclusive.set(self.exclusive.get() + 1);
        }
        let mut lock = Lock { ticket, range, mode, blockers: 0, waker: None };
        let mut entries = self.entries.borrow_mut();
        // The common case, only whole-page writes, need not look at the other ranges.
        if self.exclusive.get() > 0 {
            lock.blockers = entries.iter().flatten().filter(|other| other.blocks(&lock)).count();
        }
        let slot = match self.free.borrow_mut().pop() {
            Some(slot) => {
                entries[slot] = Some(lock);
                slot
            }
            None => {
                entries.push(Some(lock));
                entries.len() - 1
            }
        };
        RangeGuard { lock: self, slot }
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let RangeLock { entries, free, exclusive, .. } = self.lock;
        let mut entries = entries.borrow_mut();
        let Some(gone) = entries[self.slot].take() else { return };
        free.borrow_mut().push(self.slot);
        // Requests wait only while an exclusive range is held or waited for.
        if exclusive.get() == 0 {
            return;
        }
        if gone.mode == Mode::Exclusive {
            exclusive.set(exclusive.get() - 1);
        }
        // A request is woken only if it no longer waits for any other: a thousand requests may wait for one range.
        for later in entries.iter_mut().flatten().filter(|later| gone.blocks(later)) {
            later.blockers -= 1;
            if later.blockers == 0
                && let Some(waker) = later.waker.take()
            {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};
    use tantalum_base::PageNo;

    fn range(first: u64, pages: u64) -> PageRange {
        PageRange::new(PageNo(first), pages)
    }

    fn ready<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn shared_ranges_overlap_and_an_exclusive_one_waits_for_all_of_them() {
        let lock = RangeLock::new();
        let one = ready(pin!(lock.acquire(range(0, 4), Mode::Shared))).unwrap();
        let two = ready(pin!(lock.acquire(range(2, 4), Mode::Shared))).unwrap();
        let mut alone = pin!(lock.acquire(range(3, 1), Mode::Exclusive));
        assert!(ready(alone.as_mut()).is_none());
        drop(one);
        assert!(ready(alone.as_mut()).is_none());
        drop(two);
        assert!(ready(alone.as_mut()).is_some());
    }

    #[test]
    fn a_later_shared_range_does_not_pass_a_waiting_exclusive_one() {
        let lock = RangeLock::new();
        let held = ready(pin!(lock.acquire(range(5, 1), Mode::Shared))).unwrap();
        let mut alone = pin!(lock.acquire(range(5, 1), Mode::Exclusive));
        assert!(ready(alone.as_mut()).is_none());
        let mut late = pin!(lock.acquire(range(5, 1), Mode::Shared));
        assert!(ready(late.as_mut()).is_none());
        let elsewhere = ready(pin!(lock.acquire(range(6, 1), Mode::Exclusive)));
        assert!(elsewhere.is_some());
        drop(held);
        assert!(ready(late.as_mut()).is_none());
        let guard = ready(alone.as_mut()).unwrap();
        assert!(ready(late.as_mut()).is_none());
        drop(guard);
        assert!(ready(late.as_mut()).is_some());
    }

    #[test]
    fn a_wait_given_up_blocks_nobody() {
        let lock = RangeLock::new();
        let held = ready(pin!(lock.acquire(range(1, 1), Mode::Exclusive))).unwrap();
        {
            let mut given_up = pin!(lock.acquire(range(0, 9), Mode::Exclusive));
            assert!(ready(given_up.as_mut()).is_none());
        }
        drop(held);
        assert!(ready(pin!(lock.acquire(range(0, 9), Mode::Shared))).is_some());
        assert_eq!(lock.exclusive.get(), 0);
    }

    /// Counts how often it is woken.
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_release_wakes_only_the_next_that_waits_for_it() {
        let lock = RangeLock::new();
        let held = ready(pin!(lock.acquire(range(3, 1), Mode::Exclusive))).unwrap();
        let other = ready(pin!(lock.acquire(range(9, 1), Mode::Exclusive))).unwrap();
        let wakers: Vec<_> = (0..100).map(|_| Arc::new(Counted(AtomicUsize::new(0)))).collect();
        let mut waits: Vec<_> =
            wakers.iter().map(|_| Box::pin(lock.acquire(range(3, 1), Mode::Exclusive))).collect();
        for (wait, waker) in waits.iter_mut().zip(&wakers) {
            let waker = Waker::from(Arc::clone(waker));
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        let woken = || wakers.iter().map(|waker| waker.0.load(Ordering::Relaxed)).sum::<usize>();
        drop(other);
        assert_eq!(woken(), 0, "nobody waits for this range");
        drop(held);
        assert_eq!((woken(), wakers[0].0.load(Ordering::Relaxed)), (1, 1));
    }
}
