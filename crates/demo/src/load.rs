//! The load of the demo: small transactions on several indexed tables, some of them rolled back; and a model of the
//! tables' content after every committed prefix.
use anyhow::{Context, ensure};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use tantalum_base::Rng;

/// Accounts in the bank.
const ACCOUNTS: i64 = 20_000;
/// Accounts between which a transaction moves money.
const UPDATES: usize = 4;
/// Ledger rows to keep; older ones are deleted.
const LEDGER_KEPT: i64 = 2_000;

/// The content of transaction `number` of `seed`: a pure function of both.
pub struct Transaction {
    number: i64,
    /// (account, change of its balance); the changes add up to 0.
    moves: [(i64, i64); UPDATES],
    rolled_back: bool,
}

impl Transaction {
    /// Transaction `number`, counted from 1.
    pub fn new(seed: u64, number: i64) -> Self {
        let mut rng = Rng::new(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // As in real loads, four fifths of the moves go to a fifth of the accounts.
        let mut account = || {
            let hot = rng.chance(0.8);
            let bound = if hot { ACCOUNTS / 5 } else { ACCOUNTS };
            rng.below(bound as u64) as i64
        };
        let accounts: [i64; UPDATES] = std::array::from_fn(|_| account());
        let mut moves = accounts.map(|account| (account, 0));
        for pair in moves.chunks_exact_mut(2) {
            let amount = 1 + rng.below(100) as i64;
            pair[0].1 = -amount;
            pair[1].1 = amount;
        }
        Transaction { number, moves, rolled_back: rng.chance(0.1) }
    }

    /// Runs the transaction; `true` if it committed.
    pub fn run(&self, connection: &Connection) -> rusqlite::Result<bool> {
        connection.execute_batch("BEGIN")?;
        let mut update = connection.prepare_cached(
            "UPDATE account SET balance = balance + ?2, moved = ?3 WHERE id = ?1",
        )?;
        for (account, change) in self.moves {
            update.execute(params![account, change, self.number])?;
        }
        let mut insert = connection.prepare_cached(
            "INSERT INTO ledger(number, source, target, note) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let (source, target) = (self.moves[0].0, self.moves[1].0);
        insert.execute(params![self.number, source, target, note(self.number)])?;
        let mut delete = connection.prepare_cached("DELETE FROM ledger WHERE number <= ?1")?;
        delete.execute([self.number - LEDGER_KEPT])?;
        connection.execute_batch(if self.rolled_back { "ROLLBACK" } else { "COMMIT" })?;
        Ok(!self.rolled_back)
    }
}

fn note(number: i64) -> String {
    format!("transfer {number:08}, {:.<60}", number % 97)
}

/// Makes the tables.
pub fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN;
         CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT NOT NULL, moved INT NOT NULL, name TEXT);
         CREATE INDEX account_moved ON account(moved);
         CREATE TABLE ledger(number INTEGER PRIMARY KEY, source INT, target INT, note TEXT);
         CREATE INDEX ledger_source ON ledger(source);
         CREATE INDEX ledger_target ON ledger(target, number);
         WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id + 1 < {ACCOUNTS})
         INSERT INTO account SELECT id, 1000, 0, printf('account %06d', id) FROM n;
         COMMIT"
    ))
}

/// The content of the tables after a number of transactions.
pub struct Model {
    seed: u64,
    done: i64,
    // Balance and last transaction of the accounts that were changed so far.
    accounts: BTreeMap<i64, (i64, i64)>,
    ledger: BTreeMap<i64, (i64, i64)>,
}

impl Model {
    /// The tables as created.
    pub fn new(seed: u64) -> Self {
        Model { seed, done: 0, accounts: BTreeMap::new(), ledger: BTreeMap::new() }
    }

    /// Advances to the state after transaction `number`.
    pub fn advance(&mut self, number: i64) {
        while self.done < number {
            self.done += 1;
            let transaction = Transaction::new(self.seed, self.done);
            if transaction.rolled_back {
                continue;
            }
            for (account, change) in transaction.moves {
                let entry = self.accounts.entry(account).or_insert((1000, 0));
                *entry = (entry.0 + change, self.done);
            }
            let ends = (transaction.moves[0].0, transaction.moves[1].0);
            self.ledger.insert(self.done, ends);
            self.ledger.retain(|number, _| *number > self.done - LEDGER_KEPT);
        }
    }

    /// Compares every row with the model.
    pub fn compare(&self, connection: &Connection) -> anyhow::Result<()> {
        let mut rows = connection.prepare("SELECT id, balance, moved FROM account ORDER BY id")?;
        let mut rows = rows.query([])?;
        let mut id = 0;
        while let Some(row) = rows.next()? {
            let found: (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (balance, moved) = self.accounts.get(&id).copied().unwrap_or((1000, 0));
            ensure!(
                found == (id, balance, moved),
                "after {} transactions account {id} should be {:?} and is {found:?}",
                self.done,
                (id, balance, moved)
            );
            id += 1;
        }
        ensure!(id == ACCOUNTS, "{id} accounts instead of {ACCOUNTS}");
        let mut rows = connection
            .prepare("SELECT number, source, target, note FROM ledger ORDER BY number")?;
        let mut rows = rows.query([])?;
        let mut expected = self.ledger.iter();
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let found = (row.get(1)?, row.get(2)?);
            let wanted = expected.next();
            ensure!(
                wanted == Some((&number, &found)) && row.get::<_, String>(3)? == note(number),
                "ledger row {number} is {found:?}, expected {wanted:?}"
            );
        }
        ensure!(expected.next().is_none(), "ledger rows are missing");
        Ok(())
    }
}

/// Returns the last transaction that `connection` contains, which must lie between `acknowledged` and `issued`. Checks
/// that every row is as that transaction left it, and runs SQLite's own integrity check.
pub fn verify(
    connection: &Connection,
    model: &mut Model,
    acknowledged: i64,
    issued: i64,
) -> anyhow::Result<i64> {
    let integrity: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).context("checking")?;
    ensure!(integrity == "ok", "PRAGMA integrity_check says: {integrity}");
    let last: i64 =
        connection
            .query_row("SELECT coalesce(max(number), 0) FROM ledger", [], |row| row.get(0))?;
    // Rolled-back transactions leave no trace, so all of them up to the next committed one count as present.
    ensure!(
        last >= acknowledged,
        "transaction {acknowledged} was acknowledged, {last} is the last"
    );
    ensure!(last <= issued, "transaction {last} is there, {issued} was the last one issued");
    model.advance(last);
    model.compare(connection)?;
    Ok(last)
}
