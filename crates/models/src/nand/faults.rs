//! Failing operations: by seeded chance, by wear, and by script.
use std::collections::BTreeSet;
use tantalum_base::Rng;

/// Failure probabilities. All are 0 by default: a flawless array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NandFaults {
    /// Share of blocks that are bad from the factory.
    pub factory_bad: f64,
    /// Probability that programming a flash page fails.
    pub program_fail: f64,
    /// Probability that erasing a block within its endurance fails.
    pub erase_fail: f64,
    /// Probability, at each sensing of a flash page, that its errors are uncorrectable.
    pub uncorrectable: f64,
    /// Number of erases that a block endures.
    pub endurance_erases: u32,
    /// Probability that erasing a block past its endurance fails.
    pub worn_erase_fail: f64,
}

impl Default for NandFaults {
    fn default() -> Self {
        NandFaults {
            factory_bad: 0.0,
            program_fail: 0.0,
            erase_fail: 0.0,
            uncorrectable: 0.0,
            endurance_erases: u32::MAX,
            worn_erase_fail: 0.0,
        }
    }
}

/// Failures of one type of operation.
pub(super) struct Failures {
    rng: Rng,
    count: u64,
    scripted: BTreeSet<u64>,
}

impl Failures {
    pub(super) fn new(seed: u64, label: &str) -> Self {
        Failures { rng: Rng::split(seed, label), count: 0, scripted: BTreeSet::new() }
    }

    /// Makes the operation fail that comes `nth` from now, counted from 0.
    pub(super) fn script(&mut self, nth: u64) {
        self.scripted.insert(self.count + nth);
    }

    /// Cancels all scripted failures.
    pub(super) fn call_off(&mut self) {
        self.scripted.clear();
    }

    /// Counts an operation. Returns whether it fails.
    #[inline]
    pub(super) fn next(&mut self, chance: f64) -> bool {
        let number = self.count;
        self.count += 1;
        let scripted = !self.scripted.is_empty() && self.scripted.remove(&number);
        scripted || (chance > 0.0 && self.rng.chance(chance))
    }
}
