//! Zipf-distributed ranks in constant memory and time.
//!
//! Source: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
//! TOMACS 6(3), 1996: draw from the integral of the hat x^-theta by inversion, and reject the small excess of the hat
//! over the steps.
use tantalum_base::Rng;

/// Draws rank `k` (from 1) with a probability proportional to `k^-theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    theta: f64,
    ranks: f64,
    /// The integral up to the left end of rank 1, minus its step.
    low: f64,
    /// The integral up to the right end of the last rank.
    high: f64,
    /// A rank within this distance of the drawn point needs no test.
    sure: f64,
}

impl Zipf {
    /// A distribution over ranks 1 to `ranks` with exponent `theta` (0 is uniform).
    pub fn new(ranks: u64, theta: f64) -> Zipf {
        assert!(ranks > 0 && theta >= 0.0, "Zipf needs ranks and an exponent of at least 0");
        let integral = |x| integral(x, theta);
        Zipf {
            theta,
            ranks: ranks as f64,
            low: integral(1.5) - 1.0,
            high: integral(ranks as f64 + 0.5),
            sure: 2.0 - inverse(integral(2.5) - 2f64.powf(-theta), theta),
        }
    }

    /// The next rank, from 1.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.unit() * (self.low - self.high);
            let x = inverse(u, self.theta);
            let rank = (x + 0.5).floor().clamp(1.0, self.ranks);
            if rank - x <= self.sure
                || u >= integral(rank + 0.5, self.theta) - (-self.theta * rank.ln()).exp()
            {
                return rank as u64;
            }
        }
    }
}

/// Integral of x^-theta from 1 on: (x^(1-theta) - 1) / (1-theta), or ln x if theta is 1.
#[inline]
fn integral(x: f64, theta: f64) -> f64 {
    let log = x.ln();
    log * exp_m1_ratio((1.0 - theta) * log)
}

/// The x whose integral is `y`.
#[inline]
fn inverse(y: f64, theta: f64) -> f64 {
    let t = (y * (1.0 - theta)).max(-1.0);
    (y * ln_1p_ratio(t)).exp()
}

/// (e^x - 1) / x; near 0 by its series.
#[inline]
fn exp_m1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x; near 0 by its series.
#[inline]
fn ln_1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws must fit the exact probabilities: chi-square over all ranks.
    #[test]
    fn ranks_come_as_often_as_they_should() {
        const RANKS: u64 = 50;
        const DRAWS: u64 = 200_000;
        for theta in [0.0, 0.5, 0.99, 1.0, 1.3] {
            let zipf = Zipf::new(RANKS, theta);
            let mut rng = Rng::new(11);
            let mut counts = [0u64; RANKS as usize];
            for _ in 0..DRAWS {
                counts[zipf.next(&mut rng) as usize - 1] += 1;
            }
            let weight = |rank: usize| ((rank + 1) as f64).powf(-theta);
            let sum: f64 = (0..RANKS as usize).map(weight).sum();
            let chi_square: f64 = (0..RANKS as usize)
                .map(|rank| {
                    let expected = DRAWS as f64 * weight(rank) / sum;
                    (counts[rank] as f64 - expected).powi(2) / expected
                })
                .sum();
            // 49 degrees of freedom: 1 in 10,000 lies above 94.
            assert!(chi_square < 94.0, "theta {theta}: chi-square {chi_square}");
        }
    }

    #[test]
    fn one_rank_is_always_drawn() {
        let zipf = Zipf::new(1, 1.0);
        assert_eq!(zipf.next(&mut Rng::new(1)), 1);
    }
}
