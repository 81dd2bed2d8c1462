//! Waiting callers of an executor that moves between threads.
use crate::primitives::{AtomicU8, Mutex, MutexGuard, Thread, thread};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The waiters of an executor, in the order in which they are called.
#[derive(Default)]
pub(crate) struct Callers(Mutex<VecDeque<Arc<Caller>>>);

/// A thread that needs an executor.
pub(super) struct Caller {
    thread: Thread,
    state: AtomicU8,
}

/// The thread need not be called: it looks for work itself before it waits.
const AWAKE: u8 = 0;
const WAITING: u8 = 1;
const CALLED: u8 = 2;

impl Callers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Caller>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends `caller`, which is about to [`wait`](Caller::wait).
    pub(super) fn add(&self, caller: &Arc<Caller>) {
        caller.state.store(WAITING, Ordering::Relaxed);
        self.lock().push_back(Arc::clone(caller));
    }

    /// Removes `caller`, which no longer waits.
    pub(super) fn remove(&self, caller: &Arc<Caller>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, caller));
        caller.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Removes the first caller and calls it; false if there is none.
    pub(crate) fn call_one(&self) -> bool {
        let first = self.lock().pop_front();
        first.inspect(|caller| caller.call()).is_some()
    }

    /// Calls all waiters.
    pub(super) fn call_all(&self) {
        while self.call_one() {}
    }
}

impl Caller {
    /// The current thread.
    pub(super) fn current() -> Arc<Caller> {
        Arc::new(Caller { thread: thread::current(), state: AtomicU8::new(AWAKE) })
    }

    /// Wakes the caller if it waits.
    pub(super) fn call(&self) {
        if self.state.swap(CALLED, Ordering::AcqRel) == WAITING {
            self.thread.unpark();
        }
    }

    /// Blocks this thread, which must be the caller's, until it is called or the timeout expires.
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        while self.state.load(Ordering::Acquire) == WAITING {
            match timeout {
                None => thread::park(),
                // After a spurious wake-up the caller checks the clock and waits again.
                Some(timeout) => return thread::park_timeout(timeout),
            }
        }
    }
}
