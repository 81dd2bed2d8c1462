//! Power cuts at a chosen operation: what every medium that can be cut shares.
use std::any::Any;

/// What becomes of an operation that a power cut interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is complete after all.
    Land,
    /// It leaves nothing.
    Vanish,
    /// It is half done. Each medium says what that is.
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

/// A power cut to come: at the n-th operation that changes the medium, which meets `fate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPlan {
    /// Operations, counted from now on, that complete before the one that is cut.
    pub after_operations: u64,
    /// The fate of that one.
    pub fate: Fate,
}

/// What a cut unwinds the executor with where nothing may run any more, not even to the end of the
/// poll in which it falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut;

impl PowerCut {
    /// Stops everything here. Whoever runs the executor catches it and drops the tasks.
    pub fn unwind() -> ! {
        // Not a panic: no hook is called and nothing is printed.
        std::panic::resume_unwind(Box::new(PowerCut))
    }

    /// Whether a caught payload is a power cut and no panic.
    pub fn is(payload: &(dyn Any + Send)) -> bool {
        payload.is::<PowerCut>()
    }
}
