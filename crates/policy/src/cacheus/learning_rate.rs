//! The learning rate, by which weights follow regret: hill climbing on the hit ratio, with random
//! restarts.
//!
//! Source: the paper's algorithm for the learning rate. A change of less than a thousandth counts
//! as none, as in its authors' program. Each change is a fraction of the one before, so without
//! this rule the changes would never end and there would be no restart.
use tantalum_base::Rng;

/// The limits of the learning rate. A change of less than the lower one counts as none.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 1.0;
/// Number of periods without a better hit ratio after which the rate is drawn anew.
const UNLEARNED_MAX: u32 = 10;

/// The learning rate of this period, and the state that determines the next one.
#[derive(Debug)]
pub(super) struct LearningRate {
    rate: f64,
    /// The rate of the period before; 0 before the first.
    rate_before: f64,
    /// The hit ratio of the period before.
    hit_ratio_before: f64,
    /// Periods in which the rate stood still and the hit ratio did not grow, since it last moved.
    unlearned: u32,
    /// Requests a period.
    period: u32,
    /// Requests and hits in this period.
    requests: u32,
    hits: u32,
}

impl LearningRate {
    /// A rate drawn from `rng`, for periods of `period` requests.
    pub(super) fn new(period: u32, rng: &mut Rng) -> Self {
        LearningRate {
            rate: drawn(rng),
            rate_before: 0.0,
            hit_ratio_before: 0.0,
            unlearned: 0,
            period,
            requests: 0,
            hits: 0,
        }
    }

    pub(super) fn get(&self) -> f64 {
        self.rate
    }

    /// Counts a request; at the end of a period the rate changes.
    #[inline]
    pub(super) fn served(&mut self, hit: bool, rng: &mut Rng) {
        self.requests += 1;
        self.hits += u32::from(hit);
        if self.requests == self.period {
            self.end_period(rng);
        }
    }

    /// If the last change came with a better hit ratio, changes in the same direction; if with a
    /// worse one, in the other direction.
    fn end_period(&mut self, rng: &mut Rng) {
        let hit_ratio = f64::from(self.hits) / f64::from(self.period);
        let gain = hit_ratio - self.hit_ratio_before;
        let change = self.rate - self.rate_before;
        (self.rate_before, self.hit_ratio_before) = (self.rate, hit_ratio);
        (self.requests, self.hits) = (0, 0);
        if change.abs() >= RATE_MIN {
            let step = (self.rate * change).abs();
            let step = if gain / change > 0.0 { step } else { -step };
            self.rate = (self.rate + step).clamp(RATE_MIN, RATE_MAX);
            self.unlearned = 0;
        } else if hit_ratio == 0.0 || gain <= 0.0 {
            self.unlearned += 1;
            if self.unlearned == UNLEARNED_MAX {
                self.unlearned = 0;
                self.rate = drawn(rng);
            }
        }
    }
}

fn drawn(rng: &mut Rng) -> f64 {
    RATE_MIN + (RATE_MAX - RATE_MIN) * rng.unit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(rate: &mut LearningRate, hits: u32, rng: &mut Rng) -> f64 {
        (0..10).for_each(|request| rate.served(request < hits, rng));
        rate.get()
    }

    #[test]
    fn the_rate_climbs_with_the_hit_ratio_and_starts_anew_where_nothing_helps() {
        let mut rng = Rng::new(1);
        let mut rate = LearningRate::new(10, &mut rng);
        let first = rate.get();
        assert!((RATE_MIN..RATE_MAX).contains(&first));
        // The rate rose from 0 to its first value, and so did the hit ratio.
        let second = period(&mut rate, 5, &mut rng);
        assert_eq!(second, (first + first * first).min(1.0));
        // The rate rose again and the hit ratio fell.
        let third = period(&mut rate, 3, &mut rng);
        assert_eq!(third, second - second * (second - first));
        // The rate fell and the hit ratio fell, so the rate rises.
        assert!(period(&mut rate, 2, &mut rng) > third);
        // The rate falls in ever smaller steps until it stands still and is drawn again.
        let mut still = 0;
        for _ in 0..100 {
            let before = rate.get();
            if period(&mut rate, 0, &mut rng) == before {
                still += 1;
            } else if still > 0 {
                assert_eq!(still, UNLEARNED_MAX - 1, "drawn after other than ten periods");
                return;
            }
        }
        panic!("never drawn again");
    }
}
