//! Commits and rollbacks in both modes: the pages that reach the device, and the time at which they do.
mod common;
use common::disk::Disk;
use common::{MODES, Stage, check, dump, one};
use rusqlite::{Connection, ErrorCode};
use std::sync::{Arc, Mutex};
use tantalum_base::PageNo;
use tantalum_sqlite::TraceSink;

fn with_rows(stage: &Stage, rows: u32) -> Connection {
    let connection = stage.open();
    connection
        .execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT); CREATE INDEX i ON t(a);",
        )
        .unwrap();
    let fill = format!(
        "INSERT INTO t SELECT value, value * 7919 % 1000, hex(randomblob(50))
         FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n
               WHERE value < {rows}) SELECT value FROM n)"
    );
    connection.execute(&fill, []).unwrap();
    connection
}

#[test]
fn the_library_has_batch_atomic_writes() {
    let connection = Connection::open_in_memory().unwrap();
    let used: bool =
        one(&connection, "SELECT sqlite_compileoption_used('ENABLE_BATCH_ATOMIC_WRITE')");
    assert!(used, ".cargo/config.toml sets LIBSQLITE3_FLAGS");
}

#[test]
fn a_commit_is_one_transaction_and_no_other_round_trip() {
    for batch in MODES {
        let stage = Stage::new(batch);
        let connection = with_rows(&stage, 2000);
        let update = |round: i64| {
            connection.execute_batch("BEGIN").unwrap();
            for row in 0..4 {
                connection
                    .execute("UPDATE t SET a = a + 1 WHERE id = ?", [round * 100 + row * 17 + 1])
                    .unwrap();
            }
            connection.execute_batch("COMMIT").unwrap();
        };
        (0..10).for_each(update);
        let (reads, commits) = (stage.disk.reads(), stage.disk.commits());
        (0..10).for_each(update);
        assert_eq!(stage.disk.commits() - commits, 10, "batch {batch}");
        assert_eq!(stage.disk.reads() - reads, 0, "batch {batch}: all pages are in SQLite's cache");
    }
}

#[test]
fn journal_modes_and_synchronous_settings_all_commit_once() {
    for batch in MODES {
        for mode in ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"] {
            for synchronous in ["OFF", "NORMAL", "FULL", "EXTRA"] {
                for locking in ["NORMAL", "EXCLUSIVE"] {
                    let stage = Stage::new(batch);
                    let connection = with_rows(&stage, 300);
                    let settings = format!(
                        "PRAGMA journal_mode={mode}; PRAGMA synchronous={synchronous};
                         PRAGMA locking_mode={locking}; PRAGMA cache_size=5;"
                    );
                    connection.execute_batch(&settings).unwrap();
                    let commits = stage.disk.commits();
                    connection.execute_batch("UPDATE t SET a = 5").unwrap();
                    let case = format!("{batch} {mode} {synchronous} {locking}");
                    assert_eq!(stage.disk.commits() - commits, 1, "{case}");
                    let crashed = stage.after_crash(batch).open();
                    assert_eq!(one::<i64>(&crashed, "SELECT sum(a) FROM t"), 1500, "{case}");
                    check(&crashed);
                    connection
                        .execute_batch("BEGIN; UPDATE t SET a = 6, b = b || b; ROLLBACK")
                        .unwrap();
                    assert_eq!(stage.disk.commits() - commits, 1, "{case}");
                    assert_eq!(one::<i64>(&connection, "SELECT sum(a) FROM t"), 1500, "{case}");
                    connection.execute_batch("UPDATE t SET a = 7 WHERE id = 1").unwrap();
                    check(&connection);
                    let crashed = stage.after_crash(batch).open();
                    assert_eq!(dump(&crashed), dump(&connection), "{case}");
                }
            }
        }
    }
}

#[test]
fn spilled_pages_stay_in_memory_until_the_commit() {
    for batch in MODES {
        let stage = Stage::new(batch);
        let connection = with_rows(&stage, 3000);
        connection.execute_batch("PRAGMA cache_size=5; PRAGMA cache_spill=1").unwrap();
        let before = dump(&connection);
        let pages = stage.disk.state().pages.clone();
        connection
            .execute_batch("BEGIN; UPDATE t SET b = b || 'x'; DELETE FROM t WHERE id % 3 = 0")
            .unwrap();
        assert!(stage.disk.state().pages == pages, "nothing is on the device");
        let crashed = stage.after_crash(batch).open();
        assert_eq!(dump(&crashed), before);
        connection.execute_batch("SAVEPOINT s; UPDATE t SET a = 0; ROLLBACK TO s").unwrap();
        let during = dump(&connection);
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(dump(&connection), during);
        assert_eq!(dump(&stage.after_crash(batch).open()), during);
        connection.execute_batch("BEGIN; DELETE FROM t; ROLLBACK").unwrap();
        assert_eq!(dump(&connection), during);
        check(&connection);
    }
}

#[test]
fn vacuum_and_auto_vacuum_shrink_and_trim() {
    for batch in MODES {
        let stage = Stage::new(batch);
        let connection = stage.open();
        connection.execute_batch("PRAGMA auto_vacuum=FULL").unwrap();
        drop(connection);
        let connection = with_rows(&stage, 1);
        connection.execute_batch("PRAGMA auto_vacuum=FULL; VACUUM").unwrap();
        assert_eq!(one::<i64>(&connection, "PRAGMA auto_vacuum"), 1);
        connection
            .execute_batch("CREATE TABLE big(x); INSERT INTO big VALUES (randomblob(2000000))")
            .unwrap();
        let used = stage.disk.pages_used();
        assert!(used > 480);
        let commits = stage.disk.commits();
        connection.execute_batch("DELETE FROM big").unwrap();
        assert_eq!(stage.disk.commits() - commits, 1);
        assert!(stage.disk.pages_used() < 20, "given up: {}", stage.disk.pages_used());
        connection.execute_batch("PRAGMA auto_vacuum=NONE; VACUUM").unwrap();
        connection
            .execute_batch("INSERT INTO big VALUES (randomblob(1000000)); DELETE FROM big")
            .unwrap();
        assert!(stage.disk.pages_used() > 200);
        connection.execute_batch("VACUUM").unwrap();
        assert!(stage.disk.pages_used() < 20);
        check(&connection);
        let expected = dump(&connection);
        drop(connection);
        let connection = stage.open();
        assert_eq!(dump(&connection), expected);
        connection.execute_batch("INSERT INTO big VALUES (randomblob(300000))").unwrap();
        check(&connection);
    }
}

#[test]
fn a_full_volume_and_an_oversize_transaction_are_refused_whole() {
    for batch in MODES {
        for (disk, cause) in [(Disk::new(100, 4096), "full"), (Disk::new(1 << 16, 60), "more than")]
        {
            for cache in [5, 2000] {
                for journal in ["DELETE", "MEMORY", "OFF"] {
                    let disk = disk.clone();
                    disk.state().pages.clear();
                    let stage = Stage::on(disk, batch);
                    let connection = with_rows(&stage, 300);
                    connection
                        .execute_batch(&format!(
                            "PRAGMA cache_size={cache}; PRAGMA journal_mode={journal}"
                        ))
                        .unwrap();
                    let before = dump(&connection);
                    let error = connection
                        .execute_batch("BEGIN; UPDATE t SET a = 0; INSERT INTO t(b) VALUES (randomblob(500000)); COMMIT")
                        .unwrap_err();
                    let case = format!("batch {batch}, {cause}, cache {cache}, {journal}: {error}");
                    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull), "{case}");
                    let told: String = one(&connection, "PRAGMA tantalum_error");
                    assert!(told.contains(cause), "{told}");
                    let _ = connection.execute_batch("ROLLBACK");
                    assert_eq!(dump(&connection), before, "{case}");
                    assert_eq!(dump(&stage.after_crash(batch).open()), before, "{case}");
                    connection.execute_batch("UPDATE t SET a = 1 WHERE id < 5").unwrap();
                    check(&connection);
                }
            }
        }
    }
}

#[test]
fn pages_that_were_rolled_back_do_not_count() {
    for batch in MODES {
        for locking in ["NORMAL", "EXCLUSIVE"] {
            for journal in ["DELETE", "MEMORY", "OFF"] {
                for (undo, pages_max, memory) in [
                    ("ROLLBACK; BEGIN", 35, 1024),
                    ("ROLLBACK; BEGIN", 35, 8),
                    ("ROLLBACK; BEGIN", 100, 1024),
                    ("ROLLBACK TO s", 35, 1024),
                    ("ROLLBACK TO s", 35, 8),
                ] {
                    if journal == "OFF" && undo == "ROLLBACK TO s" {
                        continue;
                    }
                    let disk = Disk::new(1 << 16, pages_max);
                    let stage = Stage::with_memory_on(disk, batch, memory);
                    let connection = stage.open();
                    connection
                        .execute_batch(&format!(
                            "PRAGMA locking_mode={locking}; PRAGMA journal_mode={journal};
                             CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b)"
                        ))
                        .unwrap();
                    for first in [1, 251, 501, 751] {
                        let rows = format!(
                            "WITH RECURSIVE n(id) AS (SELECT {first} UNION ALL SELECT id + 1 FROM n
                             LIMIT 250) INSERT INTO t SELECT id, 0, hex(zeroblob(120)) FROM n"
                        );
                        connection.execute_batch(&rows).unwrap();
                    }
                    let case =
                        format!("batch {batch}, {locking}, {journal}, {undo}, memory {memory}");
                    connection.execute_batch("PRAGMA cache_size=5").unwrap();
                    // One update fits, but not together with the undone one.
                    let update = |from: u32| {
                        format!("UPDATE t SET a = a + 2 WHERE id BETWEEN {from} AND {}", from + 450)
                    };
                    let used = stage.disk.state().pages_committed;
                    connection.execute_batch(&update(500)).unwrap();
                    let used = stage.disk.state().pages_committed - used;
                    assert!((25..34).contains(&used), "{case}: {used}");
                    for round in 0..8 {
                        let work = format!(
                            "BEGIN; SAVEPOINT s; {}; {undo}; {}; COMMIT",
                            update(1),
                            update(500)
                        );
                        let before = stage.disk.state().pages_committed;
                        connection.execute_batch(&work).unwrap_or_else(|error| {
                            panic!("{case}, round {round}: {error}");
                        });
                        // After a full rollback the undone pages are not written either: the rollback drops them, unlike
                        // one to a savepoint.
                        let written = stage.disk.state().pages_committed - before;
                        let forgotten = undo == "ROLLBACK; BEGIN";
                        assert!(!forgotten || written <= used + 1, "{case}: {written} for {used}");
                    }
                    assert_eq!(one::<i64>(&connection, "SELECT max(a) FROM t WHERE id < 500"), 0);
                    let crashed = stage.after_crash(batch).open();
                    assert_eq!(dump(&crashed), dump(&connection), "{case}");
                    check(&crashed);
                }
            }
        }
    }
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<(char, u64, u64)>>>);

impl TraceSink for Record {
    fn read(&mut self, first: PageNo, pages: u64) {
        self.0.lock().unwrap().push(('R', first.0, pages));
    }
    fn write(&mut self, first: PageNo, pages: u64) {
        self.0.lock().unwrap().push(('W', first.0, pages));
    }
    fn commit(&mut self) {
        self.0.lock().unwrap().push(('C', 0, 0));
    }
}

#[test]
fn the_trace_tells_what_reached_the_device() {
    for (batch, memory) in MODES.into_iter().flat_map(|batch| [(batch, 2), (batch, 1024)]) {
        let record = Record::default();
        let stage = Stage::traced(batch, memory, record.clone());
        let connection = with_rows(&stage, 500);
        connection.execute_batch("PRAGMA cache_size=5; UPDATE t SET a = 2").unwrap();
        connection.execute_batch("BEGIN; UPDATE t SET a = 1; ROLLBACK").unwrap();
        drop(connection);
        let connection = stage.open();
        check(&connection);
        let events = record.0.lock().unwrap();
        let count = |op| events.iter().filter(|event| event.0 == op).count() as u64;
        let written: u64 = events.iter().filter(|event| event.0 == 'W').map(|event| event.2).sum();
        assert_eq!(count('C'), stage.disk.commits());
        assert_eq!(written, stage.disk.state().pages_committed);
        assert!(count('R') > 10);
    }
}

#[test]
fn a_blob_of_large_pages_is_read_in_one_call_a_page() {
    let stage = Stage::new(true);
    let connection = stage.open();
    connection.execute_batch("PRAGMA page_size=65536; CREATE TABLE t(x)").unwrap();
    connection.execute_batch("INSERT INTO t VALUES (randomblob(1000000))").unwrap();
    drop(connection);
    let connection = stage.open();
    let reads = stage.disk.reads();
    assert_eq!(one::<i64>(&connection, "SELECT length(hex(x)) FROM t"), 2_000_000);
    assert!(stage.disk.reads() - reads < 25);
}

#[test]
fn a_scan_takes_few_reads_and_the_next_one_none() {
    let stage = Stage::new(true);
    let connection = stage.open();
    let rows = "CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 8000)
                INSERT INTO t SELECT zeroblob(1000) FROM n";
    connection.execute_batch(rows).unwrap();
    drop(connection);
    let connection = stage.open();
    connection.execute_batch("PRAGMA cache_size=10").unwrap();
    let scan = || {
        let before = stage.disk.reads();
        assert_eq!(one::<i64>(&connection, "SELECT sum(length(x)) FROM t"), 8_000_000);
        stage.disk.reads() - before
    };
    // More than 2,000 pages.
    let first = scan();
    assert!((2..30).contains(&first), "{first}");
    assert_eq!(scan(), 0);
    // Another connection's commit is visible.
    stage.open().execute_batch("UPDATE t SET x = zeroblob(1001) WHERE rowid % 100 = 0").unwrap();
    assert_eq!(one::<i64>(&connection, "SELECT sum(length(x)) FROM t"), 8_000_080);
}

#[test]
fn a_transaction_reads_what_it_wrote_to_the_volume_from_memory() {
    for batch in MODES {
        let record = Record::default();
        let stage = Stage::traced(batch, 16, record.clone());
        let connection = with_rows(&stage, 5000);
        let pages = one::<i64>(&connection, "SELECT page_count FROM pragma_page_count") as u64;
        let rows = dump(&connection);
        record.0.lock().unwrap().clear();
        // Each statement writes all pages, most of them long before the next one reads them.
        let work = "PRAGMA cache_size=10; BEGIN; UPDATE t SET a = a + id % 7; UPDATE t SET a = a + id % 11";
        connection.execute_batch(work).unwrap();
        let read: u64 = record.0.lock().unwrap().iter().map(|(_, _, pages)| pages).sum();
        assert!(read <= pages, "{read} of {pages} pages, batch {batch}");
        connection.execute_batch("ROLLBACK").unwrap();
        assert_eq!(dump(&connection), rows, "nothing of it is kept, batch {batch}");
        check(&connection);
    }
}

#[test]
fn a_transaction_that_went_to_the_volume_scans_it_in_few_reads() {
    let stage = Stage::with_sizes(true, 16, 400);
    let connection = stage.open();
    let rows = "CREATE TABLE t(x); CREATE TABLE u(x);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 8000)
                INSERT INTO t SELECT zeroblob(1000) FROM n";
    connection.execute_batch(rows).unwrap();
    let write = "PRAGMA cache_size=10; BEGIN;
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 8000)
                 INSERT INTO u SELECT zeroblob(1000) FROM n";
    connection.execute_batch(write).unwrap();
    // More than 2,000 pages each, one committed and one not.
    for table in ["t", "u"] {
        let before = stage.disk.reads();
        let sum = format!("SELECT sum(length(x)) FROM {table}");
        assert_eq!(one::<i64>(&connection, &sum), 8_000_000);
        let reads = stage.disk.reads() - before;
        assert!((2..60).contains(&reads), "{reads} of {table}");
    }
}

/// The leaves of an index are scattered if its keys were inserted in random order. A scan finds the next ones in the page above
/// them, and reads them concurrently, in the order of their page numbers; also in a transaction that is partly on the volume.
#[test]
fn a_scan_of_an_index_in_random_order_reads_side_by_side() {
    let record = Record::default();
    let stage = Stage::traced(true, 16, record.clone());
    with_rows(&stage, 60_000);
    let connection = stage.open();
    connection.execute_batch("PRAGMA cache_size=10").unwrap();
    // Number of pages read, and how often the next page had a lower number than the one before.
    let read = |statement: &str, result: i64| {
        record.0.lock().unwrap().clear();
        assert_eq!(one::<i64>(&connection, statement), result, "{statement}");
        let read: Vec<u64> = record.0.lock().unwrap().iter().map(|(_, page, _)| *page).collect();
        (read.len(), read.windows(2).filter(|pair| pair[1] < pair[0]).count())
    };
    let (pages, back) = read("SELECT count(*) FROM t INDEXED BY i WHERE a >= 500", 30_000);
    assert!(pages > 60 && back * 6 < pages, "{back} of {pages} of the index");
    connection.execute_batch("BEGIN; UPDATE t SET b = 'x' WHERE id % 50 = 0").unwrap();
    let (pages, back) = read("SELECT count(*) FROM t INDEXED BY i WHERE a < 500", 30_000);
    assert!(pages > 40 && back * 6 < pages, "{back} of {pages} in a transaction");
    connection.execute_batch("ROLLBACK").unwrap();
    check(&connection);
}
