//! Updates that wait for a commit, or are being committed.
use std::collections::BTreeMap;

use crate::records::{FRAME_BYTES, PAGE_ROOM};
use crate::values::{Key, Value};

/// Values, or `None` if a document is deleted; of several updates of one document only the last is
/// kept.
#[derive(Debug)]
pub(super) struct Batch<V> {
    updates: BTreeMap<Key, Option<V>>,
    pages: u64,
    wants_header: bool,
}

impl<V> Default for Batch<V> {
    fn default() -> Self {
        Batch { updates: BTreeMap::new(), pages: 0, wants_header: false }
    }
}

impl<V: Value> Batch<V> {
    /// Adds an update, which replaces an earlier one of the same document.
    pub(super) fn insert(&mut self, key: Key, value: Option<V>) {
        let key_bytes = key.len();
        self.pages += pages_of(key_bytes, value.as_ref());
        if let Some(replaced) = self.updates.insert(key, value) {
            self.pages -= pages_of(key_bytes, replaced.as_ref());
        }
    }

    /// From now on its commit writes a header even if its updates change nothing.
    pub(super) fn want_header(&mut self) {
        self.wants_header = true;
    }

    /// Whether its commit writes a header even if its updates change nothing.
    pub(super) fn wants_header(&self) -> bool {
        self.wants_header
    }

    /// The updates in the order of their keys.
    pub(super) fn updates(&self) -> &BTreeMap<Key, Option<V>> {
        &self.updates
    }

    /// Number of pages of its documents, each document by itself.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }
}

fn pages_of<V: Value>(key_bytes: usize, value: Option<&V>) -> u64 {
    value.map_or(0, |value| document_bytes(key_bytes, value.bytes()).div_ceil(PAGE_ROOM) as u64)
}

/// Size of a document in a file, in bytes.
pub(super) fn document_bytes(key_bytes: usize, value_bytes: usize) -> usize {
    FRAME_BYTES + 2 + key_bytes + value_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docstore::ValueStamp;

    #[test]
    fn an_update_counts_in_the_place_of_the_one_before() {
        let mut batch = Batch::default();
        let value = |bytes| Some(ValueStamp { bytes, count: 1 });
        batch.insert([1].into(), value(4_000));
        batch.insert([2].into(), value(9_000));
        assert_eq!((batch.updates().len(), batch.pages()), (2, 4));
        batch.insert([2].into(), value(10));
        assert_eq!((batch.updates().len(), batch.pages()), (2, 2));
        batch.insert([1].into(), None);
        assert_eq!((batch.updates().len(), batch.pages()), (2, 1));
    }
}
