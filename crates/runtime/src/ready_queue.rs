//! Tasks whose wakers fired, until their executor polls them.
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

/// The executor that runs on this thread. Nearly all wakers fire here, so what they wake needs no lock.
struct Here {
    /// Where its queue is in memory, which tells it from others; 0 where none runs.
    runs: Cell<usize>,
    /// Tasks of that executor.
    woken: RefCell<VecDeque<usize>>,
}

/// `None` where this thread is at its end and has no such value any more: callers may come even then, as destructors.
fn on_this_thread<T>(look: impl FnOnce(&Here) -> T) -> Option<T> {
    HERE.try_with(look).ok()
}

/// Numbers of tasks whose wakers fired, in order. Shared with wakers, which may fire on any thread.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// Tasks that were woken where the executor does not run.
    shared: Mutex<VecDeque<usize>>,
    /// Whether there are any; changed under the lock.
    has_shared: AtomicBool,
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

    /// Says that the executor runs on this thread until what is returned is dropped.
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

    /// What `look` finds on this thread, where the executor runs here.
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
        // What is shared while this executor runs comes from within a run of another one, or from another thread.
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

    /// Says that the executor is about to block. What was pushed before shows in `is_empty`
    /// afterwards; what is pushed later wakes it.
    pub(crate) fn set_parked(&self, parked: bool) {
        self.parked.store(parked, Ordering::SeqCst);
    }

    /// Says that whoever ran the executor lets go of it, under the lock that lets another one run it. Who does not wait looks for
    /// work when it comes back; of those that wait one is called, where there is some.
    pub(crate) fn let_go(&self, has_jobs: bool) {
        self.set_parked(true);
        if !self.is_empty() || has_jobs {
            self.callers.call_one();
        }
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

/// An executor runs on this thread. Dropped, the one goes on that ran here before, if one did.
pub(crate) struct RunsHere<'a> {
    queue: &'a ReadyQueue,
    /// What there was in place of it; `None` where it runs within a run of its own.
    outer: Option<(usize, VecDeque<usize>)>,
}

impl Drop for RunsHere<'_> {
    fn drop(&mut self) {
        let Some((runs, woken)) = self.outer.take() else { return };
        let left = on_this_thread(|here| {
            here.runs.set(runs);
            here.woken.replace(woken)
        });
        // They are polled when it runs again.
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            self.queue.share(left);
        }
    }
}
