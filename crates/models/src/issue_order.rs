//! An ordered queue: commands that change something are passed to the device in the order in which
//! they were issued (DuraSSD, section 3.3, "an ordered version of NCQ"; TxCache, section III-A).
//! Their transfers may overlap; a command that arrives early waits for those before it.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use tantalum_runtime::sync::WaitQueue;

/// The order of issue of commands.
pub(crate) struct IssueOrder {
    /// Numbers of the commands that the device has not received yet, ascending.
    ahead: RefCell<VecDeque<u64>>,
    issued: Cell<u64>,
    first: WaitQueue,
}

impl IssueOrder {
    pub fn new() -> Self {
        IssueOrder {
            ahead: RefCell::default(),
            issued: Cell::new(0),
            first: WaitQueue::new("its place in the order of commands"),
        }
    }

    /// The place after all commands issued so far. Dropping it gives it up.
    pub fn place(&self) -> Place<'_> {
        let number = self.issued.replace(self.issued.get() + 1);
        self.ahead.borrow_mut().push_back(number);
        Place { order: self, number }
    }
}

/// The place of one command.
pub(crate) struct Place<'a> {
    order: &'a IssueOrder,
    number: u64,
}

impl Place<'_> {
    /// Polls `command`, which the device accepts in its first step, once all earlier commands have
    /// been accepted.
    pub async fn hand_over<T>(self, mut command: Pin<&mut impl Future<Output = T>>) -> T {
        let is_first = || self.order.ahead.borrow().front() == Some(&self.number);
        if !is_first() {
            self.order.first.until(|| is_first().then_some(())).await;
        }
        let mut place = Some(self);
        poll_fn(|context| {
            let polled = command.as_mut().poll(context);
            drop(place.take());
            polled
        })
        .await
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut ahead = self.order.ahead.borrow_mut();
        if ahead.front() == Some(&self.number) {
            ahead.pop_front();
        } else if let Ok(at) = ahead.binary_search(&self.number) {
            ahead.remove(at);
        }
        drop(ahead);
        self.order.first.wake_all();
    }
}
