//! A store of rows over another one that changes some of its calls.
use tantalum_base::Result;

use super::rows::{RowStore, RowTransaction};
use crate::values::{Key, Tree};

/// The value type of a layer's store.
type StoreValue<L> = <<L as RowStoreLayer>::Inner as RowStore>::Value;

/// The value type of a layer's transaction.
type TransactionValue<L> = <<L as RowTransactionLayer>::Inner as RowTransaction>::Value;

/// A store over another one. Every call goes to the store underneath, except those that the layer overrides. [`RowStore`] describes
/// the calls.
#[allow(async_fn_in_trait, reason = "as of stores")]
#[allow(missing_docs, reason = "as of stores")]
pub trait RowStoreLayer: Clone + 'static {
    /// The store underneath.
    type Inner: RowStore;

    /// A layer over one of its transactions, or the transaction itself.
    type Transaction: RowTransaction<Value = StoreValue<Self>>;

    /// The store underneath.
    fn inner(&self) -> &Self::Inner;

    fn begin(&self) -> Self::Transaction;

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<StoreValue<Self>>> {
        self.inner().get(tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, StoreValue<Self>)>> {
        self.inner().scan(tree, from, to, rows_max).await
    }
}

impl<L: RowStoreLayer> RowStore for L {
    type Value = StoreValue<L>;
    type Transaction = L::Transaction;

    fn begin(&self) -> L::Transaction {
        RowStoreLayer::begin(self)
    }

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Self::Value>> {
        RowStoreLayer::get(self, tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, Self::Value)>> {
        RowStoreLayer::scan(self, tree, from, to, rows_max).await
    }
}

/// A transaction over another one, as [`RowStoreLayer`] is a store. [`RowTransaction`] describes the calls.
#[allow(async_fn_in_trait, reason = "as of stores")]
#[allow(missing_docs, reason = "as of stores")]
pub trait RowTransactionLayer: Sized {
    /// The transaction underneath.
    type Inner: RowTransaction;

    /// The transaction underneath.
    fn inner(&self) -> &Self::Inner;

    /// The transaction underneath.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// The transaction underneath.
    fn into_inner(self) -> Self::Inner;

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<TransactionValue<Self>>> {
        self.inner().get(tree, key).await
    }

    async fn get_for_update(
        &mut self,
        tree: Tree,
        key: &[u8],
    ) -> Result<Option<TransactionValue<Self>>> {
        self.inner_mut().get_for_update(tree, key).await
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: TransactionValue<Self>) -> Result<()> {
        self.inner_mut().put(tree, key, value).await
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.inner_mut().delete(tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, TransactionValue<Self>)>> {
        self.inner().scan(tree, from, to, rows_max).await
    }

    async fn start_again(&mut self) {
        self.inner_mut().start_again().await;
    }

    async fn commit(self) -> Result<()> {
        self.into_inner().commit().await
    }
}

impl<L: RowTransactionLayer> RowTransaction for L {
    type Value = TransactionValue<L>;

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Self::Value>> {
        RowTransactionLayer::get(self, tree, key).await
    }

    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<Self::Value>> {
        RowTransactionLayer::get_for_update(self, tree, key).await
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: Self::Value) -> Result<()> {
        RowTransactionLayer::put(self, tree, key, value).await
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        RowTransactionLayer::delete(self, tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, Self::Value)>> {
        RowTransactionLayer::scan(self, tree, from, to, rows_max).await
    }

    async fn start_again(&mut self) {
        RowTransactionLayer::start_again(self).await;
    }

    async fn commit(self) -> Result<()> {
        RowTransactionLayer::commit(self).await
    }
}
