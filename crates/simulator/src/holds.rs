//! Which pages transactions hold, as far as their clients can know. A device must refuse who changes one that is surely held, and
//! may refuse nobody else with `Conflict`.
use std::cell::RefCell;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result, TxId};

/// A page that was written in a transaction. The times are those of the history.
struct Hold {
    tx: TxId,
    page: PageNo,
    /// When its write was issued, and when that was acknowledged.
    issued: u64,
    taken: Option<u64>,
    /// When the transaction's commit or abort was issued, and when that was answered.
    ending: Option<u64>,
    ended: Option<u64>,
}

/// What all transactions since the power came on hold.
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

    /// It has been.
    pub(super) fn ended(&self, tx: TxId, now: u64) {
        self.each_of(tx, |hold| hold.ended = Some(now));
    }

    fn each_of(&self, tx: TxId, change: impl Fn(&mut Hold)) {
        let mut holds = self.0.borrow_mut();
        holds.iter_mut().filter(|hold| hold.tx == tx).for_each(change);
    }

    /// Checks how a change of `pages` ended, in a transaction of its `own` or outside, that was issued and answered at these times.
    ///
    /// # Errors
    /// `Corrupt` where it should have ended otherwise.
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
