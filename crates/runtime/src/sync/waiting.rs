//! Counts waiters while they wait.
use std::cell::Cell;

/// Adds to a count until it is dropped, so the count is also correct if a waiting future is dropped.
pub struct Waiting<'a> {
    count: &'a Cell<u32>,
    added: u32,
}

impl<'a> Waiting<'a> {
    /// Adds `added` to `count` until dropped.
    pub fn new(count: &'a Cell<u32>, added: u32) -> Self {
        count.set(count.get() + added);
        Waiting { count, added }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - self.added);
    }
}
