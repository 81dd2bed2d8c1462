//! Records a database's writes to its device: the pages of each transaction, in the order of commits, and the host's time before each.
//!
//! Commits run one after the other. So each is one device transaction, as in the paper's traces, and not several simultaneous ones sharing
//! one. The terminals share a pool of connections: a transaction waits for one before its first access and has it to its end.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, Result};
use tantalum_hosts::values::{Key, Tree};
use tantalum_hosts::workload::{RowStore, RowStoreLayer, RowTransaction, RowTransactionLayer};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::{Permit, Semaphore};

use super::trace::{Transaction, ranges};

/// A device, and the transactions sent to it during the recording.
pub(super) struct Recorder<D> {
    device: Rc<D>,
    is_recording: Cell<bool>,
    /// The host's time for the present commit.
    work_ns: Cell<u64>,
    transactions: RefCell<Vec<Transaction>>,
}

impl<D> Recorder<D> {
    /// A recorder that has not started yet.
    pub fn new(device: Rc<D>) -> Self {
        Recorder {
            device,
            is_recording: Cell::new(false),
            work_ns: Cell::new(0),
            transactions: RefCell::default(),
        }
    }

    /// Records from now on.
    pub fn begin(&self) {
        self.is_recording.set(true);
    }

    /// Ends the recording.
    pub fn finish(&self) -> Vec<Transaction> {
        self.is_recording.set(false);
        self.transactions.take()
    }
}

/// The paper's interface (table I) has no single call for a transaction: it is begun, its pages are written, and it is committed. A
/// transaction that fails is not recorded.
impl<D: PageDevice> DeviceLayer for Recorder<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let (numbers, contents): (Vec<PageNo>, Vec<D::Page>) = pages.into_iter().unzip();
        let (writes, work_ns) = (ranges(&numbers), self.work_ns.take());
        let tx = self.device.begin().await?;
        let mut left = &contents[..];
        for range in &writes {
            let (now, later) = left.split_at(range.pages as usize);
            self.device.write(range.first, now, Some(tx)).await?;
            left = later;
        }
        self.device.commit(tx).await?;
        ended();
        if self.is_recording.get() {
            self.transactions.borrow_mut().push(Transaction { writes, work_ns });
        }
        Ok(())
    }
}

/// An engine on a device that is recorded, and the pool of connections to it.
pub(super) struct Connections<R, D, S> {
    runtime: R,
    store: S,
    device: Rc<Recorder<D>>,
    pool: Rc<Semaphore>,
    commit_turn: Rc<Semaphore>,
}

impl<R, D, S> Connections<R, D, S> {
    /// This many connections to `store`, whose pages are on `device`.
    pub fn new(runtime: R, store: S, device: &Rc<Recorder<D>>, connections: u32) -> Self {
        let pool = Rc::new(Semaphore::new("a connection", u64::from(connections)));
        let commit_turn = Rc::new(Semaphore::new("its turn to be recorded", 1));
        Connections { runtime, store, device: Rc::clone(device), pool, commit_turn }
    }
}

impl<R: Clone, D, S: Clone> Clone for Connections<R, D, S> {
    fn clone(&self) -> Self {
        Connections {
            runtime: self.runtime.clone(),
            store: self.store.clone(),
            device: Rc::clone(&self.device),
            pool: Rc::clone(&self.pool),
            commit_turn: Rc::clone(&self.commit_turn),
        }
    }
}

impl<R: Runtime, D: PageDevice, S: RowStore> RowStoreLayer for Connections<R, D, S> {
    type Inner = S;
    type Transaction = Connected<R, D, S>;

    fn inner(&self) -> &S {
        &self.store
    }

    fn begin(&self) -> Connected<R, D, S> {
        let inner = self.store.begin();
        Connected { connections: self.clone(), inner, connection: RefCell::default() }
    }
}

/// A transaction, and its connection from its first access on.
pub(super) struct Connected<R, D, S: RowStore> {
    connections: Connections<R, D, S>,
    inner: S::Transaction,
    connection: RefCell<Option<Connection>>,
}

/// A connection, and the time from which a transaction has it.
struct Connection {
    since_ns: u64,
    _permit: Permit,
}

impl<R: Runtime, D: PageDevice, S: RowStore> Connected<R, D, S> {
    /// Waits for a connection, if it has none yet.
    async fn connect(&self) {
        if self.connection.borrow().is_some() {
            return;
        }
        let Connections { pool, runtime, .. } = &self.connections;
        let permit = pool.acquire(1).await;
        let connection = Connection { since_ns: runtime.now_ns(), _permit: permit };
        *self.connection.borrow_mut() = Some(connection);
    }
}

impl<R: Runtime, D: PageDevice, S: RowStore> RowTransactionLayer for Connected<R, D, S> {
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

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<S::Value>> {
        self.connect().await;
        self.inner.get(tree, key).await
    }

    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<S::Value>> {
        self.connect().await;
        self.inner.get_for_update(tree, key).await
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: S::Value) -> Result<()> {
        self.connect().await;
        self.inner.put(tree, key, value).await
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.connect().await;
        self.inner.delete(tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, S::Value)>> {
        self.connect().await;
        self.inner.scan(tree, from, to, rows_max).await
    }

    async fn commit(self) -> Result<()> {
        self.connect().await;
        let Connected { connections, inner, connection } = self;
        let Connections { runtime, device, commit_turn, .. } = connections;
        let connection = connection.into_inner();
        let since_ns = connection.as_ref().map_or(runtime.now_ns(), |it| it.since_ns);
        let work_ns = runtime.now_ns() - since_ns;
        let _turn = commit_turn.acquire(1).await;
        device.work_ns.set(work_ns);
        inner.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::super::tpcc::tests::tiny_database;
    use super::*;
    use tantalum_runtime::{Virtual, spawn_all};

    /// Section IV-A: 7 connections. A transaction that waits for one has made no access.
    #[test]
    fn no_more_transactions_run_than_there_are_connections() {
        let run = |runtime: Virtual| async move {
            let (engine, device) = tiny_database(&runtime).await?;
            let store = Connections::new(runtime.clone(), engine, &device, 7);
            let (running, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let terminal = |_| {
                let (store, runtime) = (store.clone(), runtime.clone());
                let (running, most) = (Rc::clone(&running), Rc::clone(&most));
                async move {
                    for _ in 0..3 {
                        let transaction = RowStore::begin(&store);
                        RowTransaction::get(&transaction, Tree(0), &[1]).await?;
                        running.set(running.get() + 1);
                        most.set(most.get().max(running.get()));
                        runtime.sleep(1_000_000).await;
                        running.set(running.get() - 1);
                    }
                    Ok(())
                }
            };
            spawn_all(&runtime, "terminal", (0..40).map(terminal)).await?;
            assert_eq!((most.get(), running.get()), (7, 0));
            Ok(())
        };
        Virtual::alone("connections", run).unwrap();
    }
}
