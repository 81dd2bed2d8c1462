//! Published closed forms of write amplification under uniform random writes: pure functions.
//!
//! On a device of `utilisation` u, a share u of the slots holds live pages. Write amplification is
//! the number of slots programmed per written page.

/// The main branch of Lambert's W for arguments in `-1/e ..= 0`: the w in -1..=0 with w e^w = x.
fn lambert_w(x: f64) -> f64 {
    let (mut low, mut high) = (-1.0f64, 0.0f64);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if middle * middle.exp() < x {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// FIFO cleaning, zones of any size: A = a / (a + W(-a e^-a)), a = 1 / utilisation.
///
/// Source: Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012, section on LRU
/// cleaning; the same fixed point is in Menon, HPDC 1995, and Robinson, ACM SIGOPS 30(4), 1996.
pub fn fifo(utilisation: f64) -> f64 {
    let a = 1.0 / utilisation;
    a / (a + lambert_w(-a * (-a).exp()))
}

/// Greedy cleaning with zones of `zone_pages` pages: A = n / (n - (x - 1)), where x = 1/2 - n/a *
/// W(-k a e^(-k a)), k = 1 + 1/(2n) and a = 1 / utilisation.
///
/// Source: Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012, section on greedy
/// cleaning with blocks of finite size.
pub fn greedy(utilisation: f64, zone_pages: u32) -> f64 {
    let (a, n) = (1.0 / utilisation, f64::from(zone_pages));
    let k = 1.0 + 1.0 / (2.0 * n);
    let x = 0.5 - n / a * lambert_w(-k * a * (-k * a).exp());
    n / (n - (x - 1.0))
}

/// The zones from which d-choices cleaning draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// All zones, as published.
    All,
    /// Zones with garbage: moving the others frees nothing, and the FTL here never does it. The same
    /// fixed point with s(i) / s(n - 1) for s(i) in the choice.
    WithGarbage,
}

/// d-choices cleaning with zones of `zone_pages` pages, for infinitely many zones. `None` if the
/// search fails.
///
/// Source: Van Houdt, "A mean field model for a class of garbage collection algorithms in
/// flash-based solid state drives", SIGMETRICS 2013: the fixed point of the drift under uniform
/// random writes. With s(i) the share of zones with at most i live pages, the flow of zones from i+1
/// down to i live pages is that of victims with at most i: (i+1) (s(i+1) - s(i)) = K (1 - (1 -
/// s(i))^d). K and s(0) follow from s(n) = 1 and the mean number of live pages; the victims' mean
/// is J = sum of (1 - s(i))^d, and A = n / (n - J).
pub fn d_choices(utilisation: f64, zone_pages: u32, choices: u32, draws: Draws) -> Option<f64> {
    let mut garbage = 1.0;
    let mut amplification = d_choices_of(utilisation, zone_pages, choices, garbage)?;
    if draws == Draws::WithGarbage {
        for _ in 0..30 {
            // Zones without garbage are those that were filled but not overwritten since: the rate
            // of victims, 1 / n per write, over the rate at which one of their pages is overwritten.
            let full = utilisation * amplification / f64::from(zone_pages);
            garbage = 1.0 - full;
            amplification = d_choices_of(utilisation, zone_pages, choices, garbage)?;
        }
    }
    Some(amplification)
}

/// The fixed point if victims are drawn from the share `garbage` of zones.
fn d_choices_of(utilisation: f64, zone_pages: u32, choices: u32, garbage: f64) -> Option<f64> {
    let (n, d) = (f64::from(zone_pages), f64::from(choices));
    // s(n) and the sum over i < n of the chance that a victim has at most i live pages.
    let climb = |k: f64, s0: f64| {
        let (mut s, mut sum) = (s0, 0.0);
        for i in 0..zone_pages {
            let drawn = s / garbage;
            let share = if drawn >= 1.0 { 1.0 } else { -(d * (-drawn).ln_1p()).exp_m1() };
            sum += share;
            s += k * share / f64::from(i + 1);
        }
        (s, sum)
    };
    // The s(0) for which the shares of all zones add up, in logarithms: it may be very small.
    let fixed_point = |k: f64| {
        let (mut low, mut high) = (-700.0f64, 0.0f64);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if climb(k, middle.exp()).0 < 1.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        climb(k, high.exp())
    };
    // K = utilisation * A; the mean number of live pages K * sum grows with it.
    let (mut low, mut high) = (utilisation, 1e3);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if middle * fixed_point(middle).1 < n * utilisation {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (all, freed) = fixed_point(low);
    ((all - 1.0).abs() < 1e-6).then(|| n / freed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambert_w_inverts() {
        for w in [-0.999, -0.7, -0.3, -1e-3, 0.0] {
            assert!((lambert_w(w * f64::exp(w)) - w).abs() < 1e-6, "{w}");
        }
    }

    #[test]
    fn fifo_solves_its_fixed_point() {
        // A victim's live share is e^(-1 / (u A)): the time in the queue is in writes per page.
        for utilisation in [0.5, 0.7, 0.9] {
            let a = fifo(utilisation);
            let live = (-1.0 / (utilisation * a)).exp();
            assert!((1.0 / (1.0 - live) - a).abs() < 1e-6, "{utilisation}: {a}");
        }
    }

    #[test]
    fn the_models_agree_where_they_must() {
        for utilisation in [0.6, 0.8, 0.9] {
            // With infinitely large zones greedy is FIFO, as all zones of an age are alike.
            let infinite = greedy(utilisation, 1 << 20) / fifo(utilisation);
            assert!((infinite - 1.0).abs() < 1e-3, "{utilisation}: {infinite}");
            // With more and more choices: greedy.
            let many =
                d_choices(utilisation, 32, 1000, Draws::All).unwrap() / greedy(utilisation, 32);
            assert!((many - 1.0).abs() < 0.02, "{utilisation}: {many}");
            // One choice: random cleaning, A = 1 / (1 - u) (Van Houdt 2013, section on d = 1).
            let one = d_choices(utilisation, 32, 1, Draws::All).unwrap() * (1.0 - utilisation);
            assert!((one - 1.0).abs() < 0.02, "{utilisation}: {one}");
            let few = d_choices(utilisation, 32, 4, Draws::All).unwrap();
            assert!(few > greedy(utilisation, 32) && few < 1.0 / (1.0 - utilisation));
        }
    }
}
