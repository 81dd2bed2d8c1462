//! The virtual-time executor: one thread, seeded, and a clock that jumps to the next event.
use crate::Runtime;
use crate::task::{JoinHandle, Tasks, waiting_on};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
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
    timer_count: Cell<u64>,
    timers: RefCell<BinaryHeap<Reverse<Timer>>>,
    tasks: Tasks,
    shuffle: RefCell<Option<Rng>>,
}

struct Timer {
    at_ns: u64,
    // Ties go to the timer that was set first.
    count: u64,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.count).cmp(&(other.at_ns, other.count))
    }
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
            timer_count: Cell::new(0),
            timers: RefCell::new(BinaryHeap::new()),
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
        let Some(Reverse(first)) = timers.peek() else { return false };
        let now_ns = first.at_ns;
        core.now_ns.set(now_ns);
        while let Some(Reverse(timer)) = timers.peek() {
            if timer.at_ns > now_ns {
                break;
            }
            if let Some(Reverse(timer)) = timers.pop() {
                timer.waker.wake();
            }
        }
        true
    }
}

impl Runtime for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }

    fn sleep_until(&self, at_ns: u64) -> impl Future<Output = ()> + 'static {
        Sleep { core: Rc::clone(&self.0), at_ns, set: false }
    }

    fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        self.0.tasks.spawn(name, future, None)
    }
}

struct Sleep {
    core: Rc<Core>,
    at_ns: u64,
    set: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.core.now_ns.get() >= self.at_ns {
            return Poll::Ready(());
        }
        if !self.set {
            self.set = true;
            let count = self.core.timer_count.get();
            self.core.timer_count.set(count + 1);
            let timer = Timer { at_ns: self.at_ns, count, waker: context.waker().clone() };
            self.core.timers.borrow_mut().push(Reverse(timer));
        }
        waiting_on("a timer");
        Poll::Pending
    }
}
