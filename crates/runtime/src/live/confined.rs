//! An executor with all its tasks, run by whichever thread calls.
//!
//! If a synchronous caller had to pass each request to another thread and wait for the answer, each request would
//! cost two thread switches. That is about as much as a durable write on a fast disk, and far more on a busy machine.
//! Here the caller's own thread runs the executor until its request is done:
//!
//! ```text
//! locked      polls the ready tasks, round after round; leaves with its answer
//! unlocked    makes a system call for a read or write that a task requested: one of its own request first,
//!             else the oldest that no thread works on. Several reads of its own request run at the same time
//! unlocked    waits if there is no work: for its answer, or for a call to run the executor
//! ```
//!
//! So the lock is held only while tasks are polled. While no task can continue, requests of other callers are
//! accepted: a read does not wait for the durable write of another caller, and commits that arrive during one share
//! the next. A single caller takes an uncontended lock and switches no thread.
//!
//! A caller that leaves wakes one waiting caller if there is work left. The last one to leave makes the requested
//! system calls; the tasks that they unblock continue with the next caller.
//!
//! The waiting and waking of callers is tested in every order of its steps (`tests/interleavings`). The whole executor
//! is not: it makes system calls, and has far too many steps. `fork` is not tested in this way either: its risk is the
//! state that a copy of the process inherits, not the order of threads. Other tests fork.
use super::callers::Caller;
use super::side_by_side::{READS_MAX, SideBySide};
use super::threads::Job;
use super::{Driver, Engine, EngineChoice, Live, LiveOptions, lock};
use crate::fault_points::Fault;
use crate::ready_queue::ReadyQueue;
use crate::timers::Clock;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;
use tantalum_base::{Error, ErrorKind, Result};

/// An executor with a value that runs on it, usable from any thread.
pub struct Confined<T> {
    inner: Mutex<Inner<T>>,
    queue: Arc<ReadyQueue>,
    reads: SideBySide,
}

struct Inner<T> {
    value: T,
    live: Live,
    /// Number of callers without an answer yet.
    inside: usize,
    /// The tasks of a round; empty between rounds.
    ready: VecDeque<usize>,
}

// SAFETY: the parts that are not `Send` (reference counts, cells) are reachable only through `Inner`, as the contract
// of `Confined::new` demands, and the mutex lets one thread at a time access it. The values that a thread keeps
// without the lock (a `Job`, a `Waker`, its answer) are `Send`.
#[expect(unsafe_code, reason = "a whole executor moves between threads under a lock")]
unsafe impl<T> Send for Inner<T> {}

type Locked<'a, T> = MutexGuard<'a, Inner<T>>;

impl<T: 'static> Confined<T> {
    /// Makes an executor, and the value that runs on it. Its tasks can do I/O on files, but not on sockets.
    ///
    /// # Safety
    /// Neither `make`, nor any closure given to [`call`](Self::call), nor their futures may store anything elsewhere,
    /// such as in a thread-local, that is not `Send` and belongs to the executor or the value.
    ///
    /// # Errors
    /// As for [`Live::new`] and `make`.
    #[expect(unsafe_code, reason = "the compiler cannot see what goes into thread-locals")]
    pub unsafe fn new(make: impl FnOnce(&Live) -> Result<T> + Send) -> Result<Self> {
        let options = LiveOptions { engine: EngineChoice::Blocking, ..LiveOptions::default() };
        let live = Live::new(options)?;
        let value = make(&live).inspect_err(|_| live.drop_tasks())?;
        let queue = Arc::clone(&live.0.tasks.queue);
        let inner = Inner { value, live, inside: 0, ready: VecDeque::new() };
        Ok(Confined { inner: Mutex::new(inner), queue, reads: SideBySide::default() })
    }

    /// Runs the future of `job` to its end, as a task of the executor. Blocks this thread meanwhile.
    ///
    /// # Errors
    /// `Closed` if a caller panicked while it ran the executor, because the state is then unknown.
    pub fn call<R, F>(&self, job: impl FnOnce(&Live, &T) -> F + Send) -> Result<R>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        let _alarm = Alarm(&self.queue);
        let answer = Arc::new(Mutex::new(None));
        let caller = Caller::current();
        let mut inner = self.lock()?;
        inner.inside += 1;
        let own = {
            let (answer, caller) = (Arc::clone(&answer), Arc::clone(&caller));
            let future = job(&inner.live, &inner.value);
            inner.live.0.tasks.add("a caller's request", async move {
                let result = future.await;
                *lock(&answer) = Some(result);
                caller.call();
            })
        };
        loop {
            let Inner { live, ready, .. } = &mut *inner;
            live.poll_round(ready);
            if let Some(result) = lock(&answer).take() {
                self.leave(inner, &own);
                return Ok(result);
            }
            inner = if let Some(job) = inner.live.take_job(&own) {
                let beside = match job.is_read() {
                    true => inner.live.take_reads(&own, READS_MAX - 1),
                    false => Vec::new(),
                };
                match beside.is_empty() {
                    true => self.perform(inner, job)?,
                    false => self.perform_reads(inner, job, beside)?,
                }
            } else if self.queue.is_empty() {
                self.wait(inner, &caller)?
            } else {
                inner
            };
        }
    }

    /// Makes a system call. Others may run the executor meanwhile.
    fn perform<'a>(&'a self, inner: Locked<'a, T>, mut job: Job) -> Result<Locked<'a, T>> {
        self.unlock(inner);
        let result = job.perform();
        let inner = self.lock()?;
        job.finish(result, &mut inner.live.0.driver.borrow_mut().operations);
        Ok(inner)
    }

    /// Makes `read` and the reads in `beside` at the same time. Others may run the executor meanwhile.
    fn perform_reads<'a>(
        &'a self,
        inner: Locked<'a, T>,
        read: Job,
        mut beside: Vec<Job>,
    ) -> Result<Locked<'a, T>> {
        self.unlock(inner);
        beside.push(read);
        let results = self.reads.perform(&mut beside);
        let inner = self.lock()?;
        for (job, result) in beside.into_iter().zip(results) {
            job.finish(result, &mut inner.live.0.driver.borrow_mut().operations);
        }
        Ok(inner)
    }

    /// Waits until there may be work for `caller`.
    fn wait<'a>(&'a self, inner: Locked<'a, T>, caller: &Arc<Caller>) -> Result<Locked<'a, T>> {
        let timeout = inner.live.until_timer();
        self.queue.callers().add(caller);
        while Fault::ExecutorKeptWhileWaiting.is_planted() && self.queue.is_empty() {
            std::thread::yield_now();
        }
        self.unlock(inner);
        caller.wait(timeout);
        self.queue.callers().remove(caller);
        self.lock()
    }

    /// Leaves the executor to other callers. The last one to leave makes the requested system calls.
    fn leave<'a>(&'a self, mut inner: Locked<'a, T>, own: &Waker) {
        inner.inside -= 1;
        while inner.inside == 0
            && let Some(job) = inner.live.take_job(own)
        {
            // If a caller panicked meanwhile, the next caller gets the error.
            let Ok(locked) = self.perform(inner, job) else { return };
            inner = locked;
        }
        if inner.live.until_timer().is_some() {
            self.queue.callers().call_one();
        }
        self.unlock(inner);
    }

    fn lock(&self) -> Result<Locked<'_, T>> {
        let inner = self.inner.lock().map_err(|_| {
            Error::new(ErrorKind::Closed, "an earlier caller panicked while it ran the executor")
        })?;
        self.queue.set_parked(false);
        Ok(inner)
    }

    fn unlock(&self, inner: Locked<'_, T>) {
        self.queue.let_go(inner.live.has_jobs());
    }
}

impl Live {
    /// Polls every ready task once, and wakes tasks whose timers have expired.
    fn poll_round(&self, ready: &mut VecDeque<usize>) {
        let core = &self.0;
        core.tasks.queue.drain_into(ready);
        ready.drain(..).for_each(|task| core.tasks.poll(task));
        let mut timers = core.timers.borrow_mut();
        if timers.next_at_ns().is_some() {
            timers.fire(core.now_ns());
        }
    }

    /// Time until the next timer of a task; `None` if there is none.
    fn until_timer(&self) -> Option<Duration> {
        let at_ns = self.0.timers.borrow_mut().next_at_ns()?;
        Some(Duration::from_nanos(at_ns.saturating_sub(self.0.now_ns())))
    }

    /// Takes a system call to make: one that the task of `own` waits for, else the oldest.
    fn take_job(&self, own: &Waker) -> Option<Job> {
        let Driver { engine, operations, .. } = &mut *self.0.driver.borrow_mut();
        match engine {
            Engine::Threads(threads) => threads.take_job(own, operations),
            Engine::Uring(_) => None,
        }
    }

    /// Takes up to `most` reads that the task of `own` waits for.
    fn take_reads(&self, own: &Waker, most: usize) -> Vec<Job> {
        let Driver { engine, operations, .. } = &mut *self.0.driver.borrow_mut();
        match engine {
            Engine::Threads(threads) => threads.take_reads(own, operations, most),
            Engine::Uring(_) => Vec::new(),
        }
    }

    fn has_jobs(&self) -> bool {
        matches!(&self.0.driver.borrow().engine, Engine::Threads(threads) if threads.has_jobs())
    }
}

/// Calls all waiters if this thread panics; they then find the lock poisoned.
struct Alarm<'a>(&'a ReadyQueue);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.callers().call_all();
        }
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        // Tasks and executor hold references to each other. Without this, neither would be freed.
        self.live.drop_tasks();
    }
}
