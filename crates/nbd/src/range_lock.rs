//! Locks on ranges of pages: shared by whole-page writes, exclusive for a read-modify-write.
//!
//! Requests are served in order of arrival: one waits while an earlier one, waiting or holding,
//! overlaps it and either is exclusive. So no request starves, and since a task holds one range at
//! a time, there is no deadlock.
use std::cell::{Cell, RefCell};
use tantalum_base::PageRange;
use tantalum_runtime::sync::WaitQueue;

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
    released: WaitQueue,
}

/// A range that is held or waited for, until dropped.
pub(crate) struct RangeGuard<'a> {
    lock: &'a RangeLock,
    slot: usize,
    mode: Mode,
}

impl RangeLock {
    pub(crate) fn new() -> Self {
        RangeLock {
            entries: RefCell::new(Vec::new()),
            free: RefCell::new(Vec::new()),
            next_ticket: Cell::new(0),
            exclusive: Cell::new(0),
            released: WaitQueue::new("an overlapping write"),
        }
    }

    /// Locks `range`, waiting for earlier requests.
    pub(crate) async fn acquire(&self, range: PageRange, mode: Mode) -> RangeGuard<'_> {
        let guard = self.enter(range, mode);
        // The common case, only whole-page writes, need not look at the other ranges.
        if self.exclusive.get() > 0 {
            self.released.until(|| (!self.blocked(guard.slot)).then_some(())).await;
        }
        guard
    }

    fn enter(&self, range: PageRange, mode: Mode) -> RangeGuard<'_> {
        let ticket = self.next_ticket.get();
        self.next_ticket.set(ticket + 1);
        let entry = Some(Lock { ticket, range, mode });
        let mut entries = self.entries.borrow_mut();
        let slot = match self.free.borrow_mut().pop() {
            Some(slot) => {
                entries[slot] = entry;
                slot
            }
            None => {
                entries.push(entry);
                entries.len() - 1
            }
        };
        if mode == Mode::Exclusive {
            self.exclusive.set(self.exclusive.get() + 1);
        }
        RangeGuard { lock: self, slot, mode }
    }

    fn blocked(&self, slot: usize) -> bool {
        let entries = self.entries.borrow();
        entries[slot]
            .as_ref()
            .is_some_and(|mine| entries.iter().flatten().any(|other| other.blocks(mine)))
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let lock = self.lock;
        lock.entries.borrow_mut()[self.slot] = None;
        lock.free.borrow_mut().push(self.slot);
        // Requests wait only while an exclusive range is held or waited for.
        if lock.exclusive.get() > 0 {
            if self.mode == Mode::Exclusive {
                lock.exclusive.set(lock.exclusive.get() - 1);
            }
            lock.released.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
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
}
