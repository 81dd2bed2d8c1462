//! The interface between a load of transactions and a storage engine.
use tantalum_base::Result;

use super::store::LoadValue;
use crate::values::{Key, Tree};

/// A handle of a storage engine for loads of transactions: trees of rows.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait RowStore: Clone + 'static {
    /// The value under a key.
    type Value: LoadValue;

    /// Changes that are made together.
    type Transaction: RowTransaction<Value = Self::Value>;

    /// Begins a transaction.
    fn begin(&self) -> Self::Transaction;

    /// The last committed row with `key`.
    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Self::Value>>;

    /// At most `rows_max` rows with keys from `from` on, before `to` if it is given, in ascending order of their keys.
    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, Self::Value)>>;
}

/// A transaction of a [`RowStore`]. If it is dropped, it has changed nothing.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait RowTransaction {
    /// The value under a key.
    type Value: LoadValue;

    /// The row with `key` as this transaction changed it, otherwise the last committed one.
    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Self::Value>>;

    /// Like [`get`](Self::get), and locks the row until this transaction ends.
    ///
    /// # Errors
    /// `Conflict` if an older transaction holds the row: [start this one again](Self::start_again).
    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<Self::Value>>;

    /// Inserts or replaces a row.
    ///
    /// # Errors
    /// `Conflict` as for [`get_for_update`](Self::get_for_update).
    async fn put(&mut self, tree: Tree, key: &[u8], value: Self::Value) -> Result<()>;

    /// Deletes a row, if there is one with this key.
    ///
    /// # Errors
    /// `Conflict` as for [`get_for_update`](Self::get_for_update).
    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()>;

    /// Like [`RowStore::scan`], with this transaction's changes.
    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, Self::Value)>>;

    /// Discards the changes and releases the locks for another try with the same age, once the row that was refused is
    /// free.
    async fn start_again(&mut self);

    /// Commits the changes, all or nothing; they are durable when this returns.
    async fn commit(self) -> Result<()>;
}

/// Number of rows that [`each_row`] reads at a time.
const ROWS: usize = 2_000;

/// Calls `check` with each row of a tree, in the order of their keys.
///
/// # Errors
/// Those of `check`; those of the engine.
pub(super) async fn each_row<S: RowStore>(
    store: &S,
    tree: Tree,
    mut check: impl FnMut(&Key, &S::Value) -> Result<()>,
) -> Result<()> {
    let mut from = Key::from([0]);
    loop {
        let rows = store.scan(tree, &from, None, ROWS).await?;
        for (key, value) in &rows {
            check(key, value)?;
        }
        let Some((last, _)) = rows.last().filter(|_| rows.len() == ROWS) else { return Ok(()) };
        let mut next = last.to_vec();
        next.push(0);
        from = next.into();
    }
}
