//! A value that is taken out of its cell while a task waits, and comes back even if the task is dropped.
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// The value of a cell, until this is dropped.
pub(crate) struct Lent<'a, T: Default> {
    place: &'a Cell<T>,
    value: T,
}

impl<'a, T: Default> Lent<'a, T> {
    /// Takes the value out of `place`. No other task may use `place` meanwhile.
    pub(crate) fn new(place: &'a Cell<T>) -> Self {
        Lent { place, value: place.take() }
    }
}

impl<T: Default> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        self.place.set(std::mem::take(&mut self.value));
    }
}

impl<T: Default> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
