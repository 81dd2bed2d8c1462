//! Which operations fail: by seeded chance, by wear, and by script.
use std::collections::BTreeSet;
use tantalum_base::Rng;

/// Chances of failure. All 0 by default: a flawless array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NandFaults {
    /// Share of blocks that are bad from the factory.
    pub factory_bad: f64,
    /// Chance that programming a flash page fails.
    pub program_fail: f64,
    /// Chance that erasing a block fails that is within its endurance.
    pub erase_fail: f64,
    /// Chance, at each sensing of a flash page, that it has decayed past correction.
    pub uncorrectable: f64,
    /// Erases that a block endures.
    pub endurance_erases: u32,
    /// Chance that erasing a block fails that is past its endurance.
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

/// Failures of one kind of operation.
pub(super) struct Failures {
    rng: Rng,
    count: u64,
    scripted: BTreeSet<u64>,
}

impl Failures {
    pub(super) fn new(seed: u64, label: &str) -> Self {
        Failures { rng: Rng::split(seed, label), count: 0, scripted: BTreeSet::new() }
    }

    /// Lets the operation fail that comes `nth` from now, counted from 0.
    pub(super) fn script(&mut self, nth: u64) {
        self.scripted.insert(self.count + nth);
    }

    /// Nothing fails any more that was to.
    pub(super) fn call_off(&mut self) {
        self.scripted.clear();
    }

    /// Counts an operation and tells whether it fails.
    #[inline]
    pub(super) fn next(&mut self, chance: f64) -> bool {
        let number = self.count;
        self.count += 1;
        let scripted = !self.scripted.is_empty() && self.scripted.remove(&number);
        scripted || (chance > 0.0 && self.rng.chance(chance))
    }
}
