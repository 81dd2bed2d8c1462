//! A tree of rows as a store of single values.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::Result;

use super::closed_loop::{Ending, transact};
use super::rows::{RowStore, RowTransaction};
use super::store::KeyValueStore;
use crate::values::{Key, Tree};

/// One tree of a [`RowStore`] as a [`KeyValueStore`]: each put is a transaction of its own, which is durable when it returns.
#[derive(Clone)]
pub struct OneTree<S> {
    rows: S,
    tree: Tree,
    conflicts: Rc<Cell<u64>>,
}

impl<S> OneTree<S> {
    /// The rows of `tree`.
    pub fn new(rows: S, tree: Tree) -> Self {
        OneTree { rows, tree, conflicts: Rc::default() }
    }

    /// The store of rows.
    pub fn rows(&self) -> &S {
        &self.rows
    }

    /// Number of puts that started again because an older transaction held the row.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.get()
    }
}

impl<S: RowStore> KeyValueStore for OneTree<S> {
    type Value = S::Value;

    async fn get(&self, key: &[u8]) -> Result<Option<S::Value>> {
        self.rows.get(self.tree, key).await
    }

    async fn put(&self, key: &[u8], value: S::Value) -> Result<()> {
        let put = async |transaction: &mut S::Transaction| {
            transaction.put(self.tree, key, value.clone()).await?;
            Ok(Ending::Commit(()))
        };
        transact(&self.rows, &self.conflicts, put).await
    }

    async fn scan(&self, from: &[u8], records_max: usize) -> Result<Vec<(Key, S::Value)>> {
        self.rows.scan(self.tree, from, None, records_max).await
    }
}
