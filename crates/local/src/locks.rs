//! SQLite's lock levels on a volume, among all its users: the connections of one process, or of the many processes that
//! a server has as clients.
//!
//! An `H` identifies a lock holder. Nothing waits here: if a lock is not available, the caller learns it at once.
use std::collections::BTreeMap;

/// The lock level of a holder; each level includes the ones before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Level {
    /// No lock.
    #[default]
    None,
    /// May read; many holders at once.
    Shared,
    /// Intends to write; one holder, beside readers.
    Reserved,
    /// Waits for the readers to finish; new readers are refused.
    Pending,
    /// May write; there are no readers.
    Exclusive,
}

/// The levels of all holders. At most one is above `Shared`.
pub struct Locks<H> {
    /// The holders at `Shared` or above.
    held: BTreeMap<H, Level>,
    /// The holder above `Shared`.
    writer: Option<H>,
}

impl<H> Default for Locks<H> {
    fn default() -> Self {
        Locks { held: BTreeMap::new(), writer: None }
    }
}

impl<H: Copy + Ord> Locks<H> {
    /// The level of `holder`.
    pub fn level(&self, holder: H) -> Level {
        self.held.get(&holder).copied().unwrap_or(Level::None)
    }

    /// Raises `holder` to `wanted`. Returns the level reached, which is below `wanted` if another holder conflicts.
    pub fn raise(&mut self, holder: H, wanted: Level) -> Level {
        let held = self.level(holder);
        if held >= wanted {
            return held;
        }
        let other = self.writer.filter(|writer| *writer != holder);
        if other
            .is_some_and(|writer| wanted > Level::Shared || self.level(writer) >= Level::Pending)
        {
            return held;
        }
        let sharing = self.held.len() + usize::from(held == Level::None);
        let reached = match wanted {
            Level::Exclusive if sharing > 1 => Level::Pending,
            _ => wanted,
        };
        self.held.insert(holder, reached);
        if reached > Level::Shared {
            self.writer = Some(holder);
        }
        reached
    }

    /// Lowers `holder` to `wanted`, which is `Shared` or `None`, if it is above that.
    pub fn lower(&mut self, holder: H, wanted: Level) {
        if wanted >= self.level(holder) {
            return;
        }
        if self.writer == Some(holder) {
            self.writer = None;
        }
        if wanted == Level::None {
            self.held.remove(&holder);
        } else {
            self.held.insert(holder, Level::Shared);
        }
    }

    /// Removes all locks of the holders that `are_gone`.
    pub fn release(&mut self, are_gone: impl Fn(&H) -> bool) {
        self.held.retain(|holder, _| !are_gone(holder));
        self.writer = self.writer.filter(|writer| !are_gone(writer));
    }

    /// Whether any holder writes or intends to write.
    pub fn is_reserved(&self) -> bool {
        self.writer.is_some()
    }

    /// Whether `holder` reads while a writer waits for its readers to finish.
    pub fn is_in_the_way(&self, holder: H) -> bool {
        self.level(holder) == Level::Shared
            && self.writer.is_some_and(|writer| self.level(writer) == Level::Pending)
    }

    /// All holders.
    pub fn holders(&self) -> impl Iterator<Item = H> {
        self.held.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{Exclusive, None, Pending, Reserved, Shared};
    use super::*;

    #[test]
    fn one_writer_beside_readers_and_then_alone() {
        let mut locks = Locks::default();
        assert_eq!(locks.raise(1, Shared), Shared);
        assert_eq!(locks.raise(2, Shared), Shared);
        assert!(!locks.is_reserved());
        assert_eq!(locks.raise(1, Reserved), Reserved);
        assert!(locks.is_reserved());
        assert_eq!(locks.raise(2, Reserved), Shared, "one writer at a time");
        assert_eq!(locks.raise(3, Shared), Shared, "readers may join a reserved one");
        assert_eq!(locks.raise(1, Exclusive), Pending, "readers are in the way");
        assert_eq!(locks.raise(4, Shared), None, "no new reader while one waits");
        assert_eq!([1, 2, 4].map(|holder| locks.is_in_the_way(holder)), [false, true, false]);
        locks.lower(3, None);
        locks.lower(2, None);
        assert_eq!(locks.raise(1, Exclusive), Exclusive);
        assert_eq!(locks.raise(2, Shared), None);
        locks.lower(1, Shared);
        assert_eq!(locks.raise(2, Shared), Shared);
        locks.lower(1, None);
        assert_eq!(locks.raise(2, Exclusive), Exclusive);
        locks.lower(2, None);
        assert_eq!(locks.raise(1, Shared), Shared);
    }

    #[test]
    fn those_who_are_gone_hold_nothing_and_the_others_what_they_had() {
        let mut locks = Locks::default();
        for (holder, level) in [((1, 1), Shared), ((1, 2), Reserved), ((2, 1), Shared)] {
            assert_eq!(locks.raise(holder, level), level);
        }
        locks.release(|(client, _)| *client == 1);
        assert_eq!(locks.holders().collect::<Vec<_>>(), [(2, 1)]);
        assert_eq!(locks.raise((2, 1), Exclusive), Exclusive);
        locks.release(|(client, _)| *client == 1);
        assert_eq!(locks.level((2, 1)), Exclusive);
    }
}
