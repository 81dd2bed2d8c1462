//! A bounded queue between tasks of one executor.
use super::WaitQueue;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

struct Queue<T> {
    queue: RefCell<VecDeque<T>>,
    capacity: usize,
    senders: Cell<usize>,
    receiver_gone: Cell<bool>,
    changed: WaitQueue,
}

/// The sending side. Clone it for more senders.
pub struct Sender<T>(Rc<Queue<T>>);

/// The receiving side.
pub struct Receiver<T>(Rc<Queue<T>>);

/// A channel that holds at most `capacity` items.
pub fn channel<T>(label: &'static str, capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel needs room for one item");
    let state = Rc::new(Queue {
        queue: RefCell::new(VecDeque::with_capacity(capacity)),
        capacity,
        senders: Cell::new(1),
        receiver_gone: Cell::new(false),
        changed: WaitQueue::new(label),
    });
    (Sender(Rc::clone(&state)), Receiver(state))
}

impl<T> Sender<T> {
    /// Waits for space, then sends; returns the item if the receiver has gone.
    pub async fn send(&self, item: T) -> Result<(), T> {
        let state = &self.0;
        let open = state
            .changed
            .until(|| {
                if state.receiver_gone.get() {
                    Some(false)
                } else {
                    (state.queue.borrow().len() < state.capacity).then_some(true)
                }
            })
            .await;
        if !open {
            return Err(item);
        }
        state.queue.borrow_mut().push_back(item);
        state.changed.wake_all();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.set(self.0.senders.get() + 1);
        Sender(Rc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.senders.set(self.0.senders.get() - 1);
        self.0.changed.wake_all();
    }
}

impl<T> Receiver<T> {
    /// The next item; `None` when all senders have gone and the queue is empty.
    pub async fn recv(&mut self) -> Option<T> {
        let state = &self.0;
        let item = state
            .changed
            .until(|| match state.queue.borrow_mut().pop_front() {
                Some(item) => Some(Some(item)),
                None => (state.senders.get() == 0).then_some(None),
            })
            .await;
        state.changed.wake_all();
        item
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.receiver_gone.set(true);
        self.0.changed.wake_all();
        // Items that can no longer be received may hold permits. Dropped outside the borrow.
        let items = self.0.queue.take();
        drop(items);
    }
}
