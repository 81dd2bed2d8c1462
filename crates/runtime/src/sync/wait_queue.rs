//! Tasks waiting for a condition over state that they share.
use crate::task::waiting_on;
use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Waits until a condition holds; whoever changes what the condition reads calls `wake_all`.
pub struct WaitQueue {
    label: &'static str,
    waiters: RefCell<Vec<Waker>>,
}

impl WaitQueue {
    /// `label` says in deadlock reports what is waited for.
    pub const fn new(label: &'static str) -> Self {
        WaitQueue { label, waiters: RefCell::new(Vec::new()) }
    }

    /// Completes with the first `Some` of `condition`, which is asked now and after every wake.
    pub async fn until<T>(&self, mut condition: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| match condition() {
            Some(value) => Poll::Ready(value),
            None => {
                let mut waiters = self.waiters.borrow_mut();
                if !waiters.last().is_some_and(|last| last.will_wake(context.waker())) {
                    waiters.push(context.waker().clone());
                }
                waiting_on(self.label);
                Poll::Pending
            }
        })
        .await
    }

    /// Lets every waiter ask its condition again.
    pub fn wake_all(&self) {
        // Waking only queues a task; it cannot come back here.
        self.waiters.borrow_mut().drain(..).for_each(Waker::wake);
    }
}
