//! Compares all tables with each other, and with the payments.
use tantalum_base::Result;

use super::run::Pgbench;
use super::tables::{Table, balance_of, payment_of, wrong};
use crate::workload::RowStore;
use crate::workload::rows::each_row;

/// The content of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Payments in the history.
    pub payments: u64,
    /// Their sum, which is also that of the accounts, the tellers and the branches.
    pub paid: i64,
}

impl Pgbench {
    /// Reads all tables while no transaction is in progress, also after a crash. Every acknowledged payment is in the history, and each
    /// payment that was being committed is there as a whole or not at all. Every balance is the sum of its payments in the history, and the
    /// balances of each table add up to the sum of all payments.
    ///
    /// # Errors
    /// `Corrupt` if this is not so; those of the engine.
    pub async fn check<S: RowStore>(&self, store: &S) -> Result<Audit> {
        let (mut places, mut paid) = (Vec::new(), 0);
        each_row(store, Table::History.tree(), |key, value: &S::Value| {
            let place = Table::History.number(key)?;
            let payment = payment_of(place, value)?;
            self.balances.borrow().check_payment(place, payment)?;
            places.push(place);
            paid += payment.1;
            Ok(())
        })
        .await?;
        self.balances.borrow_mut().settle(&places)?;
        for table in Table::WITH_BALANCE {
            self.check_table(store, table, paid).await?;
        }
        Ok(Audit { payments: places.len() as u64, paid })
    }

    async fn check_table<S: RowStore>(&self, store: &S, table: Table, paid: i64) -> Result<()> {
        let (mut rows, mut sum) = (0, 0);
        each_row(store, table.tree(), |key, value: &S::Value| {
            let number = table.number(key)?;
            let balance = balance_of(table, number, value)?;
            self.balances.borrow().check(table, number, balance)?;
            if number != rows {
                return Err(wrong(table, rows, format_args!("is missing before row {number}")));
            }
            rows += 1;
            sum += balance;
            Ok(())
        })
        .await?;
        if rows != self.population.rows(table) || sum != paid {
            let why = format_args!("of the last one: in all {sum}, where {paid} was paid");
            return Err(wrong(table, rows, why));
        }
        Ok(())
    }
}
