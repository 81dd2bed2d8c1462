//! What both executors share: tasks, their wakers, join handles.
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

/// What a task does.
pub type Body = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    name: &'static str,
    waiting_on: &'static str,
    // `None` while it is being polled.
    body: Option<(Body, OwnWaker)>,
}

/// A task, and those before it that had its number.
#[derive(Default)]
struct Slot {
    task: Option<Task>,
    /// Tasks that had the number, this one included.
    tasks: u64,
    /// The waker of the last one, for the next.
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

    /// Adds a task whose end nobody waits for, ready to be polled.
    pub(crate) fn detach(&self, name: &'static str, body: Body) {
        self.add_body(name, body, |_| ());
    }

    /// The same; what wakes it.
    pub(crate) fn add(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + 'static,
    ) -> Waker {
        self.add_body(name, Box::pin(future), Waker::clone)
    }

    /// Adds a task; what `tell` makes of its waker.
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

    /// Polls one task; stale numbers are passed over.
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
        // The future of a finished task is dropped outside the borrow: its drop may spawn or wake.
        let finished = {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[number];
            // `drop_all` from within the task may have given its slot to another one.
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

    /// Drops every task, as a power cut does.
    pub(crate) fn drop_all(&self) {
        // What is dropped may spawn.
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
