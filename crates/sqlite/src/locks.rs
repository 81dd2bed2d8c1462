//! SQLite's file locks among the connections of one process. A volume has one process only.

/// How much of the database a connection holds; each includes the ones before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// Nothing.
    None,
    /// May read; many at once.
    Shared,
    /// Means to write; one, beside readers.
    Reserved,
    /// Waits for the readers to go; no new reader comes in.
    Pending,
    /// May write; nobody else reads.
    Exclusive,
}

/// Who holds what. At most one connection is above `Shared`.
#[derive(Default)]
pub(crate) struct Locks {
    /// Connections at `Shared` or above.
    sharing: usize,
    writer: Option<(u64, Level)>,
}

impl Locks {
    /// Raises connection `id` from `held` to `wanted`. Gives the level it is at afterwards; below
    /// `wanted` where another connection is in the way.
    pub(crate) fn raise(&mut self, id: u64, held: Level, wanted: Level) -> Level {
        if held >= wanted {
            return held;
        }
        if self.writer.is_some_and(|(writer, level)| {
            writer != id && (wanted > Level::Shared || level >= Level::Pending)
        }) {
            return held;
        }
        if held == Level::None {
            self.sharing += 1;
        }
        let reached = match wanted {
            Level::Exclusive if self.sharing > 1 => Level::Pending,
            _ => wanted,
        };
        if reached > Level::Shared {
            self.writer = Some((id, reached));
        }
        reached
    }

    /// Lowers connection `id` from `held` to `wanted`, which is `Shared` or `None`.
    pub(crate) fn lower(&mut self, id: u64, held: Level, wanted: Level) {
        if held > Level::Shared && self.writer.is_some_and(|(writer, _)| writer == id) {
            self.writer = None;
        }
        if held >= Level::Shared && wanted == Level::None {
            self.sharing -= 1;
        }
    }

    /// Whether a connection means to write or writes.
    pub(crate) fn reserved(&self) -> bool {
        self.writer.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{Exclusive, None, Pending, Reserved, Shared};
    use super::*;

    #[test]
    fn one_writer_beside_readers_and_then_alone() {
        let mut locks = Locks::default();
        assert_eq!(locks.raise(1, None, Shared), Shared);
        assert_eq!(locks.raise(2, None, Shared), Shared);
        assert!(!locks.reserved());
        assert_eq!(locks.raise(1, Shared, Reserved), Reserved);
        assert!(locks.reserved());
        assert_eq!(locks.raise(2, Shared, Reserved), Shared, "one writer at a time");
        assert_eq!(locks.raise(3, None, Shared), Shared, "readers may join a reserved one");
        assert_eq!(locks.raise(1, Reserved, Exclusive), Pending, "readers are in the way");
        assert_eq!(locks.raise(4, None, Shared), None, "no new reader while one waits");
        locks.lower(3, Shared, None);
        locks.lower(2, Shared, None);
        assert_eq!(locks.raise(1, Pending, Exclusive), Exclusive);
        assert_eq!(locks.raise(2, None, Shared), None);
        locks.lower(1, Exclusive, Shared);
        assert_eq!(locks.raise(2, None, Shared), Shared);
        locks.lower(1, Shared, None);
        assert_eq!(locks.raise(2, Shared, Exclusive), Exclusive);
        locks.lower(2, Exclusive, None);
        assert_eq!(locks.raise(1, None, Shared), Shared);
    }
}
