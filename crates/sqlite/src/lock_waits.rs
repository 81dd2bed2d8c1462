//! Waits for locks, taken off the sleeps that follow.
//!
//! SQLite's busy timeout adds up its own sleeps and knows of no other wait. A server that has the volume lets who asks for a
//! lock wait a little before it refuses (docs/local.md). Those waits are kept for each thread, and its next sleeps are
//! shorter by as much: a busy timeout takes as long as was asked for.
use std::cell::Cell;
use std::time::{Duration, Instant};
use tantalum_volume::Level;

/// Of one thread.
#[derive(Clone, Copy)]
struct Waits {
    /// Waited for in vain, and not taken off a sleep yet.
    owed: Duration,
    /// Waited for a SHARED that was had. The lock that it was wanted for may be refused yet.
    on_the_way: Duration,
    /// The last lock was refused, and nobody has slept since.
    refused: bool,
}

const NONE: Waits = Waits { owed: Duration::ZERO, on_the_way: Duration::ZERO, refused: false };

thread_local! {
    static WAITS: Cell<Waits> = const { Cell::new(NONE) };
}

/// Takes a lock of level `wanted` by `take`, which says whether it was had.
pub(crate) fn timed<E>(wanted: Level, take: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
    let begin = now();
    let taken = take()?;
    let waited = now().saturating_duration_since(begin);
    WAITS.set(after(WAITS.get(), wanted, taken, waited));
    Ok(taken)
}

/// A connection holds no lock any more.
pub(crate) fn ended() {
    // After a refusal SQLite gives back all it holds, then sleeps.
    if !WAITS.get().refused {
        WAITS.set(NONE);
    }
}

/// How much is left of a sleep of `asked`.
pub(crate) fn rest_of_sleep(asked: Duration) -> Duration {
    let waits = WAITS.get();
    let off = waits.owed.min(asked);
    WAITS.set(Waits { owed: waits.owed - off, refused: false, ..waits });
    asked - off
}

fn after(before: Waits, wanted: Level, taken: bool, waited: Duration) -> Waits {
    // Who asks again without a sleep gave up before: the next timeout is another one.
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

#[expect(clippy::disallowed_methods, reason = "SQLite's busy timeout is one of the real clock")]
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
