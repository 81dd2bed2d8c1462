//! Tasks that wait for a condition on shared state.
use crate::task::waiting_on;
use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Waits until a condition holds. Code that changes the inputs of the condition must call `wake_all`.
pub struct WaitQueue {
    label: &'static str,
    waiters: RefCell<Vec<Waker>>,
}

impl WaitQueue {
    /// `label` names the awaited event in deadlock reports.
    pub const fn new(label: &'static str) -> Self {
        WaitQueue { label, waiters: RefCell::new(Vec::new()) }
    }

    /// Completes with the first `Some` of `condition`, which is evaluated now and after every wake.
    pub async fn until<T>(&self, mut condition: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| match condition() {
            Some(value) => Poll::Ready(value),
            None => {
                let mut waiters = self.waiters.borrow_mut();
                // If the task waited here before and was woken by something else, its waker is still in the list.
                if !waiters.iter().rev().any(|known| known.will_wake(context.waker())) {
                    waiters.push(context.waker().clone());
                }
                waiting_on(self.label);
                Poll::Pending
            }
        })
        .await
    }

    /// Makes every waiter evaluate its condition again.
    pub fn wake_all(&self) {
        // A wake only queues a task; it cannot re-enter this code.
        self.waiters.borrow_mut().drain(..).for_each(Waker::wake);
    }
}
