//! Wakers of tasks: each puts its task's number into the queue, once until it is polled.
use crate::primitives::AtomicBool;
use crate::ready_queue::ReadyQueue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Wake, Waker};

struct TaskWaker {
    task: usize,
    queued: AtomicBool,
    queue: Arc<ReadyQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.queue.push(self.task);
        }
    }
}

/// A task's waker, and what it does.
pub(crate) struct OwnWaker {
    pub(crate) waker: Waker,
    woken: Arc<TaskWaker>,
}

impl OwnWaker {
    /// That of the task of this number, which is queued.
    pub(crate) fn new(task: usize, queue: &Arc<ReadyQueue>) -> Self {
        let (queued, queue) = (AtomicBool::new(true), Arc::clone(queue));
        let woken = Arc::new(TaskWaker { task, queued, queue });
        OwnWaker { waker: Waker::from(Arc::clone(&woken)), woken }
    }

    /// Says that the task is queued, or is about to be polled: who wakes it from then on queues it again. What it looks at when it
    /// is polled must be changed before it is woken, under a lock or what orders as much.
    pub(crate) fn set_queued(&self, queued: bool) {
        self.woken.queued.store(queued, Ordering::Release);
    }

    /// Whether nobody else could still wake a task with it.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.woken) == 2
    }
}
