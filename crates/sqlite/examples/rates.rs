//! Transactions a second of four row updates: `rates DATABASE [JOURNAL_MODE]`. A database
//! that ends in `.toml` is a volume, made beforehand; others are plain files, by default in WAL.
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use tantalum_base::Rng;

const TRANSACTIONS: u32 = 4000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which database?")?;
    let journal = arguments.next().unwrap_or("WAL".into());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = if Path::new(&path).extension().is_some_and(|end| end == "toml") {
        tantalum_sqlite::register("tantalum", tantalum_volume::open_client, Default::default())?;
        Connection::open_with_flags_and_vfs(&path, flags, "tantalum")?
    } else {
        Connection::open_with_flags(&path, flags)?
    };
    connection.execute_batch(&format!(
        "PRAGMA journal_mode={journal}; PRAGMA synchronous=FULL;
         DROP TABLE IF EXISTS t; CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
         INSERT INTO t SELECT value, value, hex(zeroblob(50)) FROM (WITH RECURSIVE n(value) AS
         (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 5000) SELECT value FROM n)"
    ))?;
    let mut rng = Rng::new(1);
    #[expect(clippy::disallowed_methods, reason = "measures real time")]
    let start = std::time::Instant::now();
    for _ in 0..TRANSACTIONS {
        connection.execute_batch("BEGIN")?;
        for _ in 0..4 {
            let mut update = connection.prepare_cached("UPDATE t SET a = a + 1 WHERE id = ?")?;
            update.execute([rng.below(5000) as i64 + 1])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    let rate = f64::from(TRANSACTIONS) / start.elapsed().as_secs_f64();
    println!("{path} ({journal}): {rate:.0} transactions a second");
    Ok(())
}
