//! A daily budget of bytes written to the flash. Host writes always go to the flash. When the
//! budget is spent, pages read from the home are no longer admitted.
use std::cell::Cell;

const DAY_NS: f64 = 86_400e9;
/// Bytes that may be written ahead of time, as a share of a day's budget: a reserve for a busy
/// hour.
const AHEAD: f64 = 1.0 / 24.0;

/// The bytes written so far, and the bytes left in the budget.
pub(crate) struct Wear {
    bytes_per_day: u64,
    /// Bytes that may be written now; negative if hosts wrote more than the budget.
    left_bytes: Cell<f64>,
    /// The time of the last charge, and the bytes written by then.
    seen_ns: Cell<u64>,
    seen_bytes: Cell<u64>,
}

impl Wear {
    /// `bytes_per_day` may be written; 0: any amount. An hour's share may be written at once.
    pub fn new(bytes_per_day: u64, now_ns: u64) -> Self {
        Wear {
            bytes_per_day,
            left_bytes: Cell::new(bytes_per_day as f64 * AHEAD),
            seen_ns: Cell::new(now_ns),
            seen_bytes: Cell::new(0),
        }
    }

    /// Charges the budget with `written_bytes`, the bytes written since opening, at `now_ns`.
    /// Returns whether the budget is spent.
    pub fn charge(&self, now_ns: u64, written_bytes: impl FnOnce() -> u64) -> bool {
        if self.bytes_per_day == 0 {
            return false;
        }
        let written_bytes = written_bytes();
        let a_day = self.bytes_per_day as f64;
        let earned = a_day * (now_ns - self.seen_ns.replace(now_ns)) as f64 / DAY_NS;
        let spent = (written_bytes - self.seen_bytes.replace(written_bytes)) as f64;
        // An excess of more than a day's budget is forgotten.
        let left = (self.left_bytes.get() + earned).min(a_day * AHEAD) - spent;
        self.left_bytes.set(left.max(-a_day));
        self.left_bytes.get() < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn what_was_not_written_may_be_written_later_but_not_much_later() {
        let wear = Wear::new(2_400, 0);
        let mut written = 0;
        let mut spent = |hours: u64, more: u64| {
            written += more;
            wear.charge(hours * HOUR_NS, || written)
        };
        assert!(!spent(0, 100), "an hour's share ahead");
        assert!(spent(0, 1));
        assert!(!spent(1, 99));
        assert!(!spent(50, 100) && spent(50, 1), "two days of nothing are an hour's share, too");
        assert!(spent(51, 1_000_000), "hosts write what they have to");
        assert!(spent(74, 0) && !spent(76, 0), "a day later that is forgotten");
    }

    #[test]
    fn without_a_budget_nothing_is_asked() {
        assert!(!Wear::new(0, 5).charge(7, || unreachable!("nobody counts")));
    }
}
