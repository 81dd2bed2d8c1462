//! The tables, their keys and rows.
use tantalum_base::{Error, ErrorKind, Result};

use crate::values::Tree;
use crate::workload::LoadValue;

/// Trees that a database needs: one per table.
pub const TREES: u32 = 4;

/// Tellers per branch.
const TELLERS: u64 = 10;

/// Accounts per branch, as in pgbench.
const ACCOUNTS: u64 = 100_000;

/// Maximum payment in or out, in units of money.
pub(super) const DELTA_MAX: i64 = 5_000;

/// Bytes of PostgreSQL's header of each row.
const HEADER_BYTES: u32 = 24;

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Table {
    /// `pgbench_branches`.
    Branches,
    /// `pgbench_tellers`.
    Tellers,
    /// `pgbench_accounts`.
    Accounts,
    /// `pgbench_history`.
    History,
}

impl Table {
    /// All of them, in the order of their trees.
    pub const ALL: [Table; TREES as usize] =
        [Table::Branches, Table::Tellers, Table::Accounts, Table::History];

    /// Those whose rows have a balance.
    pub(super) const WITH_BALANCE: [Table; 3] = [Table::Branches, Table::Tellers, Table::Accounts];

    /// The tree of its rows.
    pub fn tree(self) -> Tree {
        Tree(self as u32)
    }

    /// Bytes of a row's columns: integers have four, a time has eight. Only the filler of accounts is not NULL.
    fn column_bytes(self) -> u32 {
        match self {
            Table::Branches => 8,
            Table::Tellers => 12,
            Table::Accounts => 97,
            Table::History => 24,
        }
    }

    /// Length of a key in bytes. The key of a history row is its place in the history.
    fn key_bytes(self) -> usize {
        match self {
            Table::History => 8,
            _ => 4,
        }
    }

    /// Length of a row without its key, in bytes.
    pub fn value_bytes(self) -> u32 {
        HEADER_BYTES + self.column_bytes() - if self == Table::History { 0 } else { 4 }
    }

    /// The key of the row with this number.
    pub(super) fn key(self, number: u64) -> Vec<u8> {
        number.to_be_bytes()[8 - self.key_bytes()..].to_vec()
    }

    /// The number of the row with this key.
    ///
    /// # Errors
    /// `Corrupt` if no row of the table has such a key.
    pub(super) fn number(self, key: &[u8]) -> Result<u64> {
        if key.len() != self.key_bytes() {
            let context = format!("{self:?}: a key of {} bytes", key.len());
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        Ok(key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// Numbers of rows at the start. A million accounts occupy about 150 MB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Population {
    /// Number of branches: pgbench's scale.
    pub branches: u64,
    /// Number of accounts of each branch.
    pub accounts_per_branch: u64,
}

impl Population {
    /// pgbench's population at this scale.
    pub fn new(scale: u64) -> Self {
        Population { branches: scale, accounts_per_branch: ACCOUNTS }
    }

    /// Number of rows of a table; rows are numbered from 0 on.
    pub fn rows(&self, table: Table) -> u64 {
        match table {
            Table::Branches => self.branches,
            Table::Tellers => self.branches * TELLERS,
            Table::Accounts => self.branches * self.accounts_per_branch,
            Table::History => 0,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let most = 1 << 32;
        let accounts = self.branches.checked_mul(self.accounts_per_branch);
        if accounts.is_none_or(|accounts| accounts == 0 || accounts > most) {
            let problem = format!("{self:?}: there are 1 to 2^32 accounts");
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(())
    }
}

/// Bits of a row's number that its value contains.
const NUMBER_BITS: u32 = 24;

/// Offset of a stored balance, so that it is never below 0.
const BALANCE_ZERO: i64 = 1 << 39;

/// The part of its row's number that a value contains.
fn told_number(number: u64) -> u32 {
    (number & ((1 << NUMBER_BITS) - 1)) as u32
}

/// The encoded row with this number and balance.
pub(super) fn balance_row<V: LoadValue>(table: Table, number: u64, balance: i64) -> V {
    V::made((balance + BALANCE_ZERO) as u64, told_number(number), table.value_bytes())
}

/// The balance of a row.
///
/// # Errors
/// `Corrupt` if the value is not the row with this number of this table.
pub(super) fn balance_of<V: LoadValue>(table: Table, number: u64, value: &V) -> Result<i64> {
    let told = value.told(table.value_bytes());
    let told = told.filter(|(_, of)| *of == told_number(number));
    let told = told.ok_or_else(|| wrong(table, number, "is another row"))?;
    Ok(told.0 as i64 - BALANCE_ZERO)
}

/// An encoded payment.
pub(super) fn payment_row<V: LoadValue>(account: u64, delta: i64) -> V {
    V::made(account, (delta + DELTA_MAX) as u32, Table::History.value_bytes())
}

/// Account and amount of a payment.
///
/// # Errors
/// `Corrupt` if it is not a payment.
pub(super) fn payment_of<V: LoadValue>(number: u64, value: &V) -> Result<(u64, i64)> {
    let told = value.told(Table::History.value_bytes());
    let (account, delta) = told.ok_or_else(|| wrong(Table::History, number, "is no payment"))?;
    Ok((account, i64::from(delta) - DELTA_MAX))
}

/// The error for a wrong row.
pub(super) fn wrong(table: Table, number: u64, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{table:?}, row {number}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueStamp;

    #[test]
    fn rows_are_as_long_as_postgresql_has_them_and_tell_what_is_in_them() {
        let row: ValueStamp = balance_row(Table::Accounts, 70_000_000, -12_345);
        assert_eq!(row.bytes + 4, 97 + 24);
        assert_eq!(balance_of(Table::Accounts, 70_000_000, &row).unwrap(), -12_345);
        let other = balance_of(Table::Accounts, 70_000_001, &row).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Corrupt);
        assert!(balance_of(Table::Tellers, 70_000_000, &row).is_err());
        for delta in [-DELTA_MAX, 0, DELTA_MAX] {
            let row: ValueStamp = payment_row(9_999_999, delta);
            assert_eq!(payment_of(3, &row).unwrap(), (9_999_999, delta));
        }
        assert!(Table::Accounts.key(255) < Table::Accounts.key(256));
        assert_eq!(Table::History.number(&Table::History.key(1 << 40)).unwrap(), 1 << 40);
        assert!(Table::History.number(&[1]).is_err());
    }

    #[test]
    fn a_population_is_refused_that_keys_have_no_room_for() {
        assert_eq!(Population::new(100).rows(Table::Accounts), 10_000_000);
        assert_eq!(Population::new(100).rows(Table::Tellers), 1_000);
        for branches in [0, 1 << 32] {
            let refused = Population::new(branches).check().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        }
    }
}
