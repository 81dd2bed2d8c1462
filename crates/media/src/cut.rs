//! Power cuts at a chosen operation, for every medium that can lose power.
use std::any::Any;
use std::future::poll_fn;
use std::pin::pin;

/// The fate of an operation that a power cut interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It completes.
    Land,
    /// It has no effect.
    Vanish,
    /// It takes effect in part; each medium defines how.
    Tear,
}

impl Fate {
    /// All fates.
    pub const ALL: [Fate; 3] = [Fate::Land, Fate::Vanish, Fate::Tear];

    /// The word used in text.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Land => "land",
            Fate::Vanish => "vanish",
            Fate::Tear => "tear",
        }
    }
}

/// A planned power cut, at the n-th operation that changes the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPlan {
    /// Operations, counted from now on, that complete before the one that is cut.
    pub after_operations: u64,
    /// The fate of the operation that is cut.
    pub fate: Fate,
}

/// The payload with which a power cut unwinds the executor. It is used if no code may run after the cut, not even the
/// rest of the current poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut;

impl PowerCut {
    /// Stops all tasks at once. The executor's caller catches the payload and drops the tasks.
    pub fn unwind() -> ! {
        // Not a panic: no hook is called and nothing is printed.
        std::panic::resume_unwind(Box::new(PowerCut))
    }

    /// Whether a caught payload is a power cut rather than a panic.
    pub fn is(payload: &(dyn Any + Send)) -> bool {
        payload.is::<PowerCut>()
    }
}

/// Runs `run` until `is_cut` reports a power cut, and then unwinds within the poll in which that happens.
pub(crate) async fn until_cut<T>(is_cut: impl Fn() -> bool, run: impl Future<Output = T>) -> T {
    let mut run = pin!(run);
    poll_fn(|context| {
        // Power may have been cut elsewhere, such as at a store to NVRAM.
        if is_cut() {
            PowerCut::unwind();
        }
        let poll = run.as_mut().poll(context);
        if is_cut() {
            PowerCut::unwind();
        }
        poll
    })
    .await
}
