//! One task waiting for a condition. A wait queue would keep a waker per wait; here there is room
//! for one, and a dropped wait leaves nothing behind.
use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// Wakes the one task that waits on it.
#[derive(Default)]
pub(crate) struct Signal(RefCell<Option<Waker>>);

impl Signal {
    /// Completes with the first `Some` of `condition`, which is evaluated now and after every wake.
    pub(crate) async fn until<T>(&self, mut condition: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| match condition() {
            Some(value) => Poll::Ready(value),
            None => {
                self.register(context);
                Poll::Pending
            }
        })
        .await
    }

    /// Registers the task that is being polled, for `wake` to wake.
    pub(crate) fn register(&self, context: &mut Context<'_>) {
        let mut waiter = self.0.borrow_mut();
        match waiter.as_mut() {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waiter = Some(context.waker().clone()),
        }
    }

    /// Makes the waiting task, if any, evaluate its condition again.
    pub(crate) fn wake(&self) {
        let waiter = self.0.borrow_mut().take();
        if let Some(waker) = waiter {
            waker.wake();
        }
    }
}
