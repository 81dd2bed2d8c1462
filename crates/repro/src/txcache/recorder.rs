//! Records a database's writes to its device: the pages of each transaction, in the order of commits, and the host's time before each.
//!
//! Commits run one after the other. So each is one device transaction, as in the paper's traces, and not several simultaneous ones sharing
//! one.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, Result};
use tantalum_hosts::workload::{RowStore, RowStoreLayer, RowTransaction, RowTransactionLayer};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Semaphore;

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

/// An engine on a device that is recorded.
pub(super) struct Connections<R, D, S> {
    runtime: R,
    store: S,
    device: Rc<Recorder<D>>,
    commit_turn: Rc<Semaphore>,
}

impl<R, D, S> Connections<R, D, S> {
    /// Connects to `store`, whose pages are on `device`.
    pub fn new(runtime: R, store: S, device: &Rc<Recorder<D>>) -> Self {
        let commit_turn = Rc::new(Semaphore::new("its turn to be recorded", 1));
        Connections { runtime, store, device: Rc::clone(device), commit_turn }
    }
}

impl<R: Clone, D, S: Clone> Clone for Connections<R, D, S> {
    fn clone(&self) -> Self {
        Connections {
            runtime: self.runtime.clone(),
            store: self.store.clone(),
            device: Rc::clone(&self.device),
            commit_turn: Rc::clone(&self.commit_turn),
        }
    }
}

impl<R: Runtime, D: PageDevice, S: RowStore> RowStoreLayer for Connections<R, D, S> {
    type Inner = S;
    type Transaction = Timed<R, D, S>;

    fn inner(&self) -> &S {
        &self.store
    }

    fn begin(&self) -> Timed<R, D, S> {
        let (inner, begun_ns) = (self.store.begin(), self.runtime.now_ns());
        Timed { connections: self.clone(), inner, begun_ns }
    }
}

/// A transaction with its start time.
pub(super) struct Timed<R, D, S: RowStore> {
    connections: Connections<R, D, S>,
    inner: S::Transaction,
    begun_ns: u64,
}

impl<R: Runtime, D: PageDevice, S: RowStore> RowTransactionLayer for Timed<R, D, S> {
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

    async fn commit(self) -> Result<()> {
        let Connections { runtime, device, commit_turn, .. } = &self.connections;
        let work_ns = runtime.now_ns() - self.begun_ns;
        let _turn = commit_turn.acquire(1).await;
        device.work_ns.set(work_ns);
        self.inner.commit().await
    }
}
