//! The interface of table I: transaction ids, and the order of commands around begin, commit and
//! abort.
//!
//! Commands of one transaction may overtake each other between two control commands. A commit or
//! abort waits until all earlier commands have ended. Commands that arrive while it waits, wait for
//! it; they then find that the transaction no longer exists.
//!
//! The conflict rule: the first transaction to write a page holds it until its end. Another one that
//! writes the page gets `Conflict` and may go on or abort. A write or trim outside of transactions,
//! which is a transaction of this single command, is refused in the same way.
use crate::fault_points::Fault;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result, TxId};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Waiting;

use super::device::TxCache;
use super::state::{CacheState, Phase, Transaction};

/// A command of a transaction while it is in flight.
pub(super) struct Inside<'a, R: Runtime, M: ZoneMedia> {
    device: &'a TxCache<R, M>,
    pub number: u32,
}

impl<R: Runtime, M: ZoneMedia> Drop for Inside<'_, R, M> {
    fn drop(&mut self) {
        self.device.left(self.number, 1);
    }
}

/// A commit or abort, from its arrival to its end.
pub(super) struct Ending<'a, R: Runtime, M: ZoneMedia> {
    device: &'a TxCache<R, M>,
    pub number: u32,
}

impl<R: Runtime, M: ZoneMedia> Drop for Ending<'_, R, M> {
    fn drop(&mut self) {
        self.device.state.borrow_mut().transactions[self.number as usize].ending = false;
        self.device.gates.wake_all();
    }
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Begins a transaction called `proposed`. If that id is in use by an open transaction, or by a
    /// committed one whose pages are not all written back, it gets another id (table I, BEGIN).
    /// Without a proposal the device chooses.
    ///
    /// If all headers are held by committed transactions, waits for write-back.
    ///
    /// # Errors
    /// `TooManyTransactions` if the maximum number is open; `Unsupported` for a cache without
    /// transactions.
    pub async fn begin_as(&self, proposed: Option<TxId>) -> Result<TxId> {
        self.check_failed()?;
        if self.options.transactions_max == 0 {
            return Err(Error::new(ErrorKind::Unsupported, "this device has no transactions"));
        }
        if let Some(error) = self.too_many() {
            return Err(error);
        }
        // The time is charged before the store: otherwise a begin whose future is dropped between
        // the two would leave a transaction that nobody knows.
        self.pay(1).await;
        let header = || {
            if let Some(error) = self.too_many() {
                return Some(Err(error));
            }
            self.unless_failed(!self.state.borrow().free_transactions.is_empty())
        };
        match header() {
            Some(free) => free?,
            None => {
                self.state.borrow_mut().statistics.begins_waited += 1;
                let _waiting = Waiting::new(&self.begins_waiting, 1);
                self.work.wake_all();
                self.room.until(header).await?;
            }
        }
        let mut chosen = TxId(0);
        let stores = self.change(|state| {
            chosen = state.choose_id(proposed);
            let number = state.free_transactions.pop().expect("it was waited for");
            state.begin(number, chosen);
        });
        debug_assert_eq!(stores, 1);
        self.wake_flushers();
        Ok(chosen)
    }

    fn too_many(&self) -> Option<Error> {
        let open = self.state.borrow().open;
        (open >= self.options.transactions_max).then(|| {
            Error::new(
                ErrorKind::TooManyTransactions,
                format!("{open} transactions are open, which is the limit"),
            )
        })
    }

    /// Starts a command of `tx`, after all earlier commits and aborts.
    pub(super) async fn enter(&self, tx: TxId) -> Result<Inside<'_, R, M>> {
        let number = self.gate(tx, |transaction| transaction.in_flight += 1).await?;
        Ok(Inside { device: self, number })
    }

    /// The header of open transaction `tx`, once no commit or abort of it is waiting. Applies
    /// `mark` to it.
    async fn gate(&self, tx: TxId, mark: impl Fn(&mut Transaction)) -> Result<u32> {
        let open = || {
            let state = &mut *self.state.borrow_mut();
            let number = match state.open_number(tx) {
                Ok(number) => number,
                Err(error) => return Some(Err(error)),
            };
            let transaction = &mut state.transactions[number as usize];
            if transaction.ending {
                return None;
            }
            mark(transaction);
            Some(Ok(number))
        };
        self.gates.until(open).await
    }

    /// Records that `count` commands, or moves of pages to the extended cache, have ended.
    pub(super) fn left(&self, number: u32, count: u32) {
        let transaction = &mut self.state.borrow_mut().transactions[number as usize];
        transaction.in_flight -= count;
        if transaction.ending {
            self.gates.wake_all();
        }
    }

    /// Waits for the commands of `tx` before its commit or abort, and delays later ones.
    pub(super) async fn end(&self, tx: TxId) -> Result<Ending<'_, R, M>> {
        let number = self.gate(tx, |transaction| transaction.ending = true).await?;
        let ending = Ending { device: self, number };
        let alone = || {
            let in_flight = self.state.borrow().transactions[ending.number as usize].in_flight;
            (in_flight == 0 || Fault::ControlOvertakes.is_planted()).then_some(())
        };
        self.gates.until(alone).await;
        Ok(ending)
    }

    /// Returns `Conflict` if a transaction holds a page of `range`, which is to be changed outside of transactions.
    pub(super) fn check_released(&self, range: PageRange) -> Result<()> {
        let state = self.state.borrow();
        match state.first_held(range) {
            Some(page) if !Fault::HeldPagesOpen.is_planted() => Err(state.conflict(page)),
            _ => Ok(()),
        }
    }

    /// Called when a transaction ended, or versions were replaced: there may be free room, or
    /// something to write back.
    pub(super) fn after_change(&self) {
        self.room.wake_all();
        self.wake_flushers();
    }
}

impl<P: tantalum_base::Payload> CacheState<P> {
    /// The header of open transaction `tx`.
    pub(super) fn open_number(&self, tx: TxId) -> Result<u32> {
        let number = self.by_id.get(&tx);
        let problem = match number.map(|number| self.transactions[*number as usize].phase) {
            Some(Phase::Open) => return Ok(*number.expect("it was just found")),
            Some(Phase::Committed) => "is committed",
            _ => "is not open: it was never begun, or has ended",
        };
        let context = format!("transaction {tx} {problem}");
        Err(Error::new(ErrorKind::UnknownTransaction, context))
    }

    /// The first page of `range` that an open transaction holds.
    fn first_held(&self, range: PageRange) -> Option<PageNo> {
        if range.pages <= self.holders.len() as u64 {
            return range.iter().find(|page| self.holders.contains_key(page));
        }
        self.holders.keys().copied().filter(|page| range.contains(*page)).min()
    }

    /// The error for a change of `page`, which another transaction holds.
    pub(super) fn conflict(&self, page: PageNo) -> Error {
        let header = self.holders.get(&page).map(|held| self.nvram.header(*held));
        let holder =
            header.map_or(TxId(0), |header| self.transactions[header.transaction as usize].id);
        let context = format!(
            "page {page} is held by open transaction {holder}: try again when that is committed or aborted"
        );
        Error::new(ErrorKind::Conflict, context)
    }

    /// `proposed` if it is available, otherwise the next available id.
    fn choose_id(&mut self, proposed: Option<TxId>) -> TxId {
        if let Some(proposed) = proposed
            && !self.by_id.contains_key(&proposed)
        {
            return proposed;
        }
        loop {
            let id = TxId(self.next_id);
            self.next_id = self.next_id.wrapping_add(1);
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }
}
