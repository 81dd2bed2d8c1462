//! The virtual-time executor: one thread, seeded, and a clock that jumps to the next event.
use crate::Runtime;
use crate::supervision;
use crate::task::{Body, JoinHandle, Tasks};
use crate::timers::{Clock, Sleep, Timers};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, Rng};

/// Number of turns between two checks for a request to stop.
const TURNS: u64 = 4096;

/// The order of tasks that are ready at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// In the order in which they became ready.
    Fifo,
    /// In an order drawn from this seed; each seed gives another interleaving.
    Shuffled(u64),
}

/// A handle to a virtual-time executor.
#[derive(Clone)]
pub struct Virtual(Rc<Core>);

struct Core {
    now_ns: Cell<u64>,
    timers: RefCell<Timers>,
    tasks: Tasks,
    shuffle: RefCell<Option<Rng>>,
}

/// No task can ever run again, and the main future is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Virtual time of the deadlock.
    pub at_ns: u64,
    /// The name of every live task, and the label of its wait.
    pub waiting: Vec<(&'static str, &'static str)>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock at {} ns:", self.at_ns)?;
        for (name, label) in &self.waiting {
            write!(f, " [{name} waits on {label}]")?;
        }
        Ok(())
    }
}

impl std::error::Error for Deadlock {}

impl Virtual {
    /// A new executor at time 0.
    pub fn new(schedule: Schedule) -> Self {
        let shuffle = match schedule {
            Schedule::Fifo => None,
            Schedule::Shuffled(seed) => Some(Rng::split(seed, "schedule")),
        };
        Virtual(Rc::new(Core {
            now_ns: Cell::new(0),
            timers: RefCell::new(Timers::default()),
            tasks: Tasks::default(),
            shuffle: RefCell::new(shuffle),
        }))
    }

    /// Runs until `main` is done. Other tasks stop at their current points and continue in the next run.
    pub fn run<F>(&self, main: F) -> std::result::Result<F::Output, Deadlock>
    where
        F: Future + 'static,
    {
        let main = self.spawn("main", main);
        loop {
            if let Some(ended) = self.turns(&main) {
                return ended;
            }
        }
    }

    /// Runs up to [`TURNS`] turns. Each turn polls all ready tasks; if there are none, the clock jumps first. `None`
    /// if `main` is not done yet.
    fn turns<T>(&self, main: &JoinHandle<T>) -> Option<std::result::Result<T, Deadlock>> {
        let core = &self.0;
        let _runs_here = core.tasks.queue.run_here();
        let mut ready = VecDeque::new();
        for _ in 0..TURNS {
            core.tasks.queue.drain_into(&mut ready);
            if let Some(result) = main.try_take() {
                // Tasks that are ready but were not polled stay ready for the next run.
                ready.drain(..).for_each(|task| core.tasks.queue.push(task));
                return Some(Ok(result));
            }
            if let Some(rng) = core.shuffle.borrow_mut().as_mut() {
                rng.shuffle(ready.make_contiguous());
            }
            if ready.is_empty() && !self.advance() {
                let waiting = core.tasks.waiting();
                return Some(Err(Deadlock { at_ns: core.now_ns.get(), waiting }));
            }
            while let Some(task) = ready.pop_front() {
                core.tasks.poll(task);
            }
        }
        None
    }

    /// Like [`run`](Self::run), for a `main` that may fail.
    ///
    /// # Errors
    /// `Corrupt` with the context `what` at a deadlock, the errors of `main`, and `Interrupted` if runs were requested
    /// to stop ([`supervision`]).
    pub fn finish<T: 'static>(
        &self,
        what: impl Into<String>,
        main: impl Future<Output = Result<T>> + 'static,
    ) -> Result<T> {
        let main = self.spawn("main", main);
        loop {
            supervision::check_stop()?;
            if let Some(ended) = self.turns(&main) {
                return ended
                    .map_err(|deadlock| Error::with_source(ErrorKind::Corrupt, what, deadlock))?;
            }
            supervision::count_events(TURNS);
        }
    }

    /// Runs `main` to its end on its own executor, then drops the remaining tasks. Otherwise they would never be
    /// freed, because they hold devices, which hold the executor.
    ///
    /// # Errors
    /// As for [`finish`](Self::finish).
    pub fn alone<T: 'static, F: Future<Output = Result<T>> + 'static>(
        what: impl Into<String>,
        main: impl FnOnce(Virtual) -> F,
    ) -> Result<T> {
        let runtime = Virtual::new(Schedule::Fifo);
        let ended = runtime.finish(what, main(runtime.clone()));
        runtime.drop_tasks();
        ended
    }

    /// Drops every task and timer at its current point, as at a power cut. The clock keeps its time.
    pub fn drop_tasks(&self) {
        self.0.tasks.drop_all();
        self.0.timers.borrow_mut().clear();
    }

    /// Jumps to the next timer and fires all timers due then; false if there is none.
    fn advance(&self) -> bool {
        let core = &self.0;
        let mut timers = core.timers.borrow_mut();
        let Some(at_ns) = timers.next_at_ns() else { return false };
        core.now_ns.set(at_ns);
        timers.fire(at_ns);
        true
    }
}

impl Clock for Core {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn timers(&self) -> &RefCell<Timers> {
        &self.timers
    }
}

impl Runtime for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
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
