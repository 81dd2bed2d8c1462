//! Waits for locks, subtracted from the sleeps that follow.
//!
//! SQLite's busy timeout adds up its own sleeps, and no other waits. A server that has the volume open lets a client
//! wait a little for a lock before it refuses (docs/local.md). This module adds up these waits for each thread and shortens
//! its next sleeps by that time, so that a busy timeout takes as long as configured.
use std::cell::Cell;
use std::time::{Duration, Instant};
use tantalum::front_end::Level;

/// The waits of one thread.
#[derive(Clone, Copy)]
struct Waits {
    /// Time waited for refused locks that was not subtracted from a sleep yet.
    owed: Duration,
    /// Time waited for a SHARED that was granted. The next lock of the same transaction may still be refused.
    on_the_way: Duration,
    /// The last lock was refused, and the thread has not slept since.
    refused: bool,
}

const NONE: Waits = Waits { owed: Duration::ZERO, on_the_way: Duration::ZERO, refused: false };

thread_local! {
    static WAITS: Cell<Waits> = const { Cell::new(NONE) };
}

/// Runs `take`, which requests a lock of level `wanted` and returns whether it was granted, and records the wait.
pub(crate) fn timed<E>(wanted: Level, take: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
    let begin = now();
    let taken = take()?;
    let waited = now().saturating_duration_since(begin);
    WAITS.set(after(WAITS.get(), wanted, taken, waited));
    Ok(taken)
}

/// Records that a connection has released all its locks.
pub(crate) fn ended() {
    // After a refusal SQLite releases all its locks, then sleeps.
    if !WAITS.get().refused {
        WAITS.set(NONE);
    }
}

/// The rest of a sleep of `asked`, after subtracting earlier waits.
pub(crate) fn rest_of_sleep(asked: Duration) -> Duration {
    let waits = WAITS.get();
    let off = waits.owed.min(asked);
    WAITS.set(Waits { owed: waits.owed - off, refused: false, ..waits });
    asked - off
}

fn after(before: Waits, wanted: Level, taken: bool, waited: Duration) -> Waits {
    // If the thread did not sleep after the last refusal, it gave up then: a new timeout begins.
    let before = if before.refused { NONE } else { before };
    match taken {
        true if wanted > Level::Shared => NONE,
        true => Waits { on_the_way: waited, refused: false, ..before },
        false => {
            let owed = before.owed + before.on_the_way + waited;
            Waits { owed, on_the_way: Duration::ZERO, refused: true }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "SQLite's busy timeout is measured in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn lock(wanted: Level, taken: bool, waited: Duration) {
        WAITS.set(after(WAITS.get(), wanted, taken, waited));
    }

    #[test]
    fn sleeps_are_shorter_by_what_was_waited_for_in_vain() {
        for _ in 0..2 {
            lock(Level::Shared, true, 10 * MS);
            lock(Level::Reserved, false, 15 * MS);
            ended();
            assert_eq!(rest_of_sleep(5 * MS), Duration::ZERO);
            assert_eq!(rest_of_sleep(30 * MS), 10 * MS);
            assert_eq!(rest_of_sleep(30 * MS), 30 * MS);
        }
    }

    #[test]
    fn a_timeout_that_is_over_leaves_nothing_for_the_next_one() {
        for _ in 0..2 {
            lock(Level::Reserved, false, 20 * MS);
            ended();
            assert_eq!(rest_of_sleep(30 * MS), 10 * MS);
            lock(Level::Reserved, false, 25 * MS);
            ended();
        }
    }

    #[test]
    fn a_lock_that_is_had_leaves_nothing_for_the_next_timeout() {
        lock(Level::Shared, false, 25 * MS);
        lock(Level::Shared, true, 25 * MS);
        ended();
        assert_eq!(rest_of_sleep(30 * MS), 30 * MS);
        lock(Level::Reserved, false, 25 * MS);
        lock(Level::Reserved, true, 25 * MS);
        assert_eq!(rest_of_sleep(30 * MS), 30 * MS);
    }
}
