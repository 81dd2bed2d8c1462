//! Clocks for people: the time of day, and a clock shared by all processes of the machine.
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 if the clock shows an earlier time.
#[expect(clippy::disallowed_methods, reason = "it is only shown to people; nothing depends on it")]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Milliseconds since the machine started, the same in all its processes. It lags by a few milliseconds and is cheap,
/// because it makes no system call.
pub fn machine_ms() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
