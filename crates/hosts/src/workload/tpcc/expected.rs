//! The results that a read may return.
//!
//! A transaction that changes rows holds their locks, so the changes of a row have one order: a locked row has exactly the columns of
//! its last change. A read without a lock may find the change that was last when the read began, or a later one. Each row has columns
//! that only grow ([`Table::age`](super::Table)), which distinguish an older state from a newer one.
use std::cell::RefCell;
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, FastMap, Result};

use super::population::Initial;
use super::tables::{RowId, columns};
use crate::workload::RowStore;

/// Changes of a transaction.
pub(super) type Changes = BTreeMap<RowId, Change>;

/// The columns of a row, `None` if there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) to: Option<u64>,
    before: Option<u64>,
}

impl Change {
    pub(super) fn to(to: Option<u64>) -> Self {
        Change { to, before: None }
    }
}

/// The known states of a row.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The state after the last change that was begun.
    newest: Option<u64>,
    newest_age: u64,
    /// The state before a last change whose commit failed: the change may have been made or not.
    or_before: Option<Option<u64>>,
    /// Age of the row after the last acknowledged change; 0 if there was none yet.
    floor: u64,
}

/// The expected rows.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) initial: Initial,
    /// Rows that were changed since the start.
    changed: RefCell<FastMap<RowId, Known>>,
}

/// The lowest age that a read may find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor(u64);

/// Accepts any state of an existing row.
pub(super) const ANY: Floor = Floor(1);

impl Expected {
    pub(super) fn new(initial: Initial) -> Self {
        Expected { initial, changed: RefCell::default() }
    }

    fn known(&self, row: RowId) -> Known {
        let changed = self.changed.borrow().get(&row).copied();
        changed.unwrap_or_else(|| {
            let newest = self.initial.columns(row);
            let age = newest.map_or(0, |columns| row.table.age(columns));
            Known { newest, newest_age: age, or_before: None, floor: age }
        })
    }

    /// The floor for a read that begins now.
    pub(super) fn floor(&self, row: RowId) -> Floor {
        Floor(self.known(row).floor)
    }

    /// Checks the result of a read that began with this floor and ends now.
    ///
    /// # Errors
    /// `Corrupt` if it is not possible.
    pub(super) fn check(&self, row: RowId, floor: Floor, found: Option<u64>) -> Result<()> {
        let known = self.known(row);
        let may = match found {
            Some(columns) => {
                let age = row.table.age(columns);
                let newest = known.newest == Some(columns);
                floor.0 <= age && (age < known.newest_age || newest)
            }
            None => floor.0 == 0 || known.newest.is_none(),
        };
        if may { Ok(()) } else { Err(wrong(row, found, known)) }
    }

    /// Checks the columns of a locked row.
    ///
    /// # Errors
    /// `Corrupt` if they are not possible.
    pub(super) fn check_held(&self, row: RowId, found: Option<u64>) -> Result<()> {
        let known = self.known(row);
        if found == known.newest {
            return Ok(());
        }
        if known.or_before != Some(found) {
            return Err(wrong(row, found, known));
        }
        self.now_is(row, found);
        Ok(())
    }

    /// Records the state in which a row was found while nothing changes it.
    fn now_is(&self, row: RowId, found: Option<u64>) {
        let mut changed = self.changed.borrow_mut();
        let Some(known) = changed.get_mut(&row) else { return };
        // A row that was deleted existed before.
        let age = found.map_or(known.floor, |columns| row.table.age(columns));
        *known = Known { newest: found, newest_age: age, or_before: None, ..*known };
    }

    /// Begins the commit of a transaction that holds these rows.
    pub(super) fn begin(&self, changes: &mut Changes) {
        for (row, change) in changes {
            let known = self.known(*row);
            change.before = known.newest;
            let newest_age = match change.to {
                Some(columns) => row.table.age(columns),
                None => known.newest_age + 1,
            };
            let known = Known { newest: change.to, newest_age, or_before: None, ..known };
            self.changed.borrow_mut().insert(*row, known);
        }
    }

    /// Its commit failed: its changes may have been made or not.
    pub(super) fn doubt(&self, changes: &Changes) {
        let mut changed = self.changed.borrow_mut();
        for (row, change) in changes {
            if let Some(known) = changed.get_mut(row) {
                known.or_before = Some(change.before);
            }
        }
    }

    /// Its commit was acknowledged.
    pub(super) fn end(&self, changes: &Changes) {
        let mut changed = self.changed.borrow_mut();
        for (row, change) in changes {
            let Some(known) = changed.get_mut(row) else { continue };
            let age = change.to.map(|columns| row.table.age(columns));
            known.floor = known.floor.max(age.unwrap_or(known.newest_age));
        }
    }

    /// Checks that every changed row is in the state after one of its changes, not older than the last acknowledged one. From now on
    /// the state found is the expected one: after a crash, unacknowledged changes may be there or not. No client may run meanwhile.
    ///
    /// # Errors
    /// `Corrupt` if a row is in another state; those of the engine.
    pub(super) async fn settle<S: RowStore>(&self, store: &S) -> Result<()> {
        let mut rows: Vec<RowId> = self.changed.borrow().keys().copied().collect();
        rows.sort_unstable();
        for row in rows {
            let found = store.get(row.table.tree(), row.key().as_slice()).await?;
            let found = found.map(|value| columns(row.table, &value)).transpose()?;
            self.check(row, self.floor(row), found)?;
            self.now_is(row, found);
            if let Some(known) = self.changed.borrow_mut().get_mut(&row) {
                known.floor = known.newest_age;
            }
        }
        Ok(())
    }
}

fn wrong(row: RowId, found: Option<u64>, known: Known) -> Error {
    let RowId { table, number } = row;
    let context = format!("{table:?}, row {number:#x}: found {found:x?}, where {known:x?}");
    Error::new(ErrorKind::Corrupt, context)
}
