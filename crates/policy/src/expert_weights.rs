//! The weights of two experts, LRU and LFU: if an expert's victim is requested again, its weight
//! falls.
//!
//! Uses only additions, multiplications and divisions, so that the weights have the same bits on
//! every machine. The exponential function of a mathematics library need not.

/// The lower limit of a weight: each expert is still asked now and then and can recover.
const WEIGHT_MIN: f64 = 0.01;

/// The weights of both experts, which add up to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertWeights {
    lru: f64,
}

impl ExpertWeights {
    /// Equal weights.
    pub(crate) fn new() -> Self {
        ExpertWeights { lru: 0.5 }
    }

    /// The weight of the LRU expert, 0.01 to 0.99; the LFU expert has the rest up to 1.
    #[inline]
    pub(crate) fn lru(self) -> f64 {
        self.lru
    }

    /// Whether the LFU expert is clearly trusted more. There is a margin because weights that should
    /// be equal differ by rounding.
    pub(crate) fn prefer_lfu(self) -> bool {
        self.lru < 0.49
    }

    /// Blames the LRU expert for a victim: its weight is multiplied by e^-`regret`, and both
    /// weights are scaled to add up to 1.
    pub(crate) fn blame_lru(&mut self, regret: f64) {
        self.lru = normal(self.lru * exp_of_minus(regret), 1.0 - self.lru);
    }

    /// As [`blame_lru`](Self::blame_lru), for the LFU expert.
    pub(crate) fn blame_lfu(&mut self, regret: f64) {
        self.lru = normal(self.lru, (1.0 - self.lru) * exp_of_minus(regret));
    }
}

/// The share of `lru` in the sum of both, within the limits.
fn normal(lru: f64, lfu: f64) -> f64 {
    (lru / (lru + lfu)).clamp(WEIGHT_MIN, 1.0 - WEIGHT_MIN)
}

/// e^-`x` for `x` of 0 or more: a series for a 1024th of `x`, squared ten times.
pub(crate) fn exp_of_minus(x: f64) -> f64 {
    debug_assert!(x >= 0.0);
    // e^-64 is 1.6e-28, which is negligible.
    let part = x.min(64.0) / 1024.0;
    let mut power = (1..=12).rev().fold(1.0, |sum, k| 1.0 - part / f64::from(k) * sum);
    for _ in 0..10 {
        power *= power;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_is_that_of_the_library() {
        for x in (0..6400).map(|at| f64::from(at) / 100.0) {
            let (ours, exact) = (exp_of_minus(x), (-x).exp());
            assert!((ours - exact).abs() <= exact * 1e-12, "e^-{x}: {ours}, not {exact}");
        }
        assert_eq!(exp_of_minus(0.0), 1.0);
        assert!(exp_of_minus(1e300) < 1e-27);
    }

    #[test]
    fn weights_follow_regret_within_limits() {
        let mut weights = ExpertWeights::new();
        weights.blame_lru(2f64.ln());
        assert!((weights.lru() - 1.0 / 3.0).abs() < 1e-12, "halved against the other");
        weights.blame_lfu(2f64.ln());
        assert!((weights.lru() - 0.5).abs() < 1e-12, "and back");
        (0..100).for_each(|_| weights.blame_lru(0.5));
        assert_eq!(weights.lru(), WEIGHT_MIN);
        (0..100).for_each(|_| weights.blame_lfu(0.5));
        assert_eq!(weights.lru(), 1.0 - WEIGHT_MIN);
    }
}
