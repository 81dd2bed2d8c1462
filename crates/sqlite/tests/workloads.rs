//! Random SQL on a volume, compared with the same on a plain file; crashes, device errors, locks, page sizes, WAL.
mod common;
use common::disk::Disk;
use common::{MODES, Stage, check, dump, one};
use rusqlite::{Connection, ErrorCode};
use std::time::Duration;
use tantalum_base::Rng;

/// Pages of a transaction in memory, and pages of the cache. In the first case most of a transaction is staged and some of
/// that is read back from the volume; in the second it is staged and all of it is in the cache; in the third nothing is
/// staged.
const MEMORIES: [(usize, u32); 3] = [(2, 8), (2, 4096), (1024, 4096)];

const SCHEMA: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
     CREATE INDEX by_a ON t(a); CREATE TABLE log(n INT, what TEXT);";

/// Statements of one transaction, with savepoints, that may end in a rollback.
fn transaction(rng: &mut Rng, number: u64) -> (Vec<String>, bool) {
    let mut sql = Vec::new();
    for _ in 0..1 + rng.below(6) {
        let (id, value) = (rng.below(400), rng.next_u64());
        sql.push(match rng.below(9) {
            0..3 => format!(
                "INSERT OR REPLACE INTO t VALUES ({id}, {}, '{}')",
                value % 1000,
                format!("{value:016x}").repeat(1 + (value % 60) as usize)
            ),
            3..5 => format!("UPDATE t SET a = a + 1, b = 'u{value}' WHERE id % 13 = {}", id % 13),
            5 => format!("DELETE FROM t WHERE id BETWEEN {id} AND {}", id + 20),
            6 => format!("SAVEPOINT s; DELETE FROM t WHERE a > {}; ROLLBACK TO s; RELEASE s", id),
            7 => "SAVEPOINT s; UPDATE t SET b = b || 'x' WHERE id % 3 = 0; RELEASE s".into(),
            _ => format!("INSERT INTO log VALUES ({number}, hex(zeroblob({})))", value % 3000),
        });
    }
    (sql, rng.chance(0.75))
}

fn run(connection: &Connection, (sql, commit): &(Vec<String>, bool)) -> rusqlite::Result<()> {
    let end = if *commit { "COMMIT" } else { "ROLLBACK" };
    connection.execute_batch(&format!("BEGIN; {}; {end}", sql.join("; ")))
}

#[test]
fn random_transactions_equal_a_plain_file_and_survive_crashes_whole() {
    for seed in 0..12 {
        for batch in MODES {
            let mut rng = Rng::split(seed, "workload");
            let (memory, kept) = MEMORIES[seed as usize % 3];
            let mut stage = Stage::with_sizes(batch, memory, kept);
            let plain = Connection::open_in_memory().unwrap();
            let mut connection = stage.open();
            let page = [512, 1024, 4096, 65536][seed as usize / 2 % 4];
            let cache = [5, 2000, 10, 5][seed as usize / 3];
            let settings = format!(
                "PRAGMA page_size={page}; PRAGMA cache_size={cache};
                 PRAGMA auto_vacuum={};",
                seed % 3
            );
            for connection in [&connection, &plain] {
                connection.execute_batch(&settings).unwrap();
                connection.execute_batch(SCHEMA).unwrap();
            }
            for number in 0..120 {
                let case = format!("seed {seed}, batch {batch}, transaction {number}");
                let statements = transaction(&mut rng, number);
                run(&plain, &statements).expect(&case);
                run(&connection, &statements).expect(&case);
                match rng.below(20) {
                    0 => connection.execute_batch("VACUUM").expect(&case),
                    1 => {
                        // In the middle of a transaction that spills; the old connection is leaked with everything that it
                        // holds.
                        connection.execute_batch("BEGIN; UPDATE t SET b = b || b").unwrap();
                        let crashed = stage.after_crash(batch);
                        let reopened = crashed.open();
                        check(&reopened);
                        assert_eq!(dump(&reopened), dump(&plain), "{case}");
                        std::mem::forget(std::mem::replace(&mut connection, reopened));
                        stage = crashed;
                        let cache = format!("PRAGMA cache_size={cache}");
                        connection.execute_batch(&cache).unwrap();
                    }
                    2 => {
                        drop(connection);
                        connection = stage.open();
                    }
                    _ => {}
                }
            }
            check(&connection);
            assert_eq!(dump(&connection), dump(&plain), "seed {seed}, batch {batch}");
        }
    }
}

#[test]
fn a_device_error_at_any_call_leaves_nothing_half_done() {
    for batch in MODES {
        for cache in [5, 2000] {
            for journal in ["DELETE", "MEMORY", "OFF"] {
                for (page, locking) in [(4096, "NORMAL"), (1024, "NORMAL"), (1024, "EXCLUSIVE")] {
                    let settings = format!(
                        "PRAGMA journal_mode={journal}; PRAGMA locking_mode={locking};
                         PRAGMA cache_size={cache}"
                    );
                    let work = "UPDATE t SET a = a + 1, b = b || 'y'; INSERT INTO log VALUES \
                                (-1, hex(zeroblob(20000)))";
                    for memory in MEMORIES {
                        fail_each_call(batch, memory, page, &settings, work);
                    }
                }
            }
        }
    }
}

/// Writing a page smaller than a volume page reads its surroundings. If that fails in a batch, SQLite retries with a
/// journal, and pages that spilled before are still needed.
#[test]
fn a_batch_that_fails_keeps_what_spilled_before_it() {
    for locking in ["NORMAL", "EXCLUSIVE"] {
        let settings = format!(
            "PRAGMA journal_mode=MEMORY; PRAGMA locking_mode={locking}; PRAGMA cache_size=10"
        );
        let work = "UPDATE t SET b = 'short'; DELETE FROM log WHERE rowid % 2 = 0;
                    INSERT INTO log SELECT id, hex(zeroblob(500)) FROM t;
                    UPDATE t SET a = 7 WHERE id % 40 = 0";
        for memory in MEMORIES {
            fail_each_call(true, memory, 512, &settings, work);
        }
    }
}

fn fail_each_call(batch: bool, memory: (usize, u32), page: u32, settings: &str, work: &str) {
    for k in 0.. {
        let stage = Stage::with_sizes(batch, memory.0, memory.1);
        let connection = stage.open();
        connection.execute_batch(&format!("PRAGMA page_size={page}; {SCHEMA}")).unwrap();
        let mut rng = Rng::split(7, "faults");
        for number in 0..20 {
            run(&connection, &transaction(&mut rng, number)).unwrap();
        }
        connection.execute_batch(settings).unwrap();
        let before = dump(&connection);
        stage.disk.state().fail_in = Some(k);
        let done = connection.execute_batch(&format!("BEGIN; {work}; COMMIT"));
        let case = format!(
            "batch {batch}, memory {memory:?}, page {page}, {settings}, call {k}: {done:?}"
        );
        if done.is_err() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        stage.disk.state().fail_in = None;
        let failed = stage.disk.state().failed;
        let after = dump(&connection);
        assert_eq!(after != before, done.is_ok(), "{case}");
        let crashed = stage.after_crash(batch).open();
        check(&crashed);
        assert_eq!(dump(&crashed), after, "{case}");
        connection.execute_batch("UPDATE t SET a = 3").expect(&case);
        check(&connection);
        assert_eq!(dump(&stage.after_crash(batch).open()), dump(&connection), "{case}");
        if !failed {
            assert!(k > 0);
            break;
        }
    }
}

#[test]
fn connections_lock_each_other_out_and_see_whole_transactions() {
    for batch in MODES {
        let stage = Stage::new(batch);
        let (one_, other) = (stage.open(), stage.open());
        for connection in [&one_, &other] {
            connection.busy_timeout(Duration::ZERO).unwrap();
        }
        one_.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
        assert_eq!(one::<i64>(&other, "SELECT sum(x) FROM t"), 1);
        one_.execute_batch("BEGIN IMMEDIATE; UPDATE t SET x = 2").unwrap();
        let busy = other.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        other.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        assert_eq!(one::<i64>(&other, "SELECT sum(x) FROM t"), 1, "not committed yet");
        let busy = one_.execute_batch("COMMIT").unwrap_err();
        assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "a reader is there");
        let third = stage.open();
        third.busy_timeout(Duration::ZERO).unwrap();
        let busy = third.execute_batch("SELECT * FROM t").unwrap_err();
        assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "a writer waits");
        other.execute_batch("COMMIT").unwrap();
        one_.execute_batch("COMMIT").unwrap();
        assert_eq!(one::<i64>(&other, "SELECT sum(x) FROM t"), 2);
        one_.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let busy = other.execute_batch("SELECT * FROM t").unwrap_err();
        assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        one_.execute_batch("ROLLBACK").unwrap();
        assert_eq!(one::<i64>(&other, "SELECT sum(x) FROM t"), 2);
    }
}

#[test]
fn page_sizes_are_kept_and_changed_by_vacuum() {
    for batch in MODES {
        for size in [512, 1024, 2048, 4096, 8192, 65536] {
            let stage = Stage::new(batch);
            let connection = stage.open();
            connection.execute_batch(&format!("PRAGMA page_size={size}; {SCHEMA}")).unwrap();
            let fill = "INSERT INTO t SELECT NULL, value, hex(randomblob(700)) FROM
                (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n
                 WHERE value < 300) SELECT value FROM n)";
            connection.execute(fill, []).unwrap();
            connection.execute_batch("DELETE FROM t WHERE id % 7 = 0").unwrap();
            let expected = dump(&connection);
            let crashed = stage.after_crash(batch).open();
            assert_eq!(one::<i64>(&crashed, "PRAGMA page_size"), size);
            assert_eq!(dump(&crashed), expected);
            check(&crashed);
            let other = if size == 4096 { 1024 } else { 4096 };
            connection.execute_batch(&format!("PRAGMA page_size={other}; VACUUM")).unwrap();
            let crashed = stage.after_crash(batch).open();
            assert_eq!(one::<i64>(&crashed, "PRAGMA page_size"), other);
            assert_eq!(dump(&crashed), expected);
            check(&crashed);
        }
    }
}

#[test]
fn wal_is_refused_and_a_copy_of_a_wal_database_works() {
    let folder = tempfile::tempdir().unwrap();
    for batch in MODES {
        for locking in ["NORMAL", "EXCLUSIVE"] {
            let stage = Stage::new(batch);
            let connection = stage.open();
            connection.execute_batch(&format!("PRAGMA locking_mode={locking}; {SCHEMA}")).unwrap();
            connection.execute_batch("PRAGMA journal_mode=TRUNCATE").unwrap();
            assert_eq!(one::<String>(&connection, "PRAGMA journal_mode=WAL"), "truncate");
            assert!(one::<String>(&connection, "PRAGMA tantalum_error").contains("no WAL"));
            connection.execute_batch("INSERT INTO log VALUES (1, 'x')").unwrap();
            assert_eq!(one::<String>(&connection, "PRAGMA journal_mode"), "truncate");
        }
        journal_mode_answers_what_is_in_force(batch);
        an_attached_volume_stays_usable(batch);
        let source = Connection::open(folder.path().join(format!("wal{batch}.db"))).unwrap();
        assert_eq!(one::<String>(&source, "PRAGMA journal_mode=WAL"), "wal");
        source.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (5)").unwrap();
        let stage = Stage::new(batch);
        let mut connection = stage.open();
        let backup = rusqlite::backup::Backup::new(&source, &mut connection).unwrap();
        backup.run_to_completion(100, Duration::ZERO, None).unwrap();
        drop(backup);
        assert_eq!(one::<i64>(&connection, "SELECT x FROM t"), 5);
        connection.execute_batch("INSERT INTO t VALUES (6)").unwrap();
        check(&stage.after_crash(batch).open());
    }
}

fn journal_mode_answers_what_is_in_force(batch: bool) {
    for locking in ["NORMAL", "EXCLUSIVE"] {
        let stage = Stage::new(batch);
        let connection = stage.open();
        let settings =
            format!("PRAGMA locking_mode={locking}; CREATE TABLE t(x); PRAGMA journal_mode=MEMORY");
        connection.execute_batch(&settings).unwrap();
        // In the middle of a transaction SQLite does not change the mode.
        connection
            .execute_batch("BEGIN; INSERT INTO t VALUES (1); PRAGMA journal_mode=OFF")
            .unwrap();
        assert_eq!(one::<String>(&connection, "PRAGMA journal_mode=WAL"), "memory", "{locking}");
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(one::<String>(&connection, "PRAGMA journal_mode"), "memory", "{locking}");
        assert_eq!(one::<String>(&connection, "PRAGMA main.journal_mode = WAL"), "memory");
        assert_eq!(one::<String>(&connection, "PRAGMA journal_mode=OFF"), "off", "{locking}");
        assert_eq!(one::<String>(&connection, "PRAGMA journal_mode=wal"), "off", "{locking}");
    }
}

/// SQLite queries only the first database to decide whether WAL is possible for all.
fn an_attached_volume_stays_usable(batch: bool) {
    let stage = Stage::new(batch);
    stage.open().execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    let connection = Connection::open_in_memory().unwrap();
    let attach = format!(
        "PRAGMA locking_mode=EXCLUSIVE; ATTACH 'file:/volume.toml?vfs={}' AS \"a \"\"volume\"",
        stage.vfs
    );
    connection.execute_batch(&attach).unwrap();
    connection.execute_batch("PRAGMA journal_mode=WAL").unwrap();
    assert_eq!(one::<String>(&connection, "PRAGMA \"a \"\"volume\".journal_mode"), "delete");
    assert_eq!(one::<i64>(&connection, "SELECT x FROM t"), 1);
    connection.execute_batch("BEGIN; INSERT INTO t VALUES (2); ROLLBACK").unwrap();
    connection.execute_batch("INSERT INTO t VALUES (3)").unwrap();
    assert_eq!(one::<i64>(&connection, "SELECT sum(x) FROM t"), 4);
    let memory = "PRAGMA \"a \"\"volume\".journal_mode=MEMORY";
    assert_eq!(one::<String>(&connection, memory), "memory");
    assert_eq!(one::<String>(&connection, "PRAGMA \"a \"\"volume\".journal_mode"), "memory");
    let crashed = stage.after_crash(batch).open();
    assert_eq!(one::<i64>(&crashed, "SELECT sum(x) FROM t"), 4);
    check(&crashed);
}

#[test]
fn other_files_go_to_the_default_vfs_and_multi_file_commits_reach_both() {
    let folder = tempfile::tempdir().unwrap();
    for batch in MODES {
        let file = folder.path().join(format!("plain{batch}.db"));
        let stage = Stage::new(batch);
        let connection = stage.open();
        connection.execute_batch(SCHEMA).unwrap();
        connection.execute("ATTACH ? AS plain", [file.to_str().unwrap()]).unwrap();
        let both = "CREATE TABLE plain.p(x); BEGIN; INSERT INTO p VALUES (1);
                    INSERT INTO log VALUES (1, 'both'); COMMIT";
        connection.execute_batch(both).unwrap();
        let rollback =
            "BEGIN; INSERT INTO p VALUES (2); INSERT INTO log VALUES (2, 'none'); ROLLBACK";
        connection.execute_batch(rollback).unwrap();
        let crashed = stage.after_crash(batch).open();
        assert_eq!(one::<i64>(&crashed, "SELECT count(*) FROM log"), 1);
        assert_eq!(one::<i64>(&Connection::open(&file).unwrap(), "SELECT count(*) FROM p"), 1);
        connection
            .execute_batch("BEGIN; INSERT INTO p VALUES (3); INSERT INTO log VALUES (3, 'none')")
            .unwrap();
        stage.disk.state().fail_in = Some(0);
        connection.execute_batch("COMMIT").unwrap_err();
        assert_eq!(one::<i64>(&connection, "SELECT count(*) FROM p"), 1, "a failure is told");
        assert_eq!(one::<i64>(&connection, "SELECT count(*) FROM log"), 1);
        let copy = folder.path().join(format!("copy{batch}.db"));
        connection.execute("VACUUM INTO ?", [copy.to_str().unwrap()]).unwrap();
        let copy = Connection::open(&copy).unwrap();
        check(&copy);
        assert_eq!(one::<i64>(&copy, "SELECT count(*) FROM log"), 1);
    }
}

#[test]
fn something_else_on_the_volume_is_refused() {
    let disk = Disk::new(100, 100);
    let page = tantalum_base::PageBuf::copy_from(&[7; 4096]);
    disk.state().pages.insert(0, page);
    let stage = Stage::on(disk, true);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let error = Connection::open_with_flags_and_vfs("/v.toml", flags, stage.vfs.as_str());
    assert_eq!(error.unwrap_err().sqlite_error_code(), Some(ErrorCode::CannotOpen));
}
