//! What a read must find. Whoever changes a row holds it, so that a row that is held has exactly the balance of its last change.
use tantalum_base::Result;

use super::tables::{Population, Table, wrong};

/// Balances as they are when all that was begun is done.
#[derive(Debug)]
pub(super) struct Balances {
    of: [Vec<i64>; Table::WITH_BALANCE.len()],
    /// Every payment that was begun, at its place in the history.
    payments: Vec<(Payment, State)>,
}

/// Money that is paid into an account at a teller of a branch, or out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Payment {
    pub(super) account: u64,
    pub(super) teller: u64,
    pub(super) branch: u64,
    pub(super) delta: i64,
}

/// How far a payment has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Whether it is durable nobody knows.
    Begun,
    /// Its commit was acknowledged, or it was found after a crash.
    Durable,
    /// A crash came before it was durable.
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
    /// Nothing in any of them.
    pub(super) fn new(population: &Population) -> Self {
        let of = Table::WITH_BALANCE.map(|table| vec![0; population.rows(table) as usize]);
        Balances { of, payments: Vec::new() }
    }

    /// A payment whose rows are held is about to be committed; its place in the history.
    pub(super) fn begin(&mut self, payment: Payment) -> u64 {
        self.add(&payment, payment.delta);
        self.payments.push((payment, State::Begun));
        self.payments.len() as u64 - 1
    }

    /// It was acknowledged.
    pub(super) fn end(&mut self, place: u64) {
        self.payments[place as usize].1 = State::Durable;
    }

    fn add(&mut self, payment: &Payment, delta: i64) {
        for (table, number) in payment.rows() {
            self.of[table as usize][number as usize] += delta;
        }
    }

    /// Whether this is the balance of a row that nobody else changes.
    ///
    /// # Errors
    /// `Corrupt` where it is not.
    pub(super) fn check(&self, table: Table, number: u64, found: i64) -> Result<()> {
        match self.of[table as usize].get(number as usize) {
            Some(is) if *is == found => Ok(()),
            is => Err(wrong(table, number, format_args!("found {found} instead of {is:?}"))),
        }
    }

    /// Whether this is the payment at a place in the history.
    ///
    /// # Errors
    /// `Corrupt` where it is not, or was found to be lost before.
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

    /// Nobody runs, and these are the places of the history that have a payment, in ascending order. What was acknowledged is among them;
    /// of what was not, the rest is lost.
    ///
    /// # Errors
    /// `Corrupt` where one that was acknowledged is not there.
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
