//! A counted resource, handed out first come, first served.
use super::WaitQueue;
use std::cell::Cell;
use std::rc::Rc;

/// Permits; waiters are served in the order in which they asked.
#[derive(Clone)]
pub struct Semaphore(Rc<State>);

struct State {
    free: Cell<u64>,
    next_ticket: Cell<u64>,
    serving: Cell<u64>,
    waiters: WaitQueue,
}

/// Holds permits until dropped.
pub struct Permit {
    state: Rc<State>,
    count: u64,
}

impl Semaphore {
    /// `permits` free permits; `label` names the resource in deadlock reports.
    pub fn new(label: &'static str, permits: u64) -> Self {
        Semaphore(Rc::new(State {
            free: Cell::new(permits),
            next_ticket: Cell::new(0),
            serving: Cell::new(0),
            waiters: WaitQueue::new(label),
        }))
    }

    /// Waits for `count` permits. A caller that is dropped while it waits gives up its place.
    pub async fn acquire(&self, count: u64) -> Permit {
        let state = &self.0;
        let mut ticket = Ticket::take(state);
        state
            .waiters
            .until(|| {
                (state.serving.get() == ticket.number && state.free.get() >= count).then_some(())
            })
            .await;
        state.free.set(state.free.get() - count);
        ticket.served();
        Permit { state: Rc::clone(state), count }
    }

    /// Permits that nobody holds.
    pub fn free(&self) -> u64 {
        self.0.free.get()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.state.free.set(self.state.free.get() + self.count);
        self.state.waiters.wake_all();
    }
}

struct Ticket<'a> {
    state: &'a Rc<State>,
    number: u64,
    served: bool,
}

impl<'a> Ticket<'a> {
    fn take(state: &'a Rc<State>) -> Self {
        let number = state.next_ticket.get();
        state.next_ticket.set(number + 1);
        Ticket { state, number, served: false }
    }

    fn served(&mut self) {
        self.served = true;
        self.state.serving.set(self.number + 1);
        self.state.waiters.wake_all();
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.served {
            self.served();
        }
    }
}
