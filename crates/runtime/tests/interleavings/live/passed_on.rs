//! An executor that moves between callers, as in `Confined`.
use super::callers::Caller;
use crate::in_every_order;
use crate::ready_queue::ReadyQueue;
use crate::waker::OwnWaker;
use loom::sync::Mutex;
use loom::thread;
use std::collections::VecDeque;
use std::sync::Arc;

/// The condition for which a task waits, and its answer.
#[derive(Default)]
struct Request {
    may_go_on: bool,
    is_answered: bool,
}

struct Executor {
    queue: Arc<ReadyQueue>,
    /// Held by the thread that polls tasks. Task N serves request N.
    ready: Mutex<VecDeque<usize>>,
    requests: [Mutex<Request>; 2],
    tasks: [OwnWaker; 2],
}

impl Executor {
    fn new() -> Arc<Executor> {
        let queue = Arc::new(ReadyQueue::default());
        let tasks = [0, 1].map(|task| OwnWaker::new(task, &queue));
        let requests = [0, 1].map(|_| Mutex::new(Request::default()));
        Arc::new(Executor { queue, ready: Mutex::new(VecDeque::new()), requests, tasks })
    }

    /// Polls every ready task once.
    fn poll_round(&self, ready: &mut VecDeque<usize>, callers: &[Arc<Caller>; 2]) {
        self.queue.drain_into(ready);
        for task in ready.drain(..) {
            self.tasks[task].set_queued(false);
            let mut request = self.requests[task].lock().unwrap();
            if request.may_go_on && !request.is_answered {
                request.is_answered = true;
                callers[task].call();
            }
        }
    }

    /// Waits for the answer to request `own`, and runs the executor meanwhile if no other thread does. `lets_go`
    /// releases the executor.
    fn call(&self, own: usize, callers: &[Arc<Caller>; 2], lets_go: impl Fn(&ReadyQueue)) {
        let lock = || {
            let ready = self.ready.lock().unwrap();
            self.queue.set_parked(false);
            ready
        };
        self.queue.push(own);
        let mut ready = lock();
        loop {
            self.poll_round(&mut ready, callers);
            if self.requests[own].lock().unwrap().is_answered {
                lets_go(&self.queue);
                return;
            }
            if self.queue.is_empty() {
                self.queue.callers().add(&callers[own]);
                lets_go(&self.queue);
                drop(ready);
                callers[own].wait(None);
                self.queue.callers().remove(&callers[own]);
                ready = lock();
            }
        }
    }
}

/// Two callers, and a third thread that lets their requests continue.
fn two_callers_are_answered(lets_go: fn(&ReadyQueue)) {
    let executor = Executor::new();
    let (tell, told) = (Arc::new(Mutex::new(None)), Caller::current());
    let event = {
        let executor = Arc::clone(&executor);
        thread::spawn(move || {
            for (request, task) in executor.requests.iter().zip(&executor.tasks) {
                request.lock().unwrap().may_go_on = true;
                task.waker.wake_by_ref();
            }
        })
    };
    let other = {
        let (executor, tell, told) = (Arc::clone(&executor), Arc::clone(&tell), Arc::clone(&told));
        thread::spawn(move || {
            let callers = [told, Caller::current()];
            *tell.lock().unwrap() = Some(Arc::clone(&callers[1]));
            executor.call(1, &callers, lets_go);
        })
    };
    // The other caller must be known before its task is polled here.
    let second = loop {
        if let Some(second) = tell.lock().unwrap().clone() {
            break second;
        }
        thread::yield_now();
    };
    executor.call(0, &[told, second], lets_go);
    event.join().unwrap();
    other.join().unwrap();
}

#[test]
fn no_wake_is_lost_while_an_executor_is_passed_on() {
    in_every_order(|| two_callers_are_answered(|queue| queue.let_go(false)));
}

/// Proves that the scenario can fail: if a thread lets go without looking again and calls nobody, the others sleep
/// forever.
#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_is_lost_where_nobody_looks_again() {
    in_every_order(|| two_callers_are_answered(|queue| queue.set_parked(true)));
}

/// A task that is woken during its poll is polled again, or has already seen the reason for the wake.
#[test]
fn a_task_that_is_woken_while_it_is_polled_sees_why() {
    in_every_order(|| {
        let queue = Arc::new(ReadyQueue::default());
        let _here = queue.run_here();
        let task = OwnWaker::new(0, &queue);
        let events = Arc::new(Mutex::new(0));
        let wakers = [0, 1].map(|_| {
            let (events, waker) = (Arc::clone(&events), task.waker.clone());
            thread::spawn(move || {
                *events.lock().unwrap() += 1;
                waker.wake();
            })
        });
        let mut seen = 0;
        let mut poll = |ready: &mut VecDeque<usize>| {
            queue.drain_into(ready);
            for _ in ready.drain(..) {
                task.set_queued(false);
                seen = *events.lock().unwrap();
            }
        };
        queue.push(0);
        let mut ready = VecDeque::new();
        poll(&mut ready);
        poll(&mut ready);
        for waker in wakers {
            waker.join().unwrap();
        }
        poll(&mut ready);
        assert_eq!(seen, 2, "of two events");
    });
}
