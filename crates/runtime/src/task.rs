//! What both executors share: tasks, their wakers, the ready queue, join handles.
use crate::Runtime;
use crate::live::Callers;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tantalum_base::Result;

thread_local! {
    /// What the task being polled said it waits on, for deadlock reports.
    static WAITING_ON: Cell<&'static str> = const { Cell::new("") };
}

/// Notes what the current task is about to wait on.
pub(crate) fn waiting_on(label: &'static str) {
    WAITING_ON.set(label);
}

/// Lets the other tasks that are ready take their turn first.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        waiting_on("its next turn");
        Poll::Pending
    })
    .await
}

/// Task numbers whose wakers fired, in order. Shared with wakers, which may fire on any thread.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    ready: Mutex<VecDeque<usize>>,
    // True while nobody runs the executor, or is about to stop: then a push must also wake somebody.
    parked: AtomicBool,
    // Who could run it, where it goes from thread to thread.
    callers: Callers,
    // An eventfd for an executor with a thread; `None` in virtual time, whose executor never blocks.
    wake_fd: Option<OwnedFd>,
}

impl ReadyQueue {
    pub(crate) fn with_wake_fd(wake_fd: OwnedFd) -> Self {
        ReadyQueue { wake_fd: Some(wake_fd), ..ReadyQueue::default() }
    }

    pub(crate) fn wake_fd(&self) -> Option<&OwnedFd> {
        self.wake_fd.as_ref()
    }

    pub(crate) fn callers(&self) -> &Callers {
        &self.callers
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: usize) {
        self.lock().push_back(task);
        self.unpark();
    }

    /// Moves everything that is ready into `into`.
    pub(crate) fn drain_into(&self, into: &mut VecDeque<usize>) {
        into.append(&mut self.lock());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Says that the executor is about to block. What was pushed before shows in `is_empty`
    /// afterwards; what is pushed later wakes it.
    pub(crate) fn set_parked(&self, parked: bool) {
        self.parked.store(parked, Ordering::SeqCst);
    }

    /// Wakes the executor where it blocks; costs a load where it does not.
    pub(crate) fn unpark(&self) {
        if self.parked.load(Ordering::SeqCst)
            && self.parked.swap(false, Ordering::SeqCst)
            && !self.callers.call_one()
            && let Some(fd) = &self.wake_fd
        {
            // Fails only where the counter is full, and then the executor wakes anyway.
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        }
    }
}

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

struct Task {
    name: &'static str,
    // `None` while it is being polled.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    waker: Arc<TaskWaker>,
    waiting_on: &'static str,
}

/// The tasks of one executor.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: RefCell<Vec<Option<Task>>>,
    free: RefCell<Vec<usize>>,
    pub(crate) queue: Arc<ReadyQueue>,
}

impl Tasks {
    pub(crate) fn new(queue: ReadyQueue) -> Self {
        Tasks { queue: Arc::new(queue), ..Tasks::default() }
    }

    /// Adds a task, ready to be polled.
    pub(crate) fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        let join = Rc::new(JoinState { result: RefCell::new(None), waiter: RefCell::new(None) });
        let handle = JoinHandle { state: Rc::clone(&join) };
        self.add(name, async move {
            let result = future.await;
            *join.result.borrow_mut() = Some(result);
            if let Some(waiter) = join.waiter.borrow_mut().take() {
                waiter.wake();
            }
        });
        handle
    }

    /// Adds a task whose end nobody waits for, ready to be polled; what wakes it.
    pub(crate) fn add(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + 'static,
    ) -> Waker {
        let mut slots = self.slots.borrow_mut();
        let task = self.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        let waker = Arc::new(TaskWaker {
            task,
            queued: AtomicBool::new(true),
            queue: Arc::clone(&self.queue),
        });
        let own = Waker::from(Arc::clone(&waker));
        let future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(future);
        slots[task] =
            Some(Task { name, future: Some(future), waker, waiting_on: "its first turn" });
        self.queue.push(task);
        own
    }

    /// Polls one task; stale numbers are passed over.
    pub(crate) fn poll(&self, number: usize) {
        let Some((mut future, waker)) = self.slots.borrow_mut()[number].as_mut().and_then(|task| {
            task.waker.queued.store(false, Ordering::Release);
            task.future.take().map(|future| (future, Arc::clone(&task.waker)))
        }) else {
            return;
        };
        WAITING_ON.set("something without a name");
        let own = Arc::clone(&waker);
        let waker = Waker::from(waker);
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        // The future of a finished task is dropped outside the borrow: its drop may spawn or wake.
        let finished = {
            let mut slots = self.slots.borrow_mut();
            // `drop_all` from within the task may have given its slot to another one.
            let slot = &mut slots[number].as_mut().filter(|task| Arc::ptr_eq(&task.waker, &own));
            match (poll, slot) {
                (_, None) => Some((None, future)),
                (Poll::Pending, Some(task)) => {
                    task.future = Some(future);
                    task.waiting_on = WAITING_ON.get();
                    None
                }
                (Poll::Ready(()), Some(_)) => {
                    self.free.borrow_mut().push(number);
                    Some((slots[number].take(), future))
                }
            }
        };
        drop(finished);
    }

    /// Drops every task, as a power cut does.
    pub(crate) fn drop_all(&self) {
        // What is dropped may spawn.
        while self.slots.borrow().iter().any(Option::is_some) {
            self.drop_once();
        }
    }

    fn drop_once(&self) {
        let dropped: Vec<_> = {
            let mut slots = self.slots.borrow_mut();
            let mut free = self.free.borrow_mut();
            free.clear();
            free.extend((0..slots.len()).rev());
            slots.iter_mut().map(Option::take).collect()
        };
        drop(dropped);
    }

    /// Name and wait label of every live task.
    pub(crate) fn waiting(&self) -> Vec<(&'static str, &'static str)> {
        self.slots.borrow().iter().flatten().map(|task| (task.name, task.waiting_on)).collect()
    }
}

struct JoinState<T> {
    result: RefCell<Option<T>>,
    waiter: RefCell<Option<Waker>>,
}

/// Completes with a task's result. Dropping it lets the task run on.
pub struct JoinHandle<T> {
    state: Rc<JoinState<T>>,
}

impl<T> JoinHandle<T> {
    /// The result, where the task has finished; takes it.
    pub fn try_take(&self) -> Option<T> {
        self.state.result.borrow_mut().take()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(result) = self.try_take() {
            return Poll::Ready(result);
        }
        waiting_on("a task's end");
        *self.state.waiter.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Runs `futures` side by side, each as a task called `name`, until all have ended; the first error
/// in their order, at which the others are left to run on.
///
/// # Errors
/// Those of the futures.
pub async fn spawn_all<F: Future<Output = Result<()>> + 'static>(
    runtime: &impl Runtime,
    name: &'static str,
    futures: impl Iterator<Item = F>,
) -> Result<()> {
    let tasks: Vec<_> = futures.map(|future| runtime.spawn(name, future)).collect();
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// Drives `futures` together, in this task, until all have ended; their results, or the first error in their order.
///
/// # Errors
/// Those of the futures.
pub async fn join_all<T, F: Future<Output = Result<T>>>(futures: Vec<F>) -> Result<Vec<T>> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<Result<T>>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(context)
            {
                *result = Some(done);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
