//! Sizes of files, drawn as in filebench (`cvar-gamma` with shape 1.5).
use std::f64::consts::TAU;
use tantalum_base::Rng;

/// A draw of the gamma distribution of shape 1.5 with the given mean.
///
/// A gamma variable of shape 1.5 is the sum of one of shape 1 (exponential) and one of shape 0.5
/// (half the square of a normal one).
pub(super) fn gamma_1_5(rng: &mut Rng, mean: f64) -> f64 {
    // Avoids the logarithm of 0.
    let mut uniform = || 1.0 - rng.unit();
    let exponential = -uniform().ln();
    // Box and Muller, 1958.
    let normal = (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
    (exponential + normal * normal / 2.0) * mean / 1.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_are_those_of_shape_one_and_a_half() {
        const DRAWS: u32 = 200_000;
        let mut rng = Rng::new(3);
        let draws: Vec<f64> = (0..DRAWS).map(|_| gamma_1_5(&mut rng, 16.0)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
        let variance =
            draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / f64::from(DRAWS);
        // The variance is the square of the mean divided by the shape.
        assert!((mean / 16.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance / (256.0 / 1.5) - 1.0).abs() < 0.03, "{variance}");
        assert!(draws.iter().all(|draw| *draw >= 0.0));
    }
}
