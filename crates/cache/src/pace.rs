//! The rate at which hosts may write while pages are destaged: it falls smoothly to the rate of
//! destaging.
use std::cell::Cell;

use crate::options::TieredOptions;

/// Time to destage a page, before the first measurement of a round: the time that a disk needs for
/// one of many sorted writes.
const FIRST_GUESS_NS: f64 = 1_000_000.0;

/// Fill level between the limits at which hosts write as fast as pages are destaged.
const LEVEL: f64 = 0.7;

/// At the upper limit hosts write this many times slower than pages are destaged.
const SLOWEST: f64 = 4.0;

/// Weight of the newest measurement in the rate.
const NEWEST: f64 = 0.3;

/// Schedules the writers.
pub(crate) struct Pace {
    soft_pages: u64,
    hard_pages: u64,
    /// Time until one more page is clean, in nanoseconds; `None` before the first measurement of a
    /// round.
    page_ns: Cell<Option<f64>>,
    /// The time of the next writer's turn.
    next_ns: Cell<u64>,
}

impl Pace {
    /// Starts without a measurement of the home.
    pub fn new(options: &TieredOptions) -> Self {
        Pace {
            soft_pages: options.dirty_soft_pages,
            hard_pages: options.dirty_hard_pages,
            page_ns: Cell::new(None),
            next_ns: Cell::new(0),
        }
    }

    /// Records that it took `ns` until `pages` more were clean.
    pub fn measured(&self, pages: u64, ns: u64) {
        if pages == 0 {
            return;
        }
        let page_ns = ns as f64 / pages as f64;
        let smoothed = |before: f64| before + NEWEST * (page_ns - before);
        self.page_ns.set(Some(self.page_ns.get().map_or(page_ns, smoothed)));
    }

    /// The time at which a write may proceed that arrives at `now_ns` and adds `pages` to be
    /// destaged, while `dirty` pages are dirty. Between the limits the time per page grows with the
    /// square of the fill level. At [`LEVEL`] hosts write as fast as pages are destaged, so that
    /// the level stays there. Beyond it they become slower than that: the remaining room must last
    /// while an epoch is written to the journal, as no page becomes clean meanwhile.
    pub fn turn_ns(&self, now_ns: u64, dirty: u64, pages: u64) -> u64 {
        if dirty <= self.soft_pages {
            return now_ns;
        }
        let filled = (dirty - self.soft_pages) as f64 / (self.hard_pages - self.soft_pages) as f64;
        let page_ns = self.page_ns.get().unwrap_or(FIRST_GUESS_NS);
        let slower = match filled - LEVEL {
            beyond if beyond > 0.0 => 1.0 + (SLOWEST - 1.0) * beyond / (1.0 - LEVEL),
            _ => (filled / LEVEL).powi(2),
        };
        let takes_ns = pages as f64 * page_ns * slower;
        let turn_ns = self.next_ns.get().max(now_ns);
        self.next_ns.set(turn_ns + takes_ns as u64);
        turn_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Destage;

    #[test]
    fn writers_become_as_slow_as_the_home_and_no_slower_than_need_be() {
        let pace = Pace::new(&TieredOptions {
            dirty_soft_pages: 500,
            ..TieredOptions::new(Destage::Dense, 1000)
        });
        assert_eq!((pace.turn_ns(0, 1000, 1), pace.turn_ns(0, 1000, 1)), (0, 4_000_000));
        pace.measured(10, 10_000);
        pace.measured(0, 10_000);
        let rate = |dirty| {
            let pace = Pace::new(&TieredOptions {
                dirty_soft_pages: 500,
                ..TieredOptions::new(Destage::Dense, 1000)
            });
            pace.measured(10, 10_000);
            (0..99).for_each(|_| _ = pace.turn_ns(0, dirty, 1));
            pace.turn_ns(0, dirty, 1) / 99
        };
        assert_eq!(rate(500), 0);
        assert!(rate(600) < 100, "{}", rate(600));
        assert!((990..1010).contains(&rate(850)), "{}", rate(850));
        assert_eq!(rate(1000), 4000);
    }

    #[test]
    fn a_turn_that_nobody_took_is_not_saved_up() {
        let pace = Pace::new(&TieredOptions {
            dirty_soft_pages: 500,
            ..TieredOptions::new(Destage::Dense, 1000)
        });
        pace.measured(1, 1000);
        assert_eq!(pace.turn_ns(0, 1000, 1), 0);
        assert_eq!(pace.turn_ns(0, 1000, 1), 4000);
        assert_eq!(pace.turn_ns(100_000, 1000, 1), 100_000);
        assert_eq!(pace.turn_ns(100_000, 1000, 1), 104_000);
    }
}
