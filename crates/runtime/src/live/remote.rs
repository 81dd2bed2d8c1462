//! Channels from other threads to an executor, and back.
use super::lock;
use crate::task::waiting_on;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Time that a waiting thread spins before it blocks.
const SPIN: Duration = Duration::from_micros(30);

struct Queue<T> {
    queue: VecDeque<T>,
    senders: usize,
    // Number of senders that block until there is space.
    blocked: usize,
    receiver_gone: bool,
    receiver: Option<Waker>,
}

struct Shared<T> {
    label: &'static str,
    capacity: usize,
    state: Mutex<Queue<T>>,
    room: Condvar,
}

/// The sending side, for any thread except the executor's own.
pub struct RemoteSender<T>(Arc<Shared<T>>);

/// The receiving side, for a task.
pub struct RemoteReceiver<T>(Arc<Shared<T>>);

/// A channel that holds at most `capacity` items. `label` appears in deadlock reports.
pub fn channel<T: Send>(
    label: &'static str,
    capacity: usize,
) -> (RemoteSender<T>, RemoteReceiver<T>) {
    assert!(capacity > 0, "a channel needs room for one item");
    let shared = Arc::new(Shared {
        label,
        capacity,
        state: Mutex::new(Queue {
            queue: VecDeque::with_capacity(capacity),
            senders: 1,
            blocked: 0,
            receiver_gone: false,
            receiver: None,
        }),
        room: Condvar::new(),
    });
    (RemoteSender(Arc::clone(&shared)), RemoteReceiver(shared))
}

impl<T: Send> RemoteSender<T> {
    /// Blocks while the channel is full; returns the item if the receiver has gone.
    pub fn send(&self, item: T) -> Result<(), T> {
        let mut state = lock(&self.0.state);
        while state.queue.len() >= self.0.capacity && !state.receiver_gone {
            state.blocked += 1;
            state = self.0.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.blocked -= 1;
        }
        if state.receiver_gone {
            return Err(item);
        }
        state.queue.push_back(item);
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }
}

impl<T> Clone for RemoteSender<T> {
    fn clone(&self) -> Self {
        lock(&self.0.state).senders += 1;
        RemoteSender(Arc::clone(&self.0))
    }
}

impl<T> Drop for RemoteSender<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.senders -= 1;
        let receiver = if state.senders == 0 { state.receiver.take() } else { None };
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl<T> RemoteReceiver<T> {
    /// The next item; `None` when all senders have gone and the channel is empty.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| {
            let mut state = lock(&self.0.state);
            if let Some(item) = state.queue.pop_front() {
                if state.blocked > 0 {
                    self.0.room.notify_one();
                }
                return Poll::Ready(Some(item));
            }
            if state.senders == 0 {
                return Poll::Ready(None);
            }
            state.receiver = Some(context.waker().clone());
            waiting_on(self.0.label);
            Poll::Pending
        })
        .await
    }
}

impl<T> Drop for RemoteReceiver<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.receiver_gone = true;
        // Dropped outside the lock, because items may hold reply senders whose drop wakes threads.
        let items = std::mem::take(&mut state.queue);
        drop(state);
        self.0.room.notify_all();
        drop(items);
    }
}

struct Slot<T> {
    done: AtomicBool,
    // The answer, and whether a thread blocks for it.
    answer: Mutex<(Option<T>, bool)>,
    changed: Condvar,
}

/// Sends one answer. If dropped unused, the receiver gets `None`.
pub struct ReplySender<T>(Arc<Slot<T>>);

/// Waits for the answer.
pub struct ReplyReceiver<T>(Arc<Slot<T>>);

/// A one-shot channel from a task to a blocking thread.
pub fn reply<T: Send>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let slot = Arc::new(Slot {
        done: AtomicBool::new(false),
        answer: Mutex::new((None, false)),
        changed: Condvar::new(),
    });
    (ReplySender(Arc::clone(&slot)), ReplyReceiver(slot))
}

impl<T> ReplySender<T> {
    /// Sends the answer.
    pub fn send(self, answer: T) {
        lock(&self.0.answer).0 = Some(answer);
        // `Drop` notifies the receiver.
    }
}

impl<T> Drop for ReplySender<T> {
    fn drop(&mut self) {
        let answer = lock(&self.0.answer);
        self.0.done.store(true, Ordering::Release);
        let blocked = answer.1;
        drop(answer);
        if blocked {
            self.0.changed.notify_one();
        }
    }
}

impl<T> ReplyReceiver<T> {
    /// Blocks this thread until the answer arrives; `None` if the sender was dropped without one.
    pub fn wait(self) -> Option<T> {
        if super::several_cores() {
            let from = super::monotonic();
            while !self.0.done.load(Ordering::Acquire) && from.elapsed() < SPIN {
                std::hint::spin_loop();
            }
        }
        let mut answer = lock(&self.0.answer);
        while !self.0.done.load(Ordering::Acquire) {
            answer.1 = true;
            answer = self.0.changed.wait(answer).unwrap_or_else(PoisonError::into_inner);
        }
        answer.0.take()
    }
}
