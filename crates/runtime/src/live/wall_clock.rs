//! The time of day, for people: nothing is decided by it.
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 where the clock says it is earlier.
#[expect(clippy::disallowed_methods, reason = "it is told to people, and nothing depends on it")]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
