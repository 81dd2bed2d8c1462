//! How long an executor looks for work before it blocks. To be woken costs more than to look around for a moment; but where
//! nothing ever comes so soon, the moment is lost to whoever else wants the core.
use std::cell::Cell;

/// After so many looks in a row that found nothing, only every [`PROBE_EVERY`]th wait looks.
const FRUITLESS_MAX: u32 = 4;
const PROBE_EVERY: u32 = 32;

pub(crate) struct Spin {
    longest_ns: u64,
    /// Waits since the last look that found something.
    fruitless: Cell<u32>,
}

impl Spin {
    pub(crate) fn new(longest_ns: u64) -> Self {
        Spin { longest_ns, fruitless: Cell::new(0) }
    }

    /// A wait begins: how long it may look around, in nanoseconds.
    pub(crate) fn limit_ns(&self) -> u64 {
        let fruitless = self.fruitless.get();
        self.fruitless.set(fruitless.wrapping_add(1));
        if fruitless < FRUITLESS_MAX || fruitless.is_multiple_of(PROBE_EVERY) {
            self.longest_ns
        } else {
            0
        }
    }

    /// The look found something.
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
