//! A store of rows with a fault, which a load must notice.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_hosts::values::Tree;
use tantalum_hosts::workload::{RowStore, RowStoreLayer, RowTransaction, RowTransactionLayer};

/// The faults of a store, each of which occurs occasionally.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// It forgets a change of this tree.
    Forgets(Tree),
    /// It forgets a deletion of a row of this tree.
    KeepsOld(Tree),
    /// It returns another row of this tree.
    MixesUp(Tree),
    /// It lets others change a locked row.
    DoesNotHold,
}

/// A store with such a fault.
#[derive(Clone)]
pub struct WrongStore<S> {
    store: S,
    wrong: Wrong,
    changes: Rc<Cell<u64>>,
}

pub struct WrongTransaction<T> {
    transaction: T,
    wrong: Wrong,
    changes: Rc<Cell<u64>>,
}

impl<S> WrongStore<S> {
    pub fn new(store: S, wrong: Wrong) -> Self {
        WrongStore { store, wrong, changes: Rc::default() }
    }
}

impl<S: RowStore> RowStoreLayer for WrongStore<S> {
    type Inner = S;
    type Transaction = WrongTransaction<S::Transaction>;

    fn inner(&self) -> &S {
        &self.store
    }

    fn begin(&self) -> Self::Transaction {
        let (transaction, changes) = (self.store.begin(), Rc::clone(&self.changes));
        WrongTransaction { transaction, wrong: self.wrong, changes }
    }
}

impl<T> WrongTransaction<T> {
    /// Whether a change of a tree goes wrong: every 50th does.
    fn is_due(&self, of: Tree, tree: Tree) -> bool {
        if of != tree {
            return false;
        }
        self.changes.set(self.changes.get() + 1);
        self.changes.get().is_multiple_of(50)
    }
}

impl<T: RowTransaction> RowTransactionLayer for WrongTransaction<T> {
    type Inner = T;

    fn inner(&self) -> &T {
        &self.transaction
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.transaction
    }

    fn into_inner(self) -> T {
        self.transaction
    }

    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<T::Value>> {
        match self.wrong {
            Wrong::DoesNotHold => self.transaction.get(tree, key).await,
            Wrong::MixesUp(of) if self.is_due(of, tree) => {
                let mut other = key.to_vec();
                *other.last_mut().unwrap() ^= 1;
                self.transaction.get_for_update(tree, &other).await
            }
            _ => self.transaction.get_for_update(tree, key).await,
        }
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: T::Value) -> Result<()> {
        match self.wrong {
            Wrong::Forgets(of) if self.is_due(of, tree) => Ok(()),
            _ => self.transaction.put(tree, key, value).await,
        }
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        match self.wrong {
            Wrong::KeepsOld(of) if self.is_due(of, tree) => Ok(()),
            _ => self.transaction.delete(tree, key).await,
        }
    }
}
