//! Waits for the home, which may take long to answer, or never answer. A server that stops ends these waits after a while.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::{First, first};

/// A home that has not answered any operation for this long counts as failing.
const SILENT_NS: u64 = 10_000_000_000;

/// The operations of the home in flight, and the commands that may wait for it.
#[derive(Default)]
pub(crate) struct HomeWaits {
    in_flight: Cell<u32>,
    /// The time of the last answer. If no operation was in flight, the time at which the next one began.
    heard_ns: Cell<u64>,
    given_up: Cell<bool>,
    /// Tasks to be woken when the home is given up, each under a number of its own.
    waiters: RefCell<BTreeMap<u64, Waker>>,
    next_waiter: Cell<u64>,
}

impl HomeWaits {
    /// The result of `operation` of the home; `Closed` if the home is given up. `now_ns` is the clock.
    pub async fn answer<T>(
        &self,
        now_ns: impl Fn() -> u64,
        operation: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if self.given_up.get() {
            return Err(no_longer_waited_for());
        }
        if self.in_flight.get() == 0 {
            self.heard_ns.set(now_ns());
        }
        self.in_flight.set(self.in_flight.get() + 1);
        let _counted = Counted(&self.in_flight);
        let answer = self.unless_given_up(operation).await;
        if !self.given_up.get() {
            self.heard_ns.set(now_ns());
        }
        answer
    }

    /// The result of `command`, which may wait for the home or its journal; `Closed` if the home is given up.
    pub async fn unless_given_up<T>(&self, command: impl Future<Output = Result<T>>) -> Result<T> {
        match first(command, self.until_given_up()).await {
            First::One(done) => done,
            First::Other(()) => Err(no_longer_waited_for()),
        }
    }

    /// Gives up the home: all waits for it end now, and later ones end at once.
    pub fn give_up(&self) {
        self.given_up.set(true);
        // A wake only queues a task.
        self.waiters.borrow().values().for_each(Waker::wake_by_ref);
    }

    /// Completes when the home is given up.
    pub fn until_given_up(&self) -> GivenUp<'_> {
        GivenUp { waits: self, number: None }
    }

    /// The failure of the home if it has been silent for too long at `now_ns`.
    pub fn silence(&self, now_ns: u64) -> Option<String> {
        let silent_ns = now_ns.saturating_sub(self.heard_ns.get());
        let is_silent = self.in_flight.get() > 0 && silent_ns >= SILENT_NS;
        is_silent.then(|| format!("the home has not answered for {} s", silent_ns / 1_000_000_000))
    }
}

/// The wait for the moment in which the home is given up.
pub(crate) struct GivenUp<'a> {
    waits: &'a HomeWaits,
    number: Option<u64>,
}

impl Future for GivenUp<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waits = self.waits;
        if waits.given_up.get() {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            waits.next_waiter.set(waits.next_waiter.get() + 1);
            waits.next_waiter.get()
        });
        waits.waiters.borrow_mut().insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.waits.waiters.borrow_mut().remove(&number);
        }
    }
}

/// Counts an operation until it is dropped.
struct Counted<'a>(&'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn no_longer_waited_for() -> Error {
    let context = "the volume is closing and no longer waits for the home; the remaining pages are destaged after the next opening";
    Error::new(ErrorKind::Closed, context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use tantalum_runtime::virtual_time::Schedule;
    use tantalum_runtime::{Runtime, Virtual};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Runs `main` beside one operation that takes 30 s.
    fn beside_an_operation(main: impl AsyncFnOnce(Virtual, Rc<HomeWaits>) + 'static) -> Result<()> {
        let (runtime, waits) = (Virtual::new(Schedule::Fifo), Rc::new(HomeWaits::default()));
        let (clock, task, waited) = (runtime.clone(), runtime.clone(), Rc::clone(&waits));
        let run = async move {
            let operation = task.clone().spawn("operation", async move {
                let answer = async {
                    task.sleep(30 * SECOND_NS).await;
                    Ok(())
                };
                waited.answer(|| task.now_ns(), answer).await
            });
            main(clock, waits).await;
            operation.await
        };
        runtime.run(run).expect("no deadlock")
    }

    #[test]
    fn a_silent_home_is_told_until_it_answers() {
        let answered = beside_an_operation(async |clock, waits| {
            clock.sleep(9 * SECOND_NS).await;
            assert_eq!(waits.silence(clock.now_ns()), None);
            clock.sleep(2 * SECOND_NS).await;
            let told = waits.silence(clock.now_ns());
            assert_eq!(told.as_deref(), Some("the home has not answered for 11 s"));
            clock.sleep(20 * SECOND_NS).await;
            assert_eq!(waits.silence(clock.now_ns()), None);
        });
        answered.unwrap();
    }

    #[test]
    fn nobody_waits_after_giving_up() {
        let answered = beside_an_operation(async |clock, waits| {
            clock.sleep(SECOND_NS).await;
            assert_eq!(waits.waiters.borrow().len(), 1);
            waits.give_up();
            clock.sleep(1).await;
            assert_eq!((waits.in_flight.get(), clock.now_ns()), (0, SECOND_NS + 1));
            assert_eq!(waits.waiters.borrow().len(), 0);
            let late = waits.answer(|| 0, async { Ok(()) }).await;
            assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
        });
        assert_eq!(answered.unwrap_err().kind(), ErrorKind::Closed);
    }
}
