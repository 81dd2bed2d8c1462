//! A SQLite database on a tiered volume: its program is killed, its flash is lost, it is detached; then the home
//! contains the database, from the second page on.
mod support;

use rusqlite::{Connection, OpenFlags};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::good;
use support::nbd::PAGE_BYTES;
use support::tiered::TieredVolume;
use tantalum::Volume;
use tantalum_testing::installed;

/// Rows per transaction.
const ROWS: i64 = 3;

/// The extension is beside the test.
fn extension() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libtantalum_sqlite.so")
}

/// Lets the distribution's `sqlite3` commit one transaction after another, from `first` on, and kills it when
/// `acknowledged` commits are acknowledged. Returns the last one that was.
fn commit_until_killed(volume: &Path, first: i64, acknowledged: usize) -> i64 {
    let mut shell = Command::new("sqlite3")
        .args(["-batch", ":memory:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    let open = format!(
        ".bail on\n.load {}\n.open 'file:{}?vfs=tantalum'\nPRAGMA cache_size=50;
         CREATE TABLE IF NOT EXISTS t(n INTEGER, part INTEGER, body BLOB);\n",
        extension().display(),
        volume.display()
    );
    let feeder = std::thread::Builder::new().spawn(move || {
        input.write_all(open.as_bytes()).unwrap();
        // This ends when the shell is killed.
        for n in first.. {
            let row = |part: i64| format!("INSERT INTO t VALUES ({n}, {part}, randomblob(9000));");
            let rows: String = (0..ROWS).map(row).collect();
            // A transaction also changes older rows at arbitrary places.
            let older =
                format!("UPDATE t SET body = randomblob(9000) WHERE rowid = {n} * 7919 % {n};");
            let commit = format!("BEGIN; {rows} {older} COMMIT; SELECT {n};\n");
            if input.write_all(commit.as_bytes()).is_err() {
                return;
            }
        }
    });
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let last = lines.take(acknowledged).last().expect("it commits").unwrap();
    shell.kill().unwrap();
    shell.wait().unwrap();
    feeder.unwrap().join().unwrap();
    last.parse().unwrap()
}

/// The last transaction in a database, which must be sound, and contain all earlier ones completely.
fn last_of(connection: &Connection) -> i64 {
    let text =
        |question| connection.query_row(question, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |question| connection.query_row(question, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    let last = number("SELECT coalesce(max(n), 0) FROM t");
    assert_eq!(number("SELECT count(*) FROM t"), last * ROWS, "all rows to transaction {last}");
    assert_eq!(number("SELECT count(DISTINCT n * 10 + part) FROM t"), last * ROWS);
    last
}

fn on_volume(volume: &Path) -> Connection {
    Connection::open_with_flags_and_vfs(volume, OpenFlags::SQLITE_OPEN_READ_WRITE, "tiered")
        .unwrap()
}

/// The database in a home, as a separate file beside it.
fn at_home(home: &Path) -> Connection {
    let image = std::fs::read(home).unwrap();
    let database = &image[PAGE_BYTES..];
    assert_eq!(&database[..16], b"SQLite format 3\0");
    let page_bytes = u16::from_be_bytes([database[16], database[17]]);
    let pages = u32::from_be_bytes(database[28..32].try_into().unwrap());
    let file = home.with_extension("db");
    std::fs::write(&file, &database[..pages as usize * usize::from(page_bytes)]).unwrap();
    Connection::open(file).unwrap()
}

/// The complete content of the table.
fn rows(connection: &Connection) -> Vec<(i64, i64, Vec<u8>)> {
    let mut all = connection.prepare("SELECT n, part, body FROM t ORDER BY rowid").unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    all.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_database_survives_kills_and_the_loss_of_its_flash_and_is_at_home_when_detached() {
    if !installed(&["sqlite3"]) {
        return;
    }
    tantalum_sqlite::register("tiered", |path: &Path| Volume::open(path), Default::default())
        .unwrap();
    for destage in ["ordered", "dense"] {
        let volume = TieredVolume::new(destage);
        let (config, mut last, mut rescued) = (volume.config(), 0, Vec::new());
        for round in 0..4 {
            let acknowledged = commit_until_killed(&config, last + 1, 60 + 150 * round);
            if destage == "ordered" && round > 0 {
                let (copy, said) = volume.rescued_copy();
                println!("{}", said.trim());
                rescued.push(last_of(&at_home(&copy.path().join("home"))));
            }
            last = last_of(&on_volume(&config));
            assert!(last >= acknowledged, "{destage}: {last}, and {acknowledged} was acknowledged");
            assert!(rescued.iter().all(|before| *before <= last), "{rescued:?} of {last}");
        }
        println!("{destage}: {last} transactions, rescued at {rescued:?}");
        assert!(destage != "ordered" || (rescued.is_sorted() && rescued[2] > 0), "{rescued:?}");
        let there = rows(&on_volume(&config));
        assert_eq!(there.len() as i64, last * ROWS);
        good(&["detach", config.to_str().unwrap()]);
        let detached = at_home(&volume.at("home"));
        assert_eq!(last_of(&detached), last);
        assert!(rows(&detached) == there, "{destage}: the same rows at home");
    }
}
