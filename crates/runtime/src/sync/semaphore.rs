//! A counted resource, granted in order of request.
use crate::task::waiting_on;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Permits. Waiters are served in the order of their requests.
#[derive(Clone)]
pub struct Semaphore(Rc<Permits>);

struct Permits {
    label: &'static str,
    free: Cell<u64>,
    next_ticket: Cell<u64>,
    // Ascending tickets. A release assigns permits to the first waiters and removes them. A waiter that is no longer
    // in this list owns its permits.
    waiters: RefCell<VecDeque<Waiter>>,
}

struct Waiter {
    ticket: u64,
    count: u64,
    waker: Waker,
}

/// Holds permits until dropped.
pub struct Permit {
    state: Rc<Permits>,
    count: u64,
}

impl Semaphore {
    /// `permits` free permits; `label` names the resource in deadlock reports.
    pub fn new(label: &'static str, permits: u64) -> Self {
        Semaphore(Rc::new(Permits {
            label,
            free: Cell::new(permits),
            next_ticket: Cell::new(0),
            waiters: RefCell::new(VecDeque::new()),
        }))
    }

    /// Waits for `count` permits. If the future is dropped while it waits, it loses its place.
    pub async fn acquire(&self, count: u64) -> Permit {
        Acquire { state: &self.0, count, ticket: None }.await
    }

    /// Permits that are not held.
    pub fn free(&self) -> u64 {
        self.0.free.get()
    }
}

impl Permits {
    fn serve(&self) {
        let mut waiters = self.waiters.borrow_mut();
        while let Some(left) =
            waiters.front().and_then(|first| self.free.get().checked_sub(first.count))
        {
            self.free.set(left);
            if let Some(first) = waiters.pop_front() {
                // A wake only queues a task; it cannot re-enter this code.
                first.waker.wake();
            }
        }
    }

    fn release(&self, count: u64) {
        self.free.set(self.free.get() + count);
        self.serve();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.state.release(self.count);
    }
}

struct Acquire<'a> {
    state: &'a Rc<Permits>,
    count: u64,
    // Set while it waits, or owns permits that were assigned but not yet taken.
    ticket: Option<u64>,
}

impl Future for Acquire<'_> {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let (state, count) = (self.state, self.count);
        let mut waiters = state.waiters.borrow_mut();
        if let Some(ticket) = self.ticket {
            if let Ok(place) = waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
                waiters[place].waker.clone_from(context.waker());
                waiting_on(state.label);
                return Poll::Pending;
            }
            self.ticket = None;
        } else if let (true, Some(left)) = (waiters.is_empty(), state.free.get().checked_sub(count))
        {
            state.free.set(left);
        } else {
            let ticket = state.next_ticket.get();
            state.next_ticket.set(ticket + 1);
            self.ticket = Some(ticket);
            waiters.push_back(Waiter { ticket, count, waker: context.waker().clone() });
            waiting_on(state.label);
            return Poll::Pending;
        }
        Poll::Ready(Permit { state: Rc::clone(state), count })
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut waiters = self.state.waiters.borrow_mut();
        match waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
            Ok(place) => {
                waiters.remove(place);
                drop(waiters);
                // A large request may have blocked smaller ones behind it.
                self.state.serve();
            }
            Err(_) => {
                drop(waiters);
                self.state.release(self.count);
            }
        }
    }
}
