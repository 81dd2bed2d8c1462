//! Group commit: commits that arrive while a write is in progress share the next write.
use std::cell::RefCell;
use std::collections::VecDeque;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::sync::WaitQueue;

use crate::btree::Lsn;

/// Committed items that are not durable yet, in order.
pub(crate) struct GroupCommit<T> {
    state: RefCell<State<T>>,
    /// The queues of the writer and of commits.
    appended: WaitQueue,
    durable: WaitQueue,
}

struct State<T> {
    pending: VecDeque<T>,
    /// LSN of the first pending item, or of the next one.
    next: Lsn,
    /// LSN of the last durable item.
    durable: Lsn,
    /// Whether a write is in progress.
    writing: bool,
    failed: Option<Error>,
}

impl<T> GroupCommit<T> {
    /// The first item will have LSN `next`; everything before is durable.
    pub(crate) fn new(next: Lsn) -> Self {
        let durable = Lsn(next.0 - 1);
        let pending = VecDeque::new();
        GroupCommit {
            state: RefCell::new(State { pending, next, durable, writing: false, failed: None }),
            appended: WaitQueue::new("something to commit"),
            durable: WaitQueue::new("a durable commit"),
        }
    }

    /// Appends `item`; returns its LSN.
    pub(crate) fn append(&self, item: T) -> Lsn {
        let mut state = self.state.borrow_mut();
        let lsn = Lsn(state.next.0 + state.pending.len() as u64);
        state.pending.push_back(item);
        drop(state);
        self.appended.wake_all();
        lsn
    }

    /// LSN of the first pending item, or of the next one if none is pending.
    pub(crate) fn first_pending(&self) -> Lsn {
        self.state.borrow().next
    }

    /// LSN of the next item to be appended.
    pub(crate) fn next(&self) -> Lsn {
        let state = self.state.borrow();
        Lsn(state.next.0 + state.pending.len() as u64)
    }

    /// Waits until everything up to `lsn` is durable.
    ///
    /// # Errors
    /// The error because of which it may not be durable.
    pub(crate) async fn until_durable(&self, lsn: Lsn) -> Result<()> {
        let durable = || {
            let state = self.state.borrow();
            match &state.failed {
                _ if state.durable >= lsn => Some(Ok(())),
                Some(error) => Some(Err(error.clone())),
                None => None,
            }
        };
        self.durable.until(durable).await
    }

    /// Waits until an item is pending; `false` once it is stopped.
    pub(crate) async fn until_pending(&self) -> bool {
        let next = || {
            let state = self.state.borrow();
            match state.failed.is_some() {
                true => Some(false),
                false => (!state.pending.is_empty()).then_some(true),
            }
        };
        self.appended.until(next).await
    }

    /// Takes pending items in order to write them: the first one, and the following ones as long as they `fit`.
    /// Also returns the LSN of the first.
    pub(crate) fn take(&self, mut fits: impl FnMut(&T) -> bool) -> (Lsn, Vec<T>) {
        let state = &mut *self.state.borrow_mut();
        let mut taken = Vec::new();
        while let Some(item) = state.pending.front() {
            if !fits(item) && !taken.is_empty() {
                break;
            }
            taken.extend(state.pending.pop_front());
        }
        let first = state.next;
        state.next.0 += taken.len() as u64;
        state.writing = true;
        (first, taken)
    }

    /// Reports that the items taken are durable, or stops with an error.
    pub(crate) fn written(&self, written: Result<()>) {
        {
            let state = &mut *self.state.borrow_mut();
            state.writing = false;
            match written {
                Ok(()) => state.durable = Lsn(state.next.0 - 1),
                Err(error) => drop(state.failed.get_or_insert(error)),
            }
        }
        self.wake_all();
    }

    /// Checks that items are still accepted.
    ///
    /// # Errors
    /// The error that stopped it.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Stops with this error.
    pub(crate) fn fail(&self, error: Error) {
        self.state.borrow_mut().failed.get_or_insert(error);
        self.wake_all();
    }

    /// Waits until no write is in progress, after [`fail`](Self::fail).
    pub(crate) async fn until_quiet(&self) {
        self.durable.until(|| (!self.state.borrow().writing).then_some(())).await;
    }

    fn wake_all(&self) {
        self.appended.wake_all();
        self.durable.wake_all();
    }
}

/// The error for commits to a closed database.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database is closed")
}
