//! Counts of durations by length.
use std::cell::Cell;

/// Upper bounds of the buckets, in nanoseconds: six per decade from 10 us to 10 s, so a percentile read from them is
/// at most 1.5 times the true value. Longer durations go into one additional bucket.
pub const BOUNDS_NS: [u64; 37] = bounds();

const fn bounds() -> [u64; 37] {
    let steps = [10, 15, 20, 30, 50, 70];
    let mut bounds = [0; 37];
    let (mut at, mut decade_ns) = (0, 1_000);
    while at < bounds.len() {
        bounds[at] = steps[at % steps.len()] * decade_ns;
        at += 1;
        if at % steps.len() == 0 {
            decade_ns *= 10;
        }
    }
    bounds
}

/// Counts durations, for one thread. Recording costs one search among the bounds.
pub struct Histogram {
    // Per bucket, not cumulative; the last is for durations longer than every bound.
    counts: [Cell<u64>; BOUNDS_NS.len() + 1],
    sum_ns: Cell<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: [const { Cell::new(0) }; BOUNDS_NS.len() + 1], sum_ns: Cell::new(0) }
    }
}

impl Histogram {
    /// Counts a duration of `duration_ns`.
    pub fn record(&self, duration_ns: u64) {
        let count = &self.counts[BOUNDS_NS.partition_point(|bound_ns| *bound_ns < duration_ns)];
        count.set(count.get() + 1);
        self.sum_ns.set(self.sum_ns.get().saturating_add(duration_ns));
    }

    /// The counts so far.
    pub fn read(&self) -> HistogramReading {
        let counts = self.counts.iter().map(Cell::get).collect();
        HistogramReading { counts, sum_ns: self.sum_ns.get() }
    }
}

/// The content of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramReading {
    /// The number of durations in each bucket of [`BOUNDS_NS`], not cumulative, followed by the number longer than
    /// all bounds.
    pub counts: Vec<u64>,
    /// Their sum, in nanoseconds.
    pub sum_ns: u64,
}

impl HistogramReading {
    /// The number of durations counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_go_from_ten_microseconds_to_ten_seconds() {
        assert_eq!(BOUNDS_NS[..7], [10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000]);
        assert_eq!(BOUNDS_NS[36], 10_000_000_000);
        assert!(BOUNDS_NS.is_sorted());
    }

    #[test]
    fn a_duration_on_a_bound_is_below_it() {
        let histogram = Histogram::default();
        for duration_ns in [0, 10_000, 10_001, 15_000, 10_000_000_000, 10_000_000_001] {
            histogram.record(duration_ns);
        }
        let read = histogram.read();
        assert_eq!(read.counts[..3], [2, 2, 0]);
        assert_eq!(read.counts[36..], [1, 1]);
        assert_eq!((read.count(), read.sum_ns), (6, 20_000_035_002));
        histogram.record(u64::MAX);
        assert_eq!((histogram.read().counts[37], histogram.read().sum_ns), (2, u64::MAX));
    }
}
