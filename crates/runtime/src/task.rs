//! Shared parts of both executors: tasks, their wakers, join handles.
use crate::Runtime;
use crate::ready_queue::ReadyQueue;
use crate::waker::OwnWaker;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tantalum_base::Result;

thread_local! {
    /// The wait label of the task being polled, for deadlock reports.
    static WAITING_ON: Cell<&'static str> = const { Cell::new("") };
}

/// Records the label of the wait that the current task is about to start.
pub(crate) fn waiting_on(label: &'static str) {
    WAITING_ON.set(label);
}

/// Lets the other ready tasks run first.
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

/// The future of a task.
pub type Body = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    name: &'static str,
    waiting_on: &'static str,
    // `None` while it is being polled.
    body: Option<(Body, OwnWaker)>,
}

/// A slot for tasks: a task and its predecessors share its number.
#[derive(Default)]
struct Slot {
    task: Option<Task>,
    /// Number of tasks that had this slot, including the current one.
    tasks: u64,
    /// The waker of the last task, for reuse by the next.
    waker: Option<OwnWaker>,
}

/// The tasks of one executor.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: RefCell<Vec<Slot>>,
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
        let body = async move {
            let result = future.await;
            *join.result.borrow_mut() = Some(result);
            if let Some(waiter) = join.waiter.borrow_mut().take() {
                waiter.wake();
            }
        };
        self.detach(name, Box::pin(body));
        handle
    }

    /// Adds a task without a handle to wait for its end. It is ready to be polled.
    pub(crate) fn detach(&self, name: &'static str, body: Body) {
        self.add_body(name, body, |_| ());
    }

    /// Like [`detach`](Self::detach), and returns the task's waker.
    pub(crate) fn add(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + 'static,
    ) -> Waker {
        self.add_body(name, Box::pin(future), Waker::clone)
    }

    /// Adds a task; returns the result of `tell` on its waker.
    fn add_body<T>(&self, name: &'static str, body: Body, tell: impl FnOnce(&Waker) -> T) -> T {
        let mut slots = self.slots.borrow_mut();
        let number = self.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(Slot::default());
            slots.len() - 1
        });
        let slot = &mut slots[number];
        let own = slot.waker.take().unwrap_or_else(|| OwnWaker::new(number, &self.queue));
        own.set_queued(true);
        let told = tell(&own.waker);
        slot.tasks += 1;
        slot.task = Some(Task { name, waiting_on: "its first turn", body: Some((body, own)) });
        self.queue.push(number);
        told
    }

    /// Polls one task; ignores stale numbers.
    pub(crate) fn poll(&self, number: usize) {
        let taken = {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[number];
            slot.task.as_mut().and_then(|task| task.body.take()).map(|body| (body, slot.tasks))
        };
        let Some(((mut future, own), tasks)) = taken else { return };
        own.set_queued(false);
        WAITING_ON.set("something without a name");
        let poll = future.as_mut().poll(&mut Context::from_waker(&own.waker));
        // Drop the future of a finished task outside the borrow, because its drop may spawn or wake.
        let finished = {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[number];
            // `drop_all` within the task may have given its slot to another task.
            let task = slot.task.as_mut().filter(|_| slot.tasks == tasks);
            match (poll, task) {
                (_, None) => Some(future),
                (Poll::Pending, Some(task)) => {
                    task.body = Some((future, own));
                    task.waiting_on = WAITING_ON.get();
                    None
                }
                (Poll::Ready(()), Some(_)) => {
                    slot.task = None;
                    slot.waker = Some(own).filter(OwnWaker::is_unshared);
                    self.free.borrow_mut().push(number);
                    Some(future)
                }
            }
        };
        drop(finished);
    }

    /// Drops every task, as at a power cut.
    pub(crate) fn drop_all(&self) {
        // A dropped task may spawn new ones.
        while self.slots.borrow().iter().any(|slot| slot.task.is_some()) {
            self.drop_once();
        }
    }

    fn drop_once(&self) {
        let dropped: Vec<_> = {
            let mut slots = self.slots.borrow_mut();
            let mut free = self.free.borrow_mut();
            free.clear();
            free.extend((0..slots.len()).rev());
            slots.iter_mut().map(|slot| slot.task.take()).collect()
        };
        drop(dropped);
    }

    /// Name and wait label of every live task.
    pub(crate) fn waiting(&self) -> Vec<(&'static str, &'static str)> {
        let slots = self.slots.borrow();
        let tasks = slots.iter().filter_map(|slot| slot.task.as_ref());
        tasks.map(|task| (task.name, task.waiting_on)).collect()
    }
}

struct JoinState<T> {
    result: RefCell<Option<T>>,
    waiter: RefCell<Option<Waker>>,
}

/// Completes with the result of a task. If it is dropped, the task continues.
pub struct JoinHandle<T> {
    state: Rc<JoinState<T>>,
}

impl<T> JoinHandle<T> {
    /// Takes the result if the task has finished.
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

/// Runs `futures` concurrently, each as a task called `name`, until all have ended. Returns the first error in their
/// order; the other tasks then continue.
///
/// # Errors
/// The errors of the futures.
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

/// Runs `futures` concurrently in this task until all have ended. Returns their results, or the first error in their
/// order.
///
/// # Errors
/// The errors of the futures.
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
