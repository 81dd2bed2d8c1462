//! The cost of a physical read compared with a physical write: given as a ratio, or detected by
//! moving averages over the times of operations.
//!
//! Source: Ou, "Caching for flash-based databases and flash-based caching for databases"
//! (dissertation, TU Kaiserslautern), sections 5.1.2 and 5.2.3: the average of the last n times, in
//! an array used as a ring with a running sum, so that the cost of a measurement does not depend on
//! n. The text stores 2 bytes of microseconds; here a time is 4 bytes of nanoseconds that saturate
//! at 4.29 seconds, as a read of a fast device takes less than a microsecond.
//!
//! Weak if one operation is rare: its average may be long out of date.
use crate::policy::Physical;
use tantalum_base::{Result, Spec};

/// The mean of the last `points` values.
#[derive(Clone, Debug)]
pub struct MovingAverage {
    /// The last values, at most `points` of them.
    values_ns: Vec<u32>,
    points: usize,
    /// Index of the oldest value, once there are `points`.
    oldest: usize,
    sum_ns: u64,
}

impl MovingAverage {
    /// An average over the last `points` values, at least one.
    pub fn new(points: usize) -> Self {
        assert!(points > 0, "an average is over one value or more");
        MovingAverage { values_ns: Vec::with_capacity(points), points, oldest: 0, sum_ns: 0 }
    }

    /// Adds a value; values over 4.29 seconds count as 4.29 seconds.
    pub fn push(&mut self, time_ns: u64) {
        let value = u32::try_from(time_ns).unwrap_or(u32::MAX);
        if self.values_ns.len() < self.points {
            self.values_ns.push(value);
        } else {
            let old = std::mem::replace(&mut self.values_ns[self.oldest], value);
            self.sum_ns -= u64::from(old);
            self.oldest = if self.oldest + 1 == self.points { 0 } else { self.oldest + 1 };
        }
        self.sum_ns += u64::from(value);
    }

    /// The mean of the values so far; `None` before the first.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.values_ns.len();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    fn memory_bytes(&self) -> u64 {
        (self.values_ns.capacity() * size_of::<u32>()) as u64
    }
}

/// The source of a policy's cost ratio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CostSpec {
    /// Given costs of a read and a write, in any unit.
    Fixed {
        /// Cost of a read, over 0.
        read: f64,
        /// Cost of a write, over 0.
        write: f64,
    },
    /// Detected from the last `points` reads and writes.
    Auto {
        /// Number of values averaged, for reads and for writes each.
        points: u32,
    },
}

impl CostSpec {
    /// Takes `cost=READ:WRITE` or `cost=auto` (the default) with `points` from a policy's text.
    pub fn take(spec: &mut Spec) -> Result<CostSpec> {
        let words = "auto or READ:WRITE such as 1:4, each 0.001 to 1000000, default auto";
        match spec.text("cost", words) {
            None | Some("auto") => {
                let points = spec.count("points", 1..=1 << 24, 32_768)? as u32;
                Ok(CostSpec::Auto { points })
            }
            Some(text) => CostSpec::parse_ratio(text).ok_or_else(|| spec.refuse("cost", text)),
        }
    }

    fn parse_ratio(text: &str) -> Option<CostSpec> {
        let side = |text: &str| {
            text.trim().parse::<f64>().ok().filter(|cost| (0.001..=1e6).contains(cost))
        };
        let (read, write) = text.split_once(':')?;
        Some(CostSpec::Fixed { read: side(read)?, write: side(write)? })
    }
}

/// The normalised costs of a read and a write: they add up to 1.
///
/// They are 64-bit floats. All operations on them are defined by IEEE 754 to the last bit (add,
/// multiply, divide), so that runs repeat on any machine.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    read: f64,
    write: f64,
    /// Averages of reads and of writes; `None` if the costs are given.
    averages: Option<(MovingAverage, MovingAverage)>,
}

impl Costs {
    /// Detected costs are 1:1 until a read and a write have been measured.
    pub(crate) fn new(spec: CostSpec) -> Self {
        match spec {
            CostSpec::Fixed { read, write } => {
                Costs { read: read / (read + write), write: write / (read + write), averages: None }
            }
            CostSpec::Auto { points } => {
                let average = MovingAverage::new(points as usize);
                Costs { read: 0.5, write: 0.5, averages: Some((average.clone(), average)) }
            }
        }
    }

    /// The normalised cost of a read.
    #[inline]
    pub(crate) fn read(&self) -> f64 {
        self.read
    }

    /// The normalised cost of a write.
    #[inline]
    pub(crate) fn write(&self) -> f64 {
        self.write
    }

    /// The detected means of a read and a write; `None` if costs are given or not known yet.
    pub(crate) fn means_ns(&self) -> Option<(f64, f64)> {
        let (reads, writes) = self.averages.as_ref()?;
        Some((reads.mean_ns()?, writes.mean_ns()?))
    }

    /// An operation took `time_ns`.
    pub(crate) fn measured(&mut self, operation: Physical, time_ns: u64) {
        let Some((reads, writes)) = &mut self.averages else { return };
        match operation {
            Physical::Read => reads.push(time_ns),
            Physical::Write => writes.push(time_ns),
        }
        let Some((read, write)) = self.means_ns() else { return };
        // If no operation takes time, there is no ratio.
        if read + write > 0.0 {
            (self.read, self.write) = (read / (read + write), write / (read + write));
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.averages
            .as_ref()
            .map_or(0, |(reads, writes)| reads.memory_bytes() + writes.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_mean_is_that_of_the_last_values(
            points in 1usize..9,
            values in prop::collection::vec(0u64..6_000_000_000, 0..60),
        ) {
            let mut average = MovingAverage::new(points);
            for (at, &value) in values.iter().enumerate() {
                average.push(value);
                let last = &values[(at + 1).saturating_sub(points)..=at];
                let sum: u64 = last.iter().map(|&value| value.min(u64::from(u32::MAX))).sum();
                prop_assert_eq!(average.mean_ns(), Some(sum as f64 / last.len() as f64));
            }
        }
    }

    #[test]
    fn detected_costs_are_even_until_both_are_known() {
        let mut costs = Costs::new(CostSpec::Auto { points: 2 });
        costs.measured(Physical::Read, 100);
        assert_eq!((costs.read(), costs.write(), costs.means_ns()), (0.5, 0.5, None));
        costs.measured(Physical::Write, 300);
        assert_eq!((costs.read(), costs.write()), (0.25, 0.75));
        for _ in 0..2 {
            costs.measured(Physical::Write, 100);
        }
        assert_eq!((costs.read(), costs.means_ns()), (0.5, Some((100.0, 100.0))));
    }

    #[test]
    fn no_time_at_all_changes_nothing() {
        let mut costs = Costs::new(CostSpec::Auto { points: 1 });
        costs.measured(Physical::Read, 0);
        costs.measured(Physical::Write, 0);
        assert_eq!((costs.read(), costs.write()), (0.5, 0.5));
    }

    #[test]
    fn given_costs_stay() {
        let mut costs = Costs::new(CostSpec::Fixed { read: 1.0, write: 3.0 });
        costs.measured(Physical::Read, 100);
        costs.measured(Physical::Write, 1);
        assert_eq!((costs.read(), costs.write(), costs.memory_bytes()), (0.25, 0.75, 0));
    }
}
