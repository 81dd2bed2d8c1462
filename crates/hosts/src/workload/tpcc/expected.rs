//! What a read may find.
//!
//! Rows are held by those who change them, so that the changes of a row have one order: a row that is held has the columns of its last
//! change, exactly. Whoever reads without holding may find what was the last one when it began, or a later one. A row has columns that
//! only grow ([`Table::age`](super::Table)), which tell an older state from a newer one.
use std::cell::RefCell;
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, FastMap, Result};

use super::population::Initial;
use super::tables::{RowId, columns};
use crate::workload::RowStore;

/// Changes of a transaction.
pub(super) type Changes = BTreeMap<RowId, Change>;

/// The columns of a row, `None` where there is none.
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

/// What is known of a row.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// After the last change that was begun.
    newest: Option<u64>,
    newest_age: u64,
    /// What was there before a last change whose commit failed: it may have been made or not.
    or_before: Option<Option<u64>>,
    /// Age of the row after the last change that was acknowledged; 0 where there was none yet.
    floor: u64,
}

/// Rows as they are expected.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) initial: Initial,
    /// Those that were changed since the start.
    changed: RefCell<FastMap<RowId, Known>>,
}

/// The least age that a read may find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor(u64);

/// Any row will do that there was.
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

    /// What a read may find that begins now.
    pub(super) fn floor(&self, row: RowId) -> Floor {
        Floor(self.known(row).floor)
    }

    /// Whether a read that began with this floor, and ends now, may find this.
    ///
    /// # Errors
    /// `Corrupt` where it may not.
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

    /// Whether a row that is held may have these columns.
    ///
    /// # Errors
    /// `Corrupt` where it may not.
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

    /// A row is found to be so, as nobody changes it.
    fn now_is(&self, row: RowId, found: Option<u64>) {
        let mut changed = self.changed.borrow_mut();
        let Some(known) = changed.get_mut(&row) else { return };
        // One that went was there.
        let age = found.map_or(known.floor, |columns| row.table.age(columns));
        *known = Known { newest: found, newest_age: age, or_before: None, ..*known };
    }

    /// A transaction that holds these rows is about to commit.
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

    /// It was acknowledged.
    pub(super) fn end(&self, changes: &Changes) {
        let mut changed = self.changed.borrow_mut();
        for (row, change) in changes {
            let Some(known) = changed.get_mut(row) else { continue };
            let age = change.to.map(|columns| row.table.age(columns));
            known.floor = known.floor.max(age.unwrap_or(known.newest_age));
        }
    }

    /// Every row that was changed is as one of its changes left it, no older than the last one that was acknowledged. From now on
    /// it is expected to be as it was found: after a crash what was not acknowledged may be there or not. Nobody runs meanwhile.
    ///
    /// # Errors
    /// `Corrupt` where a row is not; the engine's.
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
