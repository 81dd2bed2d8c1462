//! The time that an executor spins for work before it blocks. A wake-up costs more than a short spin. But if work
//! never arrives that soon, the spin only wastes a core that others could use.
use std::cell::Cell;

/// After this many fruitless spins in a row, only every [`PROBE_EVERY`]th wait spins.
const FRUITLESS_MAX: u32 = 4;
const PROBE_EVERY: u32 = 32;

pub(crate) struct Spin {
    longest_ns: u64,
    /// Number of waits since the last spin that found work.
    fruitless: Cell<u32>,
}

impl Spin {
    pub(crate) fn new(longest_ns: u64) -> Self {
        Spin { longest_ns, fruitless: Cell::new(0) }
    }

    /// Called at the start of a wait. Returns the time that it may spin, in nanoseconds.
    pub(crate) fn limit_ns(&self) -> u64 {
        let fruitless = self.fruitless.get();
        self.fruitless.set(fruitless.wrapping_add(1));
        if fruitless < FRUITLESS_MAX || fruitless.is_multiple_of(PROBE_EVERY) {
            self.longest_ns
        } else {
            0
        }
    }

    /// Called if a spin found work.
    pub(crate) fn found(&self) {
        self.fruitless.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_find_nothing_become_rare() {
        let spin = Spin::new(5_000);
        let looks = |spin: &Spin, waits: u32| (0..waits).filter(|_| spin.limit_ns() > 0).count();
        assert_eq!(looks(&spin, 4), 4);
        assert_eq!(looks(&spin, 320), 10, "and are tried again now and then");
        spin.found();
        assert_eq!(looks(&spin, 4), 4, "one that finds something brings them back");
        assert_eq!(looks(&Spin::new(0), 100), 0);
    }
}
