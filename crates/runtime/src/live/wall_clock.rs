//! Clocks for people: the time of day, and one that all processes of the machine share.
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 where the clock says it is earlier.
#[expect(clippy::disallowed_methods, reason = "it is told to people, and nothing depends on it")]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Milliseconds since the machine started, the same in all its processes. A few behind, and cheap: it is no system call.
pub fn machine_ms() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
