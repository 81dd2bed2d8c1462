//! The live executor: one thread, a real clock, io_uring or a thread pool.
//!
//! ```text
//! Live         the executor            uring, threads   its two engines    operation   operations in flight
//! file         positioned file I/O     net              sockets            signal      signals
//! remote       channels from other threads              host               a thread with its own executor
//! claim        claims a listening address               socket_file         permissions of a Unix socket
//! memory       the limit on memory                      named_file          opens a path that a user gave
//! spin         a short spin before it blocks           signal_mask         threads that take no signals
//! confined     an executor that moves between threads as a whole    callers   its waiting callers
//! fork         protects a forked child from handles    wall_clock         the time of day, for people
//! ```
//! Tasks hold handles to the executor, and the executor holds tasks. If not all tasks of an executor have ended, call
//! [`Live::drop_tasks`] before dropping it; otherwise it is never freed.
mod callers;
mod claim;
mod confined;
mod file;
mod fork;
mod host;
pub mod memory;
pub mod named_file;
pub mod net;
mod operation;
pub mod remote;
mod side_by_side;
pub mod signal;
mod signal_mask;
mod socket_file;
mod spin;
mod threads;
mod uring;
pub mod wall_clock;

pub(crate) use callers::Callers;
pub use confined::Confined;
pub use file::{LiveFile, ZeroedSpace};
pub use fork::{ParentOnly, Process};
pub use host::{LiveThread, spawn_thread};

use crate::Runtime;
use crate::ready_queue::ReadyQueue;
use crate::task::{Body, JoinHandle, Tasks, waiting_on};
use crate::timers::{Clock, Sleep, Timers};
use operation::{Kind, Operations, Request};
use spin::Spin;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tantalum_base::{Error, ErrorKind, Result, ResultExt};

/// The interface to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// io_uring if the kernel allows it, else threads.
    #[default]
    Auto,
    /// io_uring, or an error.
    Uring,
    /// A pool of threads for files, `poll(2)` for sockets.
    Threads,
    /// File I/O on the executor's own thread, which does nothing else meanwhile; `poll(2)` for sockets.
    Blocking,
}

/// Settings of a live executor.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// The engine.
    pub engine: EngineChoice,
    /// Pool threads of the thread engine (at least one).
    pub io_threads: usize,
    /// Submission entries of the ring; a power of two.
    pub ring_entries: u32,
    /// Maximum time to spin for work before blocking, in nanoseconds. The executor spins less often if spinning finds
    /// nothing. The default is 0 on a single core.
    pub spin_ns: u64,
    /// The id of the group whose members may connect to the Unix sockets at which this executor listens. Without it,
    /// only this user may connect.
    pub socket_group: Option<u32>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        LiveOptions {
            engine: EngineChoice::Auto,
            io_threads: 8,
            ring_entries: 256,
            spin_ns: if several_cores() { 5_000 } else { 0 },
            socket_group: None,
        }
    }
}

/// Whether spinning can help: another thread can run meanwhile.
pub(crate) fn several_cores() -> bool {
    // The query reads files under /proc, so it is done once.
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

/// Ignores poisoning: the data behind these locks is consistent even if a thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the live clock is the real one")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

enum Engine {
    Uring(uring::Uring),
    Threads(threads::Threads),
}

struct Driver {
    engine: Engine,
    /// Threads for durable operations, beside io_uring. On a busy machine such a write took a scheduler's tick (4 ms)
    /// through the ring, and 0.2 ms on a thread that makes the system call itself.
    syncers: Option<threads::Threads>,
    operations: Operations,
}

impl Driver {
    fn start(&mut self, index: u32) -> io::Result<()> {
        let durable = |request: &mut Request| {
            matches!(request.kind, Kind::Write { durable: true } | Kind::SyncData)
        };
        if let Some(syncers) = &mut self.syncers
            && self.operations.request(index).is_some_and(durable)
        {
            syncers.start(index, &mut self.operations);
            return Ok(());
        }
        match &mut self.engine {
            Engine::Uring(uring) => uring.start(index, &mut self.operations),
            Engine::Threads(threads) => {
                threads.start(index, &mut self.operations);
                Ok(())
            }
        }
    }

    fn abandon(&mut self, index: u32) {
        let poll = self
            .operations
            .request(index)
            .is_some_and(|request| matches!(request.kind, Kind::PollIn | Kind::PollOut));
        if !self.operations.abandon(index) || !poll {
            return;
        }
        match &mut self.engine {
            // If the cancel cannot be sent, the wait ends with the next event of the descriptor.
            Engine::Uring(uring) => drop(uring.cancel(index, &mut self.operations)),
            Engine::Threads(threads) => threads.cancel(index, &mut self.operations),
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        if let Some(syncers) = &mut self.syncers {
            syncers.turn(&mut self.operations)?;
        }
        match &mut self.engine {
            Engine::Uring(uring) => uring.turn(&mut self.operations),
            Engine::Threads(threads) => threads.turn(&mut self.operations),
        }
    }

    /// Sleeps until an operation completes, another thread wakes `queue`, or the timeout expires.
    fn park(&mut self, queue: &ReadyQueue, timeout: Option<Duration>) -> io::Result<()> {
        let operations = &mut self.operations;
        match &mut self.engine {
            Engine::Uring(uring) => uring.park(operations, queue, timeout)?,
            Engine::Threads(threads) => threads.park(operations, timeout)?,
        }
        match &mut self.syncers {
            Some(syncers) => syncers.turn(operations),
            None => Ok(()),
        }
    }

    fn sees_completions(&mut self) -> bool {
        if self.syncers.as_ref().is_some_and(threads::Threads::has_completions) {
            return true;
        }
        match &mut self.engine {
            Engine::Uring(uring) => uring.sees_completions(),
            Engine::Threads(threads) => threads.has_completions(),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(syncers) = self.syncers.take() {
            syncers.finish(&mut self.operations);
        }
        if let Engine::Uring(uring) = &mut self.engine
            && uring.drain(&mut self.operations).is_err()
        {
            // The kernel may still write to the buffers, so leak them instead of freeing them.
            std::mem::forget(std::mem::take(&mut self.operations));
        }
    }
}

/// A handle to a live executor. It stays on its thread.
#[derive(Clone)]
pub struct Live(Rc<Core>);

struct Core {
    start: Instant,
    spin: Spin,
    timers: RefCell<Timers>,
    tasks: Tasks,
    driver: RefCell<Driver>,
    socket_group: Option<u32>,
}

/// Whether the environment requests threads instead of io_uring, as for valgrind, which does not support io_uring.
fn is_without_ring() -> bool {
    std::env::var_os("TANTALUM_IO").is_some_and(|value| value == "threads")
}

impl Live {
    /// A new executor for this thread.
    ///
    /// # Errors
    /// `Unsupported` if io_uring is requested and the kernel refuses it; `Io` if there are no threads or descriptors
    /// left.
    pub fn new(options: LiveOptions) -> Result<Self> {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let wake_fd = rustix::event::eventfd(0, flags)
            .map_err(io::Error::from)
            .context(|| "making the executor's eventfd")?;
        let tasks = Tasks::new(ReadyQueue::with_wake_fd(wake_fd));
        let ring = match options.engine {
            EngineChoice::Auto if is_without_ring() => None,
            EngineChoice::Threads | EngineChoice::Blocking => None,
            EngineChoice::Auto => uring::Uring::new(options.ring_entries).ok(),
            EngineChoice::Uring => {
                Some(uring::Uring::new(options.ring_entries).map_err(|error| {
                    Error::with_source(
                        ErrorKind::Unsupported,
                        "the kernel refuses io_uring (see /proc/sys/kernel/io_uring_disabled, \
                         seccomp and RLIMIT_MEMLOCK); choose the engine \"threads\" or \"auto\"",
                        error,
                    )
                })?)
            }
        };
        let pool = |count: usize| {
            let threads = threads::Threads::new(count, Arc::clone(&tasks.queue));
            threads.context(|| "starting I/O threads")
        };
        let mut syncers = None;
        let engine = match ring {
            Some(ring) => {
                syncers = Some(pool(options.io_threads.max(1))?);
                Engine::Uring(ring)
            }
            None => {
                let blocking = options.engine == EngineChoice::Blocking;
                let count = if blocking { 0 } else { options.io_threads.max(1) };
                Engine::Threads(pool(count)?)
            }
        };
        Ok(Live(Rc::new(Core {
            start: monotonic(),
            spin: Spin::new(options.spin_ns),
            timers: RefCell::default(),
            tasks,
            driver: RefCell::new(Driver { engine, syncers, operations: Operations::default() }),
            socket_group: options.socket_group,
        })))
    }

    /// Blocks the thread until `main` is done. Other tasks continue in the next run.
    ///
    /// # Panics
    /// If the kernel fails the wait itself, because no task could receive that error.
    pub fn run<F>(&self, main: F) -> F::Output
    where
        F: Future + 'static,
    {
        let core = &self.0;
        let handle = self.spawn("main", main);
        let _runs_here = core.tasks.queue.run_here();
        let mut ready = VecDeque::new();
        loop {
            core.tasks.queue.drain_into(&mut ready);
            if let Some(result) = handle.try_take() {
                ready.drain(..).for_each(|task| core.tasks.queue.push(task));
                return result;
            }
            let idle = ready.is_empty();
            while let Some(task) = ready.pop_front() {
                core.tasks.poll(task);
            }
            let turned = if idle { core.wait() } else { core.driver.borrow_mut().turn() };
            if let Err(error) = turned {
                panic!("the kernel fails the executor's wait: {error}");
            }
            let mut timers = core.timers.borrow_mut();
            if timers.next_at_ns().is_some() {
                timers.fire(core.now_ns());
            }
        }
    }

    /// Drops every task at its current point. Operations in flight complete on their own.
    pub fn drop_tasks(&self) {
        self.0.tasks.drop_all();
        self.0.timers.borrow_mut().clear();
    }

    /// `"io_uring"`, or `"threads"` (with or without pool threads).
    pub fn engine_name(&self) -> &'static str {
        match self.0.driver.borrow().engine {
            Engine::Uring(_) => "io_uring",
            Engine::Threads(_) => "threads",
        }
    }

    /// Starts a request to the kernel; `label` appears in deadlock reports.
    pub(crate) fn operate(&self, request: Request, label: &'static str) -> Operation {
        Operation { core: Rc::clone(&self.0), label, state: OperationState::New(request) }
    }
}

impl Clock for Core {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn timers(&self) -> &RefCell<Timers> {
        &self.timers
    }
}

impl Core {
    /// Called when no task is ready: submits, spins for a moment, then blocks.
    fn wait(&self) -> io::Result<()> {
        let queue = &self.tasks.queue;
        let mut driver = self.driver.borrow_mut();
        driver.turn()?;
        let (from_ns, limit_ns) = (self.now_ns(), self.spin.limit_ns());
        let mut now_ns = from_ns;
        let next_ns = self.timers.borrow_mut().next_at_ns().unwrap_or(u64::MAX);
        loop {
            let is_complete = driver.sees_completions();
            if is_complete || !queue.is_empty() {
                if now_ns > from_ns {
                    self.spin.found();
                }
                return if is_complete { driver.turn() } else { Ok(()) };
            }
            if now_ns >= next_ns {
                return Ok(());
            }
            if now_ns - from_ns >= limit_ns {
                break;
            }
            std::hint::spin_loop();
            now_ns = self.now_ns();
        }
        let timeout = (next_ns != u64::MAX).then(|| Duration::from_nanos(next_ns - now_ns));
        queue.set_parked(true);
        let result = if !queue.is_empty() || driver.sees_completions() {
            driver.turn()
        } else {
            driver.park(queue, timeout)
        };
        queue.set_parked(false);
        result
    }
}

impl Runtime for Live {
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn sleep_until(&self, at_ns: u64) -> impl Future<Output = ()> + 'static {
        Sleep::new(&self.0, at_ns)
    }

    fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        self.0.tasks.spawn(name, future)
    }

    fn detach(&self, name: &'static str, body: Body) {
        self.0.tasks.detach(name, body);
    }
}

enum OperationState {
    New(Request),
    Started(u32),
    Finished,
}

/// Completes with the kernel's result and the request, which returns its buffer.
pub(crate) struct Operation {
    core: Rc<Core>,
    label: &'static str,
    state: OperationState,
}

impl Future for Operation {
    type Output = (io::Result<usize>, Option<crate::IoBuf>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let core = Rc::clone(&self.core);
        let mut driver = core.driver.borrow_mut();
        match std::mem::replace(&mut self.state, OperationState::Finished) {
            OperationState::New(request) => {
                let index = driver.operations.add(request, context.waker().clone());
                if let Err(error) = driver.start(index) {
                    driver.operations.complete(index, -error.raw_os_error().unwrap_or(5));
                }
                self.state = OperationState::Started(index);
            }
            OperationState::Started(index) => {
                if let Some((result, request)) = driver.operations.take(index, context.waker()) {
                    let result =
                        usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                    return Poll::Ready((result, request.buf));
                }
                self.state = OperationState::Started(index);
            }
            OperationState::Finished => panic!("an operation is polled after its end"),
        }
        waiting_on(self.label);
        Poll::Pending
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let OperationState::Started(index) = self.state {
            self.core.driver.borrow_mut().abandon(index);
        }
    }
}
