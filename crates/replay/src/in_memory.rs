//! Requests of a trace that are kept in memory. They may take half of the memory that this process may use: policies
//! and devices need the rest. A trace that is larger is refused; otherwise the process would be ended in the middle of
//! its work, without a word.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::live::memory;

/// Items for which room is made at first.
const FIRST: usize = 1 << 10;

/// Items that are collected.
pub(crate) struct InMemory<T> {
    items: Vec<T>,
    items_max: usize,
}

impl<T> InMemory<T> {
    pub(crate) fn new() -> Self {
        InMemory::within(memory::limit_bytes() / 2)
    }

    fn within(bytes: u64) -> Self {
        let items_max = usize::try_from(bytes / size_of::<T>() as u64).unwrap_or(usize::MAX);
        InMemory { items: Vec::new(), items_max }
    }

    /// Adds an item of the trace called `name`.
    ///
    /// # Errors
    /// `OutOfSpace` if it exceeds the memory.
    #[inline]
    pub(crate) fn push(&mut self, item: T, name: &str) -> Result<()> {
        if self.items.len() == self.items.capacity() {
            self.grow(name)?;
        }
        self.items.push(item);
        Ok(())
    }

    /// Doubles the room.
    #[cold]
    fn grow(&mut self, name: &str) -> Result<()> {
        let items = self.items.len();
        let more = items.max(FIRST).min(self.items_max.saturating_sub(items));
        if more > 0 && self.items.try_reserve_exact(more).is_ok() {
            return Ok(());
        }
        let mib = (items * size_of::<T>()) >> 20;
        Err(Error::new(
            ErrorKind::OutOfSpace,
            format!(
                "{name}: the first {items} requests take {mib} MiB, and the trace does not fit into half of the memory that this \
                 process may use: give a part of it (concat:TRACE@10%), or more memory; `curve --sample` needs little"
            ),
        ))
    }

    /// All items.
    pub(crate) fn into_vec(self) -> Vec<T> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_items_as_fit_are_taken_and_no_more() {
        for fit in [5_u64, 1024, 1025, 5000] {
            let mut some = InMemory::<u64>::within(8 * fit + 7);
            for item in 0..fit {
                some.push(item, "t").unwrap();
            }
            let error = some.push(fit, "t").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfSpace);
            assert!(error.to_string().contains(&format!("t: the first {fit} requests")), "{error}");
            assert_eq!(some.into_vec(), (0..fit).collect::<Vec<_>>());
        }
    }
}
