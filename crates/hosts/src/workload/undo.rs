//! Undo logs, as InnoDB has them, for engines that write no page with uncommitted changes and so need none.
//!
//! Their cost for a device is pages: the old content of a row goes into a tree of its own, in the order of the changes, together
//! with the transaction that changes the row. It is deleted once no reader can need it any more (InnoDB's purge). For a new row
//! nothing is stored, as InnoDB discards that part of its log at the commit. Two simplifications: InnoDB stores only the changed
//! columns of a row, and its purge runs beside the clients; here each transaction deletes as many of the oldest rows as it inserts.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::Result;

use super::row_layer::{RowStoreLayer, RowTransactionLayer};
use super::rows::{RowStore, RowTransaction};
use crate::values::{Key, Tree};

/// An undo log. Keep it when the engine is closed and opened again.
pub struct UndoLog {
    tree: Tree,
    /// Trees whose rows have their old contents stored: not indexes, which InnoDB repairs from the rows.
    of: Vec<Tree>,
    rows_max: u64,
    /// Numbers of rows ever inserted and deleted.
    put: Cell<u64>,
    taken: Cell<u64>,
}

impl UndoLog {
    /// An undo log in `tree` for the rows of the trees `of`; it keeps up to `rows_max` old contents.
    pub fn new(tree: Tree, of: &[Tree], rows_max: u64) -> Rc<Self> {
        let (put, taken) = (Cell::new(0), Cell::new(0));
        Rc::new(UndoLog { tree, of: of.to_vec(), rows_max, put, taken })
    }

    /// `store` with this log.
    pub fn over<S: RowStore>(self: &Rc<Self>, store: &S) -> Undone<S> {
        Undone { inner: store.clone(), log: Rc::clone(self) }
    }

    /// Number of rows that it holds.
    pub fn rows(&self) -> u64 {
        self.put.get() - self.taken.get()
    }

    fn put_one(&self) -> Key {
        self.put.set(self.put.get() + 1);
        key(self.put.get())
    }

    /// The oldest row, if there are more rows than the maximum.
    fn take_one(&self) -> Option<Key> {
        if self.rows() <= self.rows_max {
            return None;
        }
        self.taken.set(self.taken.get() + 1);
        Some(key(self.taken.get()))
    }
}

fn key(number: u64) -> Key {
    number.to_be_bytes().into()
}

/// A store with an undo log.
#[derive(Clone)]
pub struct Undone<S> {
    inner: S,
    log: Rc<UndoLog>,
}

impl<S: RowStore> RowStoreLayer for Undone<S> {
    type Inner = S;
    type Transaction = UndoneTransaction<S>;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn begin(&self) -> UndoneTransaction<S> {
        let (inner, log) = (self.inner.begin(), Rc::clone(&self.log));
        UndoneTransaction { inner, log, before: Vec::new() }
    }
}

/// A transaction of such a store.
pub struct UndoneTransaction<S: RowStore> {
    inner: S::Transaction,
    log: Rc<UndoLog>,
    /// The old contents of the rows that it changes.
    before: Vec<S::Value>,
}

impl<S: RowStore> UndoneTransaction<S> {
    async fn keep(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        if self.log.of.contains(&tree) {
            self.before.extend(self.inner.get_for_update(tree, key).await?);
        }
        Ok(())
    }
}

impl<S: RowStore> RowTransactionLayer for UndoneTransaction<S> {
    type Inner = S::Transaction;

    fn inner(&self) -> &S::Transaction {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut S::Transaction {
        &mut self.inner
    }

    fn into_inner(self) -> S::Transaction {
        self.inner
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: S::Value) -> Result<()> {
        self.keep(tree, key).await?;
        self.inner.put(tree, key, value).await
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.keep(tree, key).await?;
        self.inner.delete(tree, key).await
    }

    async fn start_again(&mut self) {
        self.before.clear();
        self.inner.start_again().await;
    }

    async fn commit(mut self) -> Result<()> {
        for value in std::mem::take(&mut self.before) {
            self.inner.put(self.log.tree, &self.log.put_one(), value).await?;
            if let Some(oldest) = self.log.take_one() {
                self.inner.delete(self.log.tree, &oldest).await?;
            }
        }
        self.inner.commit().await
    }
}
