//! Counts what waits, for as long as it waits.
use std::cell::Cell;

/// Adds to a count until it is dropped: also where whoever waits is given up.
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
