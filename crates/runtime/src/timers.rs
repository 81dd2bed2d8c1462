//! Timers of one executor, ordered by time; ties go to the timer that was set first.
use crate::task::waiting_on;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Identifies a timer that was set; stale once it has fired.
#[derive(Clone, Copy)]
pub(crate) struct TimerId {
    slot: u32,
    count: u64,
}

/// Heap entries are small and plain. The wakers are stored separately, so that a timer can be cancelled.
#[derive(Default)]
pub(crate) struct Timers {
    // (at_ns, count, slot)
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    // A slot is free again when its entry has left the heap. `None` is a cancelled timer.
    slots: Vec<(u64, Option<Waker>)>,
    free: Vec<u32>,
    count: u64,
}

impl Timers {
    fn set(&mut self, at_ns: u64, waker: Waker) -> TimerId {
        let count = self.count;
        self.count += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = (count, Some(waker));
        self.heap.push(Reverse((at_ns, count, slot)));
        TimerId { slot, count }
    }

    /// Sets a timer. If `set` is still pending, only its waker is replaced.
    pub(crate) fn wait(&mut self, set: Option<TimerId>, at_ns: u64, waker: &Waker) -> TimerId {
        if let Some(id) = set
            && let Some((count, Some(old))) = self.slots.get_mut(id.slot as usize)
            && *count == id.count
        {
            old.clone_from(waker);
            return id;
        }
        self.set(at_ns, waker.clone())
    }

    /// Cancels a timer that has not fired.
    pub(crate) fn cancel(&mut self, id: TimerId) {
        if let Some((count, waker)) = self.slots.get_mut(id.slot as usize)
            && *count == id.count
        {
            *waker = None;
        }
    }

    /// The time of the next timer.
    pub(crate) fn next_at_ns(&mut self) -> Option<u64> {
        while let Some(&Reverse((at_ns, _, slot))) = self.heap.peek() {
            if self.slots[slot as usize].1.is_some() {
                return Some(at_ns);
            }
            self.heap.pop();
            self.free.push(slot);
        }
        None
    }

    /// Wakes the tasks whose timers are due at `now_ns`.
    pub(crate) fn fire(&mut self, now_ns: u64) {
        while let Some(&Reverse((at_ns, _, slot))) = self.heap.peek() {
            if at_ns > now_ns {
                break;
            }
            self.heap.pop();
            self.free.push(slot);
            if let Some(waker) = self.slots[slot as usize].1.take() {
                waker.wake();
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
        self.free.clear();
    }
}

/// The part of an executor's core that sleeping tasks use.
pub(crate) trait Clock {
    fn now_ns(&self) -> u64;
    fn timers(&self) -> &RefCell<Timers>;
}

/// Completes when the clock reaches a time.
pub(crate) struct Sleep<C: Clock> {
    core: Rc<C>,
    at_ns: u64,
    timer: Option<TimerId>,
}

impl<C: Clock> Sleep<C> {
    pub(crate) fn new(core: &Rc<C>, at_ns: u64) -> Self {
        Sleep { core: Rc::clone(core), at_ns, timer: None }
    }
}

impl<C: Clock> Future for Sleep<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.core.now_ns() >= self.at_ns {
            return Poll::Ready(());
        }
        let timer = self.core.timers().borrow_mut().wait(self.timer, self.at_ns, context.waker());
        self.timer = Some(timer);
        waiting_on("a timer");
        Poll::Pending
    }
}

impl<C: Clock> Drop for Sleep<C> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.core.timers().borrow_mut().cancel(timer);
        }
    }
}
