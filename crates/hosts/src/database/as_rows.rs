//! The database as a target of transaction workloads.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_runtime::Runtime;

use super::engine::Database;
use super::transaction::Transaction;
use super::way::Way;
use crate::records::Codec;
use crate::redo::Block;
use crate::values::{Key, Tree};
use crate::workload::{LoadValue, RowStore, RowTransaction};

impl<R, D, V, C, W> RowStore for Rc<Database<R, D, V, C, W>>
where
    R: Runtime,
    D: PageDevice,
    V: LoadValue,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    type Value = V;
    type Transaction = Transaction<R, D, V, C, W>;

    fn begin(&self) -> Transaction<R, D, V, C, W> {
        Database::begin(self)
    }

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        Database::get(self, tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, V)>> {
        Database::scan(self, tree, from, to, rows_max).await
    }
}

impl<R, D, V, C, W> RowTransaction for Transaction<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: LoadValue,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    type Value = V;

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        Transaction::get(self, tree, key).await
    }

    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        Transaction::get_for_update(self, tree, key).await
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: V) -> Result<()> {
        Transaction::put(self, tree, key, value).await
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        Transaction::delete(self, tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, V)>> {
        Transaction::scan(self, tree, from, to, rows_max).await
    }

    async fn start_again(&mut self) {
        Transaction::start_again(self).await;
    }

    async fn commit(self) -> Result<()> {
        Transaction::commit(self).await
    }
}
