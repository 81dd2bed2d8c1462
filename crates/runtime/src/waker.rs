//! Wakers of tasks. Each puts the number of its task into the queue, once per poll.
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

/// The waker of a task, and its shared state.
pub(crate) struct OwnWaker {
    pub(crate) waker: Waker,
    woken: Arc<TaskWaker>,
}

impl OwnWaker {
    /// The waker of the task with this number, which is queued.
    pub(crate) fn new(task: usize, queue: &Arc<ReadyQueue>) -> Self {
        let (queued, queue) = (AtomicBool::new(true), Arc::clone(queue));
        let woken = Arc::new(TaskWaker { task, queued, queue });
        OwnWaker { waker: Waker::from(Arc::clone(&woken)), woken }
    }

    /// Records that the task is queued (`true`) or about to be polled (`false`). After `false`, the next wake queues
    /// it again. State that the task reads when it is polled must be changed before the wake, under a lock or with an
    /// equivalent ordering.
    pub(crate) fn set_queued(&self, queued: bool) {
        self.woken.queued.store(queued, Ordering::Release);
    }

    /// Whether no other waker for the task exists.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.woken) == 2
    }
}
