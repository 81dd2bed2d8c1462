//! The result that a read must return. A transaction that changes a row holds its lock, so a locked row has exactly the balance of its
//! last change.
use tantalum_base::Result;

use super::tables::{Population, Table, wrong};

/// Balances with all payments that have begun.
#[derive(Debug)]
pub(super) struct Balances {
    of: [Vec<i64>; Table::WITH_BALANCE.len()],
    /// Every payment that has begun, at its place in the history.
    payments: Vec<(Payment, State)>,
}

/// Money that is paid into an account, or out of it, at a teller of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Payment {
    pub(super) account: u64,
    pub(super) teller: u64,
    pub(super) branch: u64,
    pub(super) delta: i64,
}

/// The progress of a payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It may or may not be durable.
    Begun,
    /// Its commit was acknowledged, or it was found after a crash.
    Durable,
    /// A crash occurred before it was durable.
    Lost,
}

impl Payment {
    /// The rows that it changes, in the order of pgbench's script.
    pub(super) fn rows(&self) -> [(Table, u64); 3] {
        [
            (Table::Accounts, self.account),
            (Table::Tellers, self.teller),
            (Table::Branches, self.branch),
        ]
    }
}

impl Balances {
    /// All balances are 0.
    pub(super) fn new(population: &Population) -> Self {
        let of = Table::WITH_BALANCE.map(|table| vec![0; population.rows(table) as usize]);
        Balances { of, payments: Vec::new() }
    }

    /// Begins the commit of a payment whose rows are locked; returns its place in the history.
    pub(super) fn begin(&mut self, payment: Payment) -> u64 {
        self.add(&payment, payment.delta);
        self.payments.push((payment, State::Begun));
        self.payments.len() as u64 - 1
    }

    /// The payment was acknowledged.
    pub(super) fn end(&mut self, place: u64) {
        self.payments[place as usize].1 = State::Durable;
    }

    fn add(&mut self, payment: &Payment, delta: i64) {
        for (table, number) in payment.rows() {
            self.of[table as usize][number as usize] += delta;
        }
    }

    /// Checks the balance of a locked row.
    ///
    /// # Errors
    /// `Corrupt` if it is wrong.
    pub(super) fn check(&self, table: Table, number: u64, found: i64) -> Result<()> {
        match self.of[table as usize].get(number as usize) {
            Some(is) if *is == found => Ok(()),
            is => Err(wrong(table, number, format_args!("found {found} instead of {is:?}"))),
        }
    }

    /// Checks the payment at a place in the history.
    ///
    /// # Errors
    /// `Corrupt` if it is another one, or was found lost before.
    pub(super) fn check_payment(&self, place: u64, (account, delta): (u64, i64)) -> Result<()> {
        match self.payments.get(place as usize) {
            Some((payment, state))
                if (payment.account, payment.delta) == (account, delta)
                    && *state != State::Lost =>
            {
                Ok(())
            }
            is => {
                let why = format_args!("{delta} for account {account} instead of {is:?}");
                Err(wrong(Table::History, place, why))
            }
        }
    }

    /// Settles which payments exist, while no client runs. `places` are the places in the history that have a payment, in ascending
    /// order. They include every acknowledged payment; other payments that are missing are lost.
    ///
    /// # Errors
    /// `Corrupt` if an acknowledged payment is missing.
    pub(super) fn settle(&mut self, places: &[u64]) -> Result<()> {
        let mut found = places.iter().peekable();
        for at in 0..self.payments.len() {
            let (payment, state) = self.payments[at];
            let is_there = found.next_if(|place| **place == at as u64).is_some();
            self.payments[at].1 = match state {
                _ if is_there => State::Durable,
                State::Durable => return Err(wrong(Table::History, at as u64, "is missing")),
                State::Begun => {
                    self.add(&payment, -payment.delta);
                    State::Lost
                }
                State::Lost => State::Lost,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_acknowledged_may_be_lost_and_then_is_in_no_balance() {
        let population = Population { branches: 1, accounts_per_branch: 2 };
        let mut balances = Balances::new(&population);
        let payment = |account, delta| Payment { account, teller: 0, branch: 0, delta };
        let [first, second, third] = [(0, 5), (1, 7), (0, 11)]
            .map(|(account, delta)| balances.begin(payment(account, delta)));
        balances.end(first);
        balances.check(Table::Branches, 0, 23).unwrap();
        assert!(balances.settle(&[second]).is_err(), "the first was acknowledged");
        balances.settle(&[first, third]).unwrap();
        balances.check(Table::Branches, 0, 16).unwrap();
        balances.check(Table::Accounts, 1, 0).unwrap();
        balances.check_payment(third, (0, 11)).unwrap();
        assert!(balances.check_payment(third, (0, 12)).is_err());
        assert!(balances.check_payment(second, (1, 7)).is_err(), "lost");
        assert!(balances.settle(&[first]).is_err(), "the third was found");
    }
}
