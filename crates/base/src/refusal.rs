//! Refusals that the user can act on, each identified by words that never change.
//!
//! `docs/refusals.md` has a row for each. A crate lists its own with [`refusals!`](crate::refusals), and a test of
//! the program compares these lists with the table.
use crate::{Error, ErrorKind};
use std::fmt;

/// The fixed words of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Refusal(&'static str);

impl Refusal {
    /// A refusal with these words. Only [`refusals!`](crate::refusals) should call this, because it also lists the
    /// refusal.
    pub const fn new(words: &'static str) -> Self {
        Refusal(words)
    }

    /// The words.
    pub const fn words(self) -> &'static str {
        self.0
    }

    /// An error with this `context`, which must contain the words.
    pub fn error(self, kind: ErrorKind, context: impl Into<String>) -> Error {
        let context = context.into();
        debug_assert!(context.contains(self.0), "{:?} is not in: {context}", self.0);
        Error::new(kind, context)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Declares constants of type [`Refusal`], and `ALL`, a slice of them.
#[macro_export]
macro_rules! refusals {
    ($($(#[$meta:meta])* $name:ident = $words:literal,)+) => {
        $($(#[$meta])* pub const $name: $crate::Refusal = $crate::Refusal::new($words);)+
        /// All refusals of this crate.
        pub const ALL: &[$crate::Refusal] = &[$($name),+];
    };
}
