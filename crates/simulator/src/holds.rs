//! Pages that transactions hold, as far as their clients can know. A device must refuse a change of a page that another transaction
//! certainly holds, and may refuse no other change with `Conflict`.
use std::cell::RefCell;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result, TxId};

/// A page that was written in a transaction. The times are those of the history.
struct Hold {
    tx: TxId,
    page: PageNo,
    /// The times at which its write was issued, and acknowledged.
    issued: u64,
    taken: Option<u64>,
    /// The times at which the transaction's commit or abort was issued, and answered.
    ending: Option<u64>,
    ended: Option<u64>,
}

/// The pages held by all transactions since the power came on.
#[derive(Default)]
pub(super) struct Holds(RefCell<Vec<Hold>>);

impl Holds {
    /// `tx` is about to write `page`.
    pub(super) fn taking(&self, tx: TxId, page: PageNo, now: u64) {
        let hold = Hold { tx, page, issued: now, taken: None, ending: None, ended: None };
        self.0.borrow_mut().push(hold);
    }

    /// The last write of `tx` was acknowledged.
    pub(super) fn taken(&self, tx: TxId, now: u64) {
        let mut holds = self.0.borrow_mut();
        if let Some(hold) = holds.iter_mut().rev().find(|hold| hold.tx == tx) {
            hold.taken = Some(now);
        }
    }

    /// `tx` is about to be committed or aborted.
    pub(super) fn ending(&self, tx: TxId, now: u64) {
        self.each_of(tx, |hold| hold.ending = Some(now));
    }

    /// `tx` has been committed or aborted.
    pub(super) fn ended(&self, tx: TxId, now: u64) {
        self.each_of(tx, |hold| hold.ended = Some(now));
    }

    fn each_of(&self, tx: TxId, change: impl Fn(&mut Hold)) {
        let mut holds = self.0.borrow_mut();
        holds.iter_mut().filter(|hold| hold.tx == tx).for_each(change);
    }

    /// Checks the result of a change of `pages`, in a transaction of its `own` or outside, that was issued and answered at these
    /// times.
    ///
    /// # Errors
    /// `Corrupt` if the result should have been different.
    pub(super) fn check(
        &self,
        own: Option<TxId>,
        pages: &[PageRange],
        (issued, answered): (u64, u64),
        done: &Result<()>,
    ) -> Result<()> {
        let holds = self.0.borrow();
        let others = || {
            let of_others = holds.iter().filter(|hold| Some(hold.tx) != own);
            of_others.filter(|hold| pages.iter().any(|range| range.contains(hold.page)))
        };
        let surely =
            |hold: &&Hold| hold.taken.is_some_and(|taken| taken < issued) && hold.ending.is_none();
        let maybe =
            |hold: &Hold| hold.issued < answered && hold.ended.is_none_or(|ended| ended > issued);
        let wrong = match done {
            Ok(()) => others().find(surely).map(|hold| {
                let Hold { page, tx, .. } = hold;
                format!("page {page} was changed, which open transaction {tx} holds")
            }),
            Err(error) if error.kind() == ErrorKind::Conflict && !others().any(maybe) => Some(
                format!("refused, though no other transaction holds one of its pages: {error}"),
            ),
            Err(_) => None,
        };
        wrong.map_or(Ok(()), |wrong| Err(Error::new(ErrorKind::Corrupt, wrong)))
    }
}
