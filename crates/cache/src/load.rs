//! Estimates whether flash or home serves a read sooner. While the flash serves many writes, the
//! home can be the faster one for a page that both have.
use std::cell::Cell;

/// Weight of the newest measurement in the service time of a tier.
const NEWEST: f64 = 0.05;
/// A read goes to the home only if the home is this many times faster than the flash. A read from
/// the flash also helps the page to stay cached.
const FASTER: f64 = 2.0;
/// Each read that goes to the home instead of the flash multiplies the flash's service time by
/// this, so that the flash is eventually tried again.
const FORGIVEN: f64 = 0.995;

/// Reads of one tier.
#[derive(Default)]
pub(crate) struct Tier {
    in_flight: Cell<u32>,
    /// Time of a read divided by the number of reads in flight; 0 before the first read.
    service_ns: Cell<f64>,
}

impl Tier {
    /// A read begins at `now_ns`.
    pub fn begin(&self, now_ns: u64) -> Timed<'_> {
        self.in_flight.set(self.in_flight.get() + 1);
        Timed { tier: self, began_ns: now_ns, depth: self.in_flight.get() }
    }

    /// Expected time of one more read.
    fn expected_ns(&self) -> f64 {
        self.service_ns.get() * f64::from(self.in_flight.get() + 1)
    }
}

/// A read in flight, until dropped.
pub(crate) struct Timed<'a> {
    tier: &'a Tier,
    began_ns: u64,
    depth: u32,
}

impl Timed<'_> {
    /// Records that the read succeeded at `now_ns`.
    pub fn ended(self, now_ns: u64) {
        let service_ns = (now_ns - self.began_ns) as f64 / f64::from(self.depth);
        let before = self.tier.service_ns.get();
        let is_first = before == 0.0;
        let smoothed = before + NEWEST * (service_ns - before);
        self.tier.service_ns.set(if is_first { service_ns } else { smoothed });
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.tier.in_flight.set(self.tier.in_flight.get() - 1);
    }
}

/// Reads of both tiers.
#[derive(Default)]
pub(crate) struct Load {
    pub flash: Tier,
    pub home: Tier,
}

impl Load {
    /// Whether a read of a page that both tiers have should go to the home. A tier is only judged
    /// after its first read.
    pub fn prefers_home(&self) -> bool {
        let home_ns = self.home.expected_ns();
        let prefers = home_ns > 0.0 && self.flash.expected_ns() > FASTER * home_ns;
        if prefers {
            self.flash.service_ns.set(self.flash.service_ns.get() * FORGIVEN);
        }
        prefers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tier: &Tier, ns: u64) {
        tier.begin(0).ended(ns);
    }

    #[test]
    fn reads_go_where_they_are_served_sooner() {
        let load = Load::default();
        assert!(!load.prefers_home(), "nothing is known");
        read(&load.flash, 100_000);
        assert!(!load.prefers_home(), "home was not read yet");
        read(&load.home, 1_000_000);
        assert!(!load.prefers_home());
        let queue: Vec<_> = (0..40).map(|_| load.flash.begin(0)).collect();
        assert!(load.prefers_home(), "forty wait at the flash");
        drop(queue);
        assert!(!load.prefers_home());
    }

    #[test]
    fn a_tier_that_was_slow_is_tried_again() {
        let load = Load::default();
        read(&load.home, 1_000_000);
        read(&load.flash, 50_000_000);
        let avoided = (0..10_000).take_while(|_| load.prefers_home()).count();
        assert!((100..2000).contains(&avoided), "{avoided}");
    }
}
