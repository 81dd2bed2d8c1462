//! The open transactions of one client: each occupies a place, and is aborted when it has been idle for too
//! long.
use crate::places::{ClientPlaces, Place};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, FastMap, Result, TxId};
use tantalum_runtime::sync::WaitQueue;

/// The number of aborted transactions that are remembered, so that a client's next command fails with the reason.
const GIVEN_UP_MAX: usize = 1024;

/// Limits on the transactions of one client among several.
pub(crate) struct Bounds {
    pub places: Rc<ClientPlaces>,
    /// Maximum idle time of a transaction; `None` for no limit.
    pub idle_ns_max: Option<u64>,
    /// Returns the current time.
    pub clock: Box<dyn Fn() -> u64>,
}

/// The open transactions of one client.
pub(crate) struct OpenTransactions {
    open: RefCell<FastMap<TxId, Open>>,
    bounds: Option<Bounds>,
    /// The latest transactions that were given up.
    given_up: RefCell<VecDeque<TxId>>,
    /// Woken when a transaction becomes idle.
    idle: WaitQueue,
}

struct Open {
    _place: Option<Place>,
    /// Commands in progress.
    commands: u32,
    /// The time at which the last command ended.
    idle_since_ns: u64,
    /// It was idle for too long, and accepts no more commands.
    is_given_up: bool,
}

impl Open {
    fn is_idle(&self) -> bool {
        self.commands == 0 && !self.is_given_up
    }
}

/// A command of a transaction; in progress until dropped.
pub(crate) struct Using<'a>(&'a OpenTransactions, TxId);

impl OpenTransactions {
    /// The transactions of a client with these bounds; without bounds only the device limits them.
    pub(crate) fn new(bounds: Option<Bounds>) -> Self {
        let idle = WaitQueue::new("an idle transaction of a local client");
        OpenTransactions { open: RefCell::default(), bounds, given_up: RefCell::default(), idle }
    }

    /// A place for one more transaction, if places are counted.
    ///
    /// # Errors
    /// `TooManyTransactions`.
    pub(crate) fn place(&self) -> Result<Option<Place>> {
        self.bounds.as_ref().map(|bounds| bounds.places.take()).transpose()
    }

    /// Records that `tx` has begun; it is idle.
    pub(crate) fn begun(&self, tx: TxId, place: Option<Place>) {
        let idle_since_ns = self.now_ns();
        let open = Open { _place: place, commands: 0, idle_since_ns, is_given_up: false };
        self.open.borrow_mut().insert(tx, open);
        self.idle.wake_all();
    }

    /// Begins a command of `tx`.
    ///
    /// # Errors
    /// `UnknownTransaction` if the client has no such transaction open.
    pub(crate) fn using(&self, tx: TxId) -> Result<Using<'_>> {
        let mut open = self.open.borrow_mut();
        let transaction = open.get_mut(&tx).filter(|open| !open.is_given_up);
        let transaction = transaction.ok_or_else(|| self.unknown(tx))?;
        transaction.commands += 1;
        Ok(Using(self, tx))
    }

    /// Records that `tx` has ended.
    pub(crate) fn ended(&self, tx: TxId) {
        self.open.borrow_mut().remove(&tx);
    }

    /// Removes and returns all transactions.
    pub(crate) fn end_all(&self) -> Vec<TxId> {
        self.open.borrow_mut().drain().map(|(tx, _)| tx).collect()
    }

    /// Waits until a transaction is idle, and returns the time at which it reaches the maximum idle time.
    pub(crate) async fn idle_until_ns(&self) -> u64 {
        let Some(most) = self.idle_ns_max() else { return std::future::pending().await };
        let first = || {
            let open = self.open.borrow();
            let idle = open.values().filter(|open| open.is_idle());
            idle.map(|open| open.idle_since_ns.saturating_add(most)).min()
        };
        self.idle.until(first).await
    }

    /// Marks transactions that reached the maximum idle time as given up, and returns them. They keep their
    /// places until they have [ended](Self::ended).
    pub(crate) fn give_up_idle(&self) -> Vec<TxId> {
        let (Some(most), now_ns) = (self.idle_ns_max(), self.now_ns()) else { return Vec::new() };
        let mut over = Vec::new();
        for (tx, open) in self.open.borrow_mut().iter_mut() {
            if open.is_idle() && open.idle_since_ns.saturating_add(most) <= now_ns {
                open.is_given_up = true;
                over.push(*tx);
            }
        }
        over.sort_unstable();
        let mut given_up = self.given_up.borrow_mut();
        given_up.extend(&over);
        let forgotten = given_up.len().saturating_sub(GIVEN_UP_MAX);
        given_up.drain(..forgotten);
        over
    }

    fn idle_ns_max(&self) -> Option<u64> {
        self.bounds.as_ref()?.idle_ns_max
    }

    fn now_ns(&self) -> u64 {
        self.bounds.as_ref().map_or(0, |bounds| (bounds.clock)())
    }

    fn unknown(&self, tx: TxId) -> Error {
        let context = match self.idle_ns_max() {
            Some(most) if self.given_up.borrow().contains(&tx) => format!(
                "transaction {tx} was aborted: it was idle for {} s, the limit of the server \
                 (--transaction-idle-seconds-max)",
                most / 1_000_000_000
            ),
            _ => format!("transaction {tx} is not open"),
        };
        Error::new(ErrorKind::UnknownTransaction, context)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        let Using(transactions, tx) = self;
        if let Some(open) = transactions.open.borrow_mut().get_mut(tx) {
            open.commands -= 1;
            open.idle_since_ns = transactions.now_ns();
        }
        transactions.idle.wake_all();
    }
}
