//! Waits for the home, which may not answer for long, or never. They end if a server that stops has waited long enough.
use std::cell::Cell;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{First, first};

/// A home that has not answered any operation for this long counts as failing.
const SILENT_NS: u64 = 10_000_000_000;

/// The operations of the home in flight.
pub(crate) struct HomeWaits {
    in_flight: Cell<u32>,
    /// The time of the last answer, or of the first operation after a time without any.
    heard_ns: Cell<u64>,
    given_up: Cell<bool>,
    changed: WaitQueue,
}

impl HomeWaits {
    pub fn new() -> Self {
        HomeWaits {
            in_flight: Cell::new(0),
            heard_ns: Cell::new(0),
            given_up: Cell::new(false),
            changed: WaitQueue::new("the home"),
        }
    }

    /// The result of `operation` of the home; `Closed` once nobody waits for the home any more. `now_ns` is the clock.
    pub async fn answer<T>(
        &self,
        now_ns: impl Fn() -> u64,
        operation: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if self.in_flight.get() == 0 {
            self.heard_ns.set(now_ns());
        }
        self.in_flight.set(self.in_flight.get() + 1);
        let _counted = Counted(&self.in_flight);
        match first(operation, self.until_given_up()).await {
            First::One(answer) => {
                self.heard_ns.set(now_ns());
                answer
            }
            First::Other(()) => Err(no_longer_waited_for()),
        }
    }

    /// Ends all waits for the home, and those to come.
    pub fn give_up(&self) {
        self.given_up.set(true);
        self.changed.wake_all();
    }

    /// Completes once nobody waits for the home any more.
    pub async fn until_given_up(&self) {
        self.changed.until(|| self.given_up.get().then_some(())).await;
    }

    /// `Closed` if nobody waits for the home any more.
    pub fn check(&self) -> Result<()> {
        if self.given_up.get() { Err(no_longer_waited_for()) } else { Ok(()) }
    }

    /// The failure of a home that has been silent for too long at `now_ns`.
    pub fn silence(&self, now_ns: u64) -> Option<String> {
        let silent_ns = now_ns.saturating_sub(self.heard_ns.get());
        let is_silent = self.in_flight.get() > 0 && silent_ns >= SILENT_NS;
        is_silent.then(|| format!("the home has not answered for {} s", silent_ns / 1_000_000_000))
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
    let context = "the volume is being closed, and the home was not waited for any longer; it gets the rest after the next opening";
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
        let (runtime, waits) = (Virtual::new(Schedule::Fifo), Rc::new(HomeWaits::new()));
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
            waits.check().unwrap();
            waits.give_up();
            assert_eq!(waits.check().unwrap_err().kind(), ErrorKind::Closed);
            clock.sleep(1).await;
            assert_eq!((waits.in_flight.get(), clock.now_ns()), (0, SECOND_NS + 1));
        });
        assert_eq!(answered.unwrap_err().kind(), ErrorKind::Closed);
    }
}
