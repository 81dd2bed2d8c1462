//! Weights by distance in little memory: exact up to 256, above that in classes no wider than 1/128
//! of their values.

/// Number of classes in each doubling.
const CLASSES: u64 = 128;

/// Weights by distance.
#[derive(Clone, Debug, Default)]
pub(super) struct LogHistogram {
    weights: Vec<f64>,
}

impl LogHistogram {
    /// Adds `weight` at `distance`.
    #[inline]
    pub(super) fn add(&mut self, distance: u64, weight: f64) {
        let (class, _) = class_of(distance);
        if self.weights.len() <= class {
            self.weights.resize(class + 1, 0.0);
        }
        self.weights[class] += weight;
    }

    /// The weight at distances up to `distance`; evenly spread within a class.
    pub(super) fn up_to(&self, distance: u64) -> f64 {
        let (class, shift) = class_of(distance);
        let whole: f64 = self.weights.iter().take(class).sum();
        let first = (distance >> shift) << shift;
        let share = (distance - first + 1) as f64 / (1u64 << shift) as f64;
        whole + share * self.weights.get(class).copied().unwrap_or(0.0)
    }
}

/// The class of `distance`, and the logarithm of the number of its distances.
#[inline]
fn class_of(distance: u64) -> (usize, u32) {
    let shift = distance.max(1).ilog2().saturating_sub(CLASSES.ilog2());
    ((CLASSES * u64::from(shift) + (distance >> shift)) as usize, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_without_gaps() {
        let mut before = None;
        for distance in 0..100_000 {
            let (class, shift) = class_of(distance);
            assert!(before.is_none_or(|b| class == b || class == b + 1), "{distance}");
            assert!(1 << shift <= (distance / 128).max(1));
            before = Some(class);
        }
    }

    #[test]
    fn sums_are_exact_at_the_ends_of_classes_and_even_in_between() {
        let mut histogram = LogHistogram::default();
        for distance in 1..=4096 {
            histogram.add(distance, 2.0);
        }
        for distance in [0, 1, 100, 255, 256, 1000, 1001, 4000, 4095] {
            assert!((histogram.up_to(distance) - 2.0 * distance as f64).abs() < 1e-6, "{distance}");
        }
        assert_eq!(histogram.up_to(1 << 40), 8192.0);
    }
}
