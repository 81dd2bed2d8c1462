//! How fast hosts may write while pages go home: smoothly down to the rate at which they do.
use std::cell::Cell;

use crate::options::TieredOptions;

/// How long a page takes that goes home, until a round has told: what a disk needs for one among many that are sorted.
const FIRST_GUESS_NS: f64 = 1_000_000.0;

/// Where between the limits hosts write as fast as pages go home.
const LEVEL: f64 = 0.7;

/// How many times slower than that they write at the upper limit.
const SLOWEST: f64 = 4.0;

/// Share of the newest measurement in the rate.
const NEWEST: f64 = 0.3;

/// Gives writers their turns.
pub(crate) struct Pace {
    soft_pages: u64,
    hard_pages: u64,
    /// How long it takes until a page more is clean, in nanoseconds; `None` until a round has told.
    page_ns: Cell<Option<f64>>,
    /// When the next writer has its turn.
    next_ns: Cell<u64>,
}

impl Pace {
    /// Nothing is known of the home.
    pub fn new(options: &TieredOptions) -> Self {
        Pace {
            soft_pages: options.dirty_soft_pages,
            hard_pages: options.dirty_hard_pages,
            page_ns: Cell::new(None),
            next_ns: Cell::new(0),
        }
    }

    /// Notes that it took `ns` until `pages` more were clean.
    pub fn measured(&self, pages: u64, ns: u64) {
        if pages == 0 {
            return;
        }
        let page_ns = ns as f64 / pages as f64;
        let smoothed = |before: f64| before + NEWEST * (page_ns - before);
        self.page_ns.set(Some(self.page_ns.get().map_or(page_ns, smoothed)));
    }

    /// When a write that makes `pages` dirty and comes at `now_ns` may go on, where `dirty` pages are dirty. Between the
    /// limits the rate falls with the square of how far they are filled: at [`LEVEL`] hosts
    /// write as fast as pages go home, so that it stays there. Beyond, they are slowed down to a part of that: what is left
    /// has to last while an epoch is written to the journal, and no page becomes clean.
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
