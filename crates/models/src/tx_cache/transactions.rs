//! The interface of table I: ids, and the order of commands around begin, commit and abort.
//!
//! Commands of one transaction may pass each other between two control commands. A commit or abort
//! waits until those that came before it have ended, and those that come while it waits wait for
//! it; they then find the transaction gone.
//!
//! The rule for conflicts: the first transaction to write a page holds it to its end. Another one that
//! writes it is refused with `Conflict` and may go on or abort; a write or trim outside of transactions,
//! which is a transaction of this one command, is refused likewise.
use crate::fault_points::Fault;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result, TxId};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Waiting;

use super::device::TxCache;
use super::state::{CacheState, Phase, Transaction};

/// A command of a transaction, for as long as it is in flight.
pub(super) struct Inside<'a, R: Runtime, M: ZoneMedia> {
    device: &'a TxCache<R, M>,
    pub number: u32,
}

impl<R: Runtime, M: ZoneMedia> Drop for Inside<'_, R, M> {
    fn drop(&mut self) {
        self.device.left(self.number, 1);
    }
}

/// A commit or abort, from when it came to when it is done.
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
    /// Begins a transaction called `proposed`, or called otherwise where that is taken: by an open
    /// transaction, or by a committed one whose pages are not all written back (table I, BEGIN).
    /// Without a proposal the device chooses.
    ///
    /// Where every header is held by a committed transaction, this waits for write-back.
    ///
    /// # Errors
    /// `TooManyTransactions` where as many are open as may be; `Unsupported` where there are none.
    pub async fn begin_as(&self, proposed: Option<TxId>) -> Result<TxId> {
        self.check_failed()?;
        if self.options.transactions_max == 0 {
            return Err(Error::new(ErrorKind::Unsupported, "this device has no transactions"));
        }
        if let Some(error) = self.too_many() {
            return Err(error);
        }
        // Paid for before the store: a begin that is given up between the two would leave a
        // transaction of which nobody knows.
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

    /// Starts a command of `tx`, once no commit or abort is before it.
    pub(super) async fn enter(&self, tx: TxId) -> Result<Inside<'_, R, M>> {
        let number = self.gate(tx, |transaction| transaction.in_flight += 1).await?;
        Ok(Inside { device: self, number })
    }

    /// The open transaction `tx`, once nobody ends it, and after `mark` of it.
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

    /// So many commands, or pages on their way to the extended cache, have ended.
    pub(super) fn left(&self, number: u32, count: u32) {
        let transaction = &mut self.state.borrow_mut().transactions[number as usize];
        transaction.in_flight -= count;
        if transaction.ending {
            self.gates.wake_all();
        }
    }

    /// Waits for the commands of `tx` before its commit or abort; holds up those behind.
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

    /// Fails with `Conflict` where a transaction holds a page of `range`, which is to change outside of transactions.
    pub(super) fn check_released(&self, range: PageRange) -> Result<()> {
        let state = self.state.borrow();
        match state.first_held(range) {
            Some(page) if !Fault::HeldPagesOpen.is_planted() => Err(state.conflict(page)),
            _ => Ok(()),
        }
    }

    /// A transaction ended, or versions were replaced: there may be room, as what they held is free,
    /// or something to write back.
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

    /// The error of who would change `page`, which another transaction holds.
    pub(super) fn conflict(&self, page: PageNo) -> Error {
        let header = self.holders.get(&page).map(|held| self.nvram.header(*held));
        let holder =
            header.map_or(TxId(0), |header| self.transactions[header.transaction as usize].id);
        let context = format!(
            "page {page} is held by open transaction {holder}: try again when that is committed or aborted"
        );
        Error::new(ErrorKind::Conflict, context)
    }

    /// `proposed` where it is available, otherwise the next id that is.
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
