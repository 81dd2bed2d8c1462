//! Tasks whose wakers fired and that wait until their executor polls them.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::live::Callers;
use crate::primitives::{AtomicBool, Mutex, MutexGuard, thread_local};

thread_local! {
    static HERE: Here = const { Here { runs: Cell::new(0), woken: RefCell::new(VecDeque::new()) } };
}

/// The executor that runs on this thread. Nearly all wakers fire on it, and the tasks that they wake need no lock.
struct Here {
    /// Address of the executor's queue in memory, as its identity; 0 if no executor runs.
    runs: Cell<usize>,
    /// Woken tasks of that executor.
    woken: RefCell<VecDeque<usize>>,
}

/// `None` if the thread-local is already destroyed because the thread is ending: destructors may still call an
/// executor then.
fn on_this_thread<T>(look: impl FnOnce(&Here) -> T) -> Option<T> {
    HERE.try_with(look).ok()
}

/// Numbers of tasks whose wakers fired, in order. Shared with wakers, which may fire on any thread.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// Tasks that were woken on a thread where the executor does not run.
    shared: Mutex<VecDeque<usize>>,
    /// Whether `shared` is non-empty; changed under its lock.
    has_shared: AtomicBool,
    // True while no thread runs the executor, or the thread that runs it is about to stop. A push must then also wake
    // a thread.
    parked: AtomicBool,
    // Threads that could run it, if the executor moves between threads.
    callers: Callers,
    // An eventfd for an executor with its own thread; `None` in virtual time, because that executor never blocks.
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

    /// Marks this executor as running on this thread until the returned guard is dropped.
    pub(crate) fn run_here(&self) -> RunsHere<'_> {
        let outer = on_this_thread(|here| {
            let is_inner = here.runs.get() == self.place();
            (!is_inner).then(|| (here.runs.replace(self.place()), here.woken.take()))
        });
        RunsHere { queue: self, outer: outer.flatten() }
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The result of `look` on this thread's state; `None` if the executor does not run here.
    fn where_it_runs<T>(&self, look: impl FnOnce(&Here) -> T) -> Option<T> {
        on_this_thread(|here| (here.runs.get() == self.place()).then(|| look(here))).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: usize) {
        let pushed = self.where_it_runs(|here| here.woken.borrow_mut().push_back(task));
        if pushed.is_none() {
            self.share([task]);
        }
    }

    fn share(&self, tasks: impl IntoIterator<Item = usize>) {
        let mut shared = self.lock();
        shared.extend(tasks);
        self.has_shared.store(!shared.is_empty(), Ordering::Release);
        drop(shared);
        self.unpark();
    }

    /// Moves everything that is ready into `into`.
    pub(crate) fn drain_into(&self, into: &mut VecDeque<usize>) {
        // While this executor runs, shared tasks come from another thread, or from another executor that runs nested
        // inside it.
        self.where_it_runs(|here| into.append(&mut here.woken.borrow_mut()));
        if self.has_shared.load(Ordering::Acquire) {
            let mut shared = self.lock();
            into.append(&mut shared);
            self.has_shared.store(false, Ordering::Release);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let none_here = || self.where_it_runs(|here| here.woken.borrow().is_empty());
        self.lock().is_empty() && none_here().unwrap_or(true)
    }

    /// Marks the executor as about to block. Earlier pushes are visible in a subsequent `is_empty`; later pushes wake
    /// it.
    pub(crate) fn set_parked(&self, parked: bool) {
        self.parked.store(parked, Ordering::SeqCst);
    }

    /// Called when a thread stops running the executor, while it still holds the lock that lets another thread run it.
    /// Wakes one waiting caller if there is work. Callers that are not waiting look for work themselves before they
    /// wait.
    pub(crate) fn let_go(&self, has_jobs: bool) {
        self.set_parked(true);
        if !self.is_empty() || has_jobs {
            self.callers.call_one();
        }
    }

    /// Wakes the executor if it is blocked; otherwise this costs one load.
    pub(crate) fn unpark(&self) {
        if self.parked.load(Ordering::SeqCst)
            && self.parked.swap(false, Ordering::SeqCst)
            && !self.callers.call_one()
            && let Some(fd) = &self.wake_fd
        {
            // Fails only if the counter is full; the executor wakes up in that case anyway.
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        }
    }
}

/// Marks an executor as running on this thread. On drop, the executor that ran here before continues, if any.
pub(crate) struct RunsHere<'a> {
    queue: &'a ReadyQueue,
    /// The state that it replaced; `None` if it runs nested within itself.
    outer: Option<(usize, VecDeque<usize>)>,
}

impl Drop for RunsHere<'_> {
    fn drop(&mut self) {
        let Some((runs, woken)) = self.outer.take() else { return };
        let left = on_this_thread(|here| {
            here.runs.set(runs);
            here.woken.replace(woken)
        });
        // The remaining tasks are polled when the executor runs again.
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            self.queue.share(left);
        }
    }
}
