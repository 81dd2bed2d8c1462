//! Group commit: who commits while a write is under way shares the next one.
use std::cell::RefCell;
use std::collections::VecDeque;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::sync::WaitQueue;

use crate::btree::Lsn;

/// What was committed and is not durable yet, in its order.
pub(crate) struct GroupCommit<T> {
    state: RefCell<State<T>>,
    /// Where the writer waits, and those who commit.
    appended: WaitQueue,
    durable: WaitQueue,
}

struct State<T> {
    pending: VecDeque<T>,
    /// LSN of the first that is pending, or of the next one.
    next: Lsn,
    /// LSN of the last one that is durable.
    durable: Lsn,
    /// Something is being written.
    writing: bool,
    failed: Option<Error>,
}

impl<T> GroupCommit<T> {
    /// The first one will be `next`; all before is durable.
    pub(crate) fn new(next: Lsn) -> Self {
        let durable = Lsn(next.0 - 1);
        let pending = VecDeque::new();
        GroupCommit {
            state: RefCell::new(State { pending, next, durable, writing: false, failed: None }),
            appended: WaitQueue::new("something to commit"),
            durable: WaitQueue::new("a durable commit"),
        }
    }

    /// Appends `item`; its LSN.
    pub(crate) fn append(&self, item: T) -> Lsn {
        let mut state = self.state.borrow_mut();
        let lsn = Lsn(state.next.0 + state.pending.len() as u64);
        state.pending.push_back(item);
        drop(state);
        self.appended.wake_all();
        lsn
    }

    /// LSN of the first that is pending, or of the next one where none is.
    pub(crate) fn first_pending(&self) -> Lsn {
        self.state.borrow().next
    }

    /// LSN of what will be appended next.
    pub(crate) fn next(&self) -> Lsn {
        let state = self.state.borrow();
        Lsn(state.next.0 + state.pending.len() as u64)
    }

    /// Waits until everything up to `lsn` is durable.
    ///
    /// # Errors
    /// Why it may not be.
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

    /// Waits until something is pending; `false` when nothing goes on.
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

    /// Takes what is pending to write it, the first and all that follow as long as they `fit`; LSN of the first.
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

    /// What was taken is durable, or nothing goes on.
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

    /// Whether it goes on.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Nothing goes on.
    pub(crate) fn fail(&self, error: Error) {
        self.state.borrow_mut().failed.get_or_insert(error);
        self.wake_all();
    }

    /// Waits until nothing is being written any more, after [`fail`](Self::fail).
    pub(crate) async fn until_quiet(&self) {
        self.durable.until(|| (!self.state.borrow().writing).then_some(())).await;
    }

    fn wake_all(&self) {
        self.appended.wake_all();
        self.durable.wake_all();
    }
}

/// Why nothing is committed to a database that was closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database is closed")
}
