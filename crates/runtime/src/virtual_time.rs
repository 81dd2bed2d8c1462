//! The virtual-time executor: one thread, seeded, and a clock that jumps to the next event.
use crate::Runtime;
use crate::task::{JoinHandle, Tasks, waiting_on};
use crate::timers::{TimerId, Timers};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tantalum_base::Rng;

/// In which order tasks run that are ready at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// In the order in which they became ready.
    Fifo,
    /// In an order drawn from this seed: another interleaving for each.
    Shuffled(u64),
}

/// Handle on a virtual-time executor.
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
    /// Virtual time at which everything stood still.
    pub at_ns: u64,
    /// Every live task's name and what it waits on.
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

    /// Runs until `main` is done. Other tasks stay where they are and go on in the next run.
    pub fn run<F>(&self, main: F) -> Result<F::Output, Deadlock>
    where
        F: Future + 'static,
    {
        let core = &self.0;
        let handle = self.spawn("main", main);
        let mut ready = VecDeque::new();
        loop {
            core.tasks.queue.drain_into(&mut ready);
            if let Some(result) = handle.try_take() {
                // What was ready but not run yet stays ready for the next run.
                ready.drain(..).for_each(|task| core.tasks.queue.push(task));
                return Ok(result);
            }
            if let Some(rng) = core.shuffle.borrow_mut().as_mut() {
                rng.shuffle(ready.make_contiguous());
            }
            if ready.is_empty() && !self.advance() {
                return Err(Deadlock { at_ns: core.now_ns.get(), waiting: core.tasks.waiting() });
            }
            while let Some(task) = ready.pop_front() {
                core.tasks.poll(task);
            }
        }
    }

    /// Drops every task and timer where it stands, as a power cut does. The clock stays.
    pub fn drop_tasks(&self) {
        self.0.tasks.drop_all();
        self.0.timers.borrow_mut().clear();
    }

    /// Jumps to the next timer and fires all that are due then; false where there is none.
    fn advance(&self) -> bool {
        let core = &self.0;
        let mut timers = core.timers.borrow_mut();
        let Some(at_ns) = timers.next_at_ns() else { return false };
        core.now_ns.set(at_ns);
        timers.fire(at_ns);
        true
    }
}

impl Runtime for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }

    fn sleep_until(&self, at_ns: u64) -> impl Future<Output = ()> + 'static {
        Sleep { core: Rc::clone(&self.0), at_ns, timer: None }
    }

    fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        self.0.tasks.spawn(name, future)
    }
}

struct Sleep {
    core: Rc<Core>,
    at_ns: u64,
    timer: Option<TimerId>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.core.now_ns.get() >= self.at_ns {
            self.timer = None;
            return Poll::Ready(());
        }
        let timer = self.core.timers.borrow_mut().wait(self.timer, self.at_ns, context.waker());
        self.timer = Some(timer);
        waiting_on("a timer");
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.core.timers.borrow_mut().cancel(timer);
        }
    }
}
