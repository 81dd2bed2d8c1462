//! Counts what waits, for as long as it waits.
use std::cell::Cell;

pub(super) struct Waiting<'a> {
    count: &'a Cell<u32>,
    added: u32,
}

impl<'a> Waiting<'a> {
    /// Adds `added` until dropped.
    pub(super) fn new(count: &'a Cell<u32>, added: u32) -> Self {
        count.set(count.get() + added);
        Waiting { count, added }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - self.added);
    }
}
