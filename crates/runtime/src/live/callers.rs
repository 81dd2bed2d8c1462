//! Callers of an executor that goes from thread to thread, while they wait.
use crate::primitives::{AtomicU8, Mutex, MutexGuard, Thread, thread};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Who waits for an executor, in the order in which they are called.
#[derive(Default)]
pub(crate) struct Callers(Mutex<VecDeque<Arc<Caller>>>);

/// A thread that wants something from an executor.
pub(super) struct Caller {
    thread: Thread,
    state: AtomicU8,
}

/// Nobody need call it: it looks for itself before it waits.
const AWAKE: u8 = 0;
const WAITING: u8 = 1;
const CALLED: u8 = 2;

impl Callers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Caller>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `caller` at the end, who is about to [`wait`](Caller::wait).
    pub(super) fn add(&self, caller: &Arc<Caller>) {
        caller.state.store(WAITING, Ordering::Relaxed);
        self.lock().push_back(Arc::clone(caller));
    }

    /// Takes `caller` out, who waits no more.
    pub(super) fn remove(&self, caller: &Arc<Caller>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, caller));
        caller.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Takes the first out and calls it; false where nobody waits.
    pub(crate) fn call_one(&self) -> bool {
        let first = self.lock().pop_front();
        first.inspect(|caller| caller.call()).is_some()
    }

    /// Calls everybody.
    pub(super) fn call_all(&self) {
        while self.call_one() {}
    }
}

impl Caller {
    /// The thread that runs this.
    pub(super) fn current() -> Arc<Caller> {
        Arc::new(Caller { thread: thread::current(), state: AtomicU8::new(AWAKE) })
    }

    /// Wakes it, if it waits.
    pub(super) fn call(&self) {
        if self.state.swap(CALLED, Ordering::AcqRel) == WAITING {
            self.thread.unpark();
        }
    }

    /// Blocks this thread, the caller's, until it is called or the time is over.
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        while self.state.load(Ordering::Acquire) == WAITING {
            match timeout {
                None => thread::park(),
                // Woken too early it looks at the clock, and waits again.
                Some(timeout) => return thread::park_timeout(timeout),
            }
        }
    }
}
