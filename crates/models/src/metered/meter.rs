//! Determines when the next command may begin.
use std::cell::Cell;

/// The allowed numbers of commands and bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Commands a second.
    pub commands_per_second: u64,
    /// Bytes a second.
    pub bytes_per_second: u64,
}

/// A token bucket for one command: a command begins when all earlier ones are paid for, by their number and by their bytes. Idle
/// time earns no credit, as for a volume without bursts.
pub(super) struct Meter {
    rate: Rate,
    commands_paid_ns: Cell<u64>,
    bytes_paid_ns: Cell<u64>,
}

impl Meter {
    pub(super) fn new(rate: Rate) -> Self {
        Meter { rate, commands_paid_ns: Cell::new(0), bytes_paid_ns: Cell::new(0) }
    }

    /// Charges `commands` and `bytes` at `now_ns`. Returns the time at which they begin, in
    /// nanoseconds.
    pub(super) fn take(&self, now_ns: u64, commands: u64, bytes: u64) -> u64 {
        let start_ns = now_ns.max(self.commands_paid_ns.get()).max(self.bytes_paid_ns.get());
        let cost_ns = |count: u64, per_second: u64| {
            (u128::from(count) * 1_000_000_000).div_ceil(u128::from(per_second)) as u64
        };
        self.commands_paid_ns.set(start_ns + cost_ns(commands, self.rate.commands_per_second));
        self.bytes_paid_ns.set(start_ns + cost_ns(bytes, self.rate.bytes_per_second));
        start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_as_fast_as_the_dearer_of_number_and_bytes_allows() {
        let meter = Meter::new(Rate { commands_per_second: 1_000, bytes_per_second: 1_000_000 });
        // 100 bytes are 0.1 ms, one command is 1 ms.
        assert_eq!(meter.take(0, 1, 100), 0);
        assert_eq!(meter.take(0, 1, 100), 1_000_000);
        // 5,000 bytes are 5 ms.
        assert_eq!(meter.take(0, 1, 5_000), 2_000_000);
        assert_eq!(meter.take(0, 1, 100), 7_000_000);
        // Idle time earned no credit.
        assert_eq!(meter.take(50_000_000, 3, 100), 50_000_000);
        assert_eq!(meter.take(50_000_000, 1, 100), 53_000_000);
    }
}
