//! A transaction in progress: every read is checked, and its changes are remembered.
use tantalum_base::{Error, ErrorKind, Result};

use super::expected::{ANY, Change, Changes, Expected, Floor};
use super::population::{Initial, name_prefix};
use super::rows::Row;
use super::tables::{ORDER_MAX, Place, RowId, Table, columns, value};
use super::terminals::Who;
use crate::workload::RowTransaction;

/// A transaction in progress.
pub(super) struct Work<'a, T> {
    transaction: &'a mut T,
    expected: &'a Expected,
    changes: Changes,
}

impl<'a, T: RowTransaction> Work<'a, T> {
    pub(super) fn new(transaction: &'a mut T, expected: &'a Expected) -> Self {
        Work { transaction, expected, changes: Changes::new() }
    }

    /// The content at the start, which does not change.
    pub(super) fn initial(&self) -> &'a Initial {
        &self.expected.initial
    }

    /// The changes of the rows that it has locked; it is about to commit.
    pub(super) fn into_changes(mut self) -> Changes {
        self.expected.begin(&mut self.changes);
        self.changes
    }

    /// The last committed columns of a row.
    pub(super) async fn find(&self, row: RowId) -> Result<Option<u64>> {
        self.find_from(row, self.expected.floor(row)).await
    }

    async fn find_from(&self, row: RowId, floor: Floor) -> Result<Option<u64>> {
        let found = self.transaction.get(row.table.tree(), row.key().as_slice()).await?;
        let found = found.map(|value| columns(row.table, &value)).transpose()?;
        match self.changes.get(&row) {
            Some(own) if own.to == found => {}
            _ => self.expected.check(row, floor, found)?,
        }
        Ok(found)
    }

    /// The last committed state of a row, which must exist.
    pub(super) async fn read<R: Row>(&self, row: RowId) -> Result<R> {
        debug_assert_eq!(row.table, R::TABLE);
        self.find(row).await?.map(R::unpack).ok_or_else(|| missing(row))
    }

    /// Locks a row until the end; returns its columns.
    pub(super) async fn try_hold(&mut self, row: RowId) -> Result<Option<u64>> {
        let key = row.key();
        let found = self.transaction.get_for_update(row.table.tree(), key.as_slice()).await?;
        let found = found.map(|value| columns(row.table, &value)).transpose()?;
        match self.changes.get(&row) {
            Some(own) if own.to == found => {}
            _ => self.expected.check_held(row, found)?,
        }
        Ok(found)
    }

    /// Locks a row, which must exist, until the end.
    pub(super) async fn hold<R: Row>(&mut self, row: RowId) -> Result<R> {
        debug_assert_eq!(row.table, R::TABLE);
        self.try_hold(row).await?.map(R::unpack).ok_or_else(|| missing(row))
    }

    /// Inserts or replaces a row.
    pub(super) async fn put<R: Row>(&mut self, row: RowId, content: &R) -> Result<()> {
        debug_assert_eq!(row.table, R::TABLE);
        self.put_columns(row, content.pack()?).await
    }

    /// Inserts a row that never changes.
    pub(super) async fn put_told(&mut self, row: RowId) -> Result<()> {
        let columns = self.initial().told(row);
        self.put_columns(row, columns).await
    }

    async fn put_columns(&mut self, row: RowId, columns: u64) -> Result<()> {
        let value = value(row.table, columns);
        self.transaction.put(row.table.tree(), row.key().as_slice(), value).await?;
        self.changes.insert(row, Change::to(Some(columns)));
        Ok(())
    }

    /// Deletes a row.
    pub(super) async fn delete(&mut self, row: RowId) -> Result<()> {
        self.transaction.delete(row.table.tree(), row.key().as_slice()).await?;
        self.changes.insert(row, Change::to(None));
        Ok(())
    }

    /// At most `rows_max` rows of a table from `from` to `to`, both included, in the order of their keys.
    pub(super) async fn scan(
        &self,
        from: RowId,
        to: RowId,
        rows_max: usize,
    ) -> Result<Vec<(RowId, u64)>> {
        let (table, end) = (from.table, RowId { number: to.number + 1, ..to });
        let (from, to) = (from.key(), end.key());
        let (from, to) = (from.as_slice(), Some(to.as_slice()));
        let found = self.transaction.scan(table.tree(), from, to, rows_max).await?;
        let mut rows = Vec::with_capacity(found.len());
        for (key, value) in found {
            let row = RowId::of(table, &key)?;
            let columns = columns(table, &value)?;
            self.expected.check(row, ANY, Some(columns))?;
            if rows.last().is_some_and(|(last, _)| *last >= row) || *key < *from {
                return Err(Error::new(ErrorKind::Corrupt, format!("{row:?} is out of its order")));
            }
            rows.push((row, columns));
        }
        Ok(rows)
    }

    /// The selected customer: of several with the same last name the middle one by first name (clause
    /// 2.5.2.2).
    pub(super) async fn customer(&self, place: Place, who: Who) -> Result<u16> {
        match who {
            Who::Number(customer) => Ok(customer),
            Who::Name(name) => {
                let customers = self.namesakes(place, name).await?;
                Ok(customers[customers.len().div_ceil(2) - 1])
            }
        }
    }

    /// The customers with this last name; at least one.
    async fn namesakes(&self, place: Place, name: u64) -> Result<Vec<u16>> {
        let from = name_prefix(place, name);
        let mut to = from.clone();
        // The name in a key ends with a zero.
        to.pop();
        to.push(1);
        let table = Table::CustomerName;
        let found = self.transaction.scan(table.tree(), &from, Some(&to), usize::MAX).await?;
        let mut customers = Vec::with_capacity(found.len());
        for (key, value) in found {
            let columns = columns(table, &value)?;
            let customer = columns as u16;
            let there = (1..=self.initial().population.customers()).contains(&customer);
            let right = there
                && columns == self.initial().name_columns(place, customer)
                && *key == *self.initial().name_key(place, customer);
            if !right {
                let context = format!("{place:?}: {columns:#x} among customers called {name}");
                return Err(Error::new(ErrorKind::Corrupt, context));
            }
            customers.push(customer);
        }
        if customers.is_empty() {
            let context = format!("{place:?}: no customer is called {name}");
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        Ok(customers)
    }

    /// The number of a customer's newest order: each customer has one.
    pub(super) async fn newest_order(&self, place: Place, customer: u16) -> Result<u32> {
        let newest = place.customer_order(customer, ORDER_MAX);
        let oldest = place.customer_order(customer, 1);
        let found = self.scan(newest, oldest, 1).await?;
        let (row, _) = found.first().ok_or_else(|| missing(oldest))?;
        Ok(ORDER_MAX - (row.number as u32 & ORDER_MAX))
    }
}

/// The error for a row that must exist but does not.
pub(super) fn missing(row: RowId) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{row:?} is missing"))
}
