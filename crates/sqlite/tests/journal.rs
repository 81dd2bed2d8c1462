//! SQLite's rollback journal borrows the pages that the volume has anyway. This is the only test in its process: it counts what the
//! process writes.
mod common;

use common::{MODES, Stage, check, dump, one};
use rusqlite::Connection;

/// Bytes that this process wrote to files.
fn written() -> u64 {
    let told = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("wchar:")).unwrap();
    line.trim().parse().unwrap()
}

fn filled(stage: &Stage, page: u32, settings: &str, rows: u32) -> Connection {
    let connection = stage.open();
    let fill = format!(
        "PRAGMA page_size={page}; {settings}; PRAGMA cache_size=10; CREATE TABLE t(id INTEGER PRIMARY KEY, x);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, hex(zeroblob(400)) || i FROM n"
    );
    connection.execute_batch(&fill).unwrap();
    connection
}

#[test]
fn old_pages_are_borrowed_and_come_back() {
    the_old_content_is_not_written_again();
    every_rollback_brings_back_what_was();
}

/// 8 MB of old content, twice what a journal keeps in memory.
fn the_old_content_is_not_written_again() {
    for batch in MODES {
        let stage = Stage::new(batch);
        let connection = filled(&stage, 4096, "PRAGMA journal_mode=DELETE", 9000);
        let before = dump(&connection);
        let bytes = written();
        connection.execute_batch("BEGIN; UPDATE t SET x = 'new' || x").unwrap();
        let bytes = written() - bytes;
        assert!(bytes < 1 << 20, "batch {batch}: {bytes}");
        connection.execute_batch("ROLLBACK").unwrap();
        assert!(dump(&connection) == before, "batch {batch}");
    }
}

/// With the changed pages in memory and on the volume, and with the old ones in the cache, in part, and not at all.
fn every_rollback_brings_back_what_was() {
    for batch in MODES {
        for (memory, cache) in [(2000, 4000), (20, 4000), (20, 60), (20, 0)] {
            for page in [512, 1024, 4096, 8192, 65536] {
                for settings in [
                    "PRAGMA journal_mode=DELETE",
                    "PRAGMA journal_mode=TRUNCATE",
                    "PRAGMA journal_mode=PERSIST",
                    "PRAGMA journal_mode=PERSIST; PRAGMA locking_mode=EXCLUSIVE",
                ] {
                    let case = format!("batch {batch}, {memory}, {cache}, {page}, {settings}");
                    let stage = Stage::with_sizes(batch, memory, cache);
                    rolls_back(&stage, &filled(&stage, page, settings, 500), batch, &case);
                }
            }
        }
    }
}

fn rolls_back(stage: &Stage, connection: &Connection, batch: bool, case: &str) {
    let run = |sql: &str| connection.execute_batch(sql).expect(case);
    let before = dump(connection);
    run("BEGIN; UPDATE t SET x = x || 'a'; DELETE FROM t WHERE id % 3 = 0");
    assert!(dump(&stage.after_crash(batch).open()) == before, "{case}: a crash");
    run("ROLLBACK");
    assert!(dump(connection) == before, "{case}: ROLLBACK");
    // A savepoint before the first change of most pages, and one after it.
    run("BEGIN; UPDATE t SET x = 'b' WHERE id < 50; SAVEPOINT s; UPDATE t SET x = x || 'c'");
    run("ROLLBACK TO s");
    assert_eq!(one::<i64>(connection, "SELECT count(*) FROM t WHERE x = 'b'"), 49, "{case}");
    assert_eq!(one::<i64>(connection, "SELECT count(*) FROM t WHERE x LIKE '%c'"), 0, "{case}");
    run("UPDATE t SET x = x || 'd'; SAVEPOINT s; DELETE FROM t WHERE id > 100; ROLLBACK TO s");
    assert_eq!(one::<i64>(connection, "SELECT count(*) FROM t WHERE x LIKE '%d'"), 500, "{case}");
    run("ROLLBACK");
    assert!(dump(connection) == before, "{case}: after savepoints");
    // The journal of the next transaction lies over that of the last one.
    run("UPDATE t SET x = x || 'e'; BEGIN; UPDATE t SET x = 'f' WHERE id > 300; ROLLBACK");
    assert_eq!(one::<i64>(connection, "SELECT count(*) FROM t WHERE x LIKE '%e'"), 500, "{case}");
    check(connection);
    assert!(dump(&stage.after_crash(batch).open()) == dump(connection), "{case}: the next crash");
}
