//! Transactions of four row updates on a volume, and on plain files with DELETE and WAL, all with
//! `synchronous=FULL`, in turns; the ratios between them.
//!
//! `scripts/bench sqlite/transactions [-- FOLDER]`, by default in the build's
//! folder; rounds and transactions of one by `SQLITE_ROUNDS` (7) and `SQLITE_TRANSACTIONS` (2000).
#[path = "../../../demo/src/compare.rs"]
mod compare;

use compare::{CompareOptions, Load};
use rusqlite::Connection;
use std::path::PathBuf;
use tantalum_base::Rng;

const ROWS: u64 = 5000;

fn main() -> anyhow::Result<()> {
    // `cargo test` builds benches too and runs them with `--test` at most: nothing to do then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let number = |name: &str, default: i64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let options = CompareOptions {
        rounds: number("SQLITE_ROUNDS", 7) as usize,
        transactions: number("SQLITE_TRANSACTIONS", 2000),
        capacity: "64MiB",
    };
    // Not in memory, as the folder for temporary files may be.
    let parent = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let parent = PathBuf::from(parent.as_deref().unwrap_or(env!("CARGO_TARGET_TMPDIR")));
    let folder = tempfile::tempdir_in(parent)?;
    let load = Load { create: &create, run: &run };
    let rows = compare::compare(folder.path(), &load, options, |_, _| ())?;
    println!(
        "four row updates a transaction, synchronous=FULL, median of {} rounds",
        options.rounds
    );
    for row in &rows {
        println!(
            "{:16} {:7.0} transactions/s ({:.2} of Tantalum's), {:7.0} bytes ({:.2}) and {:.2} \
             syncs ({:.2}) per transaction",
            row.system,
            row.transactions_per_second,
            row.ratios[0],
            row.bytes_per_transaction,
            row.ratios[1],
            row.syncs_per_transaction,
            row.ratios[2]
        );
    }
    for row in &rows[1..] {
        println!("Tantalum: {:.2}x the transactions/s of {}", 1.0 / row.ratios[0], row.system);
    }
    Ok(())
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
         INSERT INTO t SELECT value, value, hex(zeroblob(50)) FROM (WITH RECURSIVE n(value) AS
         (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {ROWS}) SELECT value FROM n)"
    ))
}

fn run(connection: &Connection, number: i64) -> rusqlite::Result<bool> {
    let mut rng = Rng::new(number as u64);
    connection.prepare_cached("BEGIN")?.execute([])?;
    let mut update = connection.prepare_cached("UPDATE t SET a = a + 1 WHERE id = ?")?;
    for _ in 0..4 {
        update.execute([1 + rng.below(ROWS) as i64])?;
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(true)
}
