//! The counting VFS: its counts match the writes.
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use tantalum_sqlite::counting::{self, Counters, Counts};

fn open(path: &Path, vfs: &str, journal: &str) -> Connection {
    let connection = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA page_size=4096; PRAGMA journal_mode={journal}; PRAGMA synchronous=FULL;
             CREATE TABLE t(id INTEGER PRIMARY KEY, x INT); INSERT INTO t VALUES (1, 0)"
        ))
        .unwrap();
    connection
}

fn counted(counters: &Counters, act: impl FnOnce()) -> Counts {
    let before = counters.snapshot();
    act();
    counters.snapshot().since(&before)
}

// SQLite's file format, sections 3 and 4: a journal's header takes a sector, and is rewritten with
// the number of records; a record is a page with its number and checksum. A WAL's header has 32
// bytes, a frame's header 24.
const PAGE: u64 = 4096;
const WAL_HEADER: u64 = 32;
const WAL_FRAME: u64 = 24 + PAGE;

#[test]
fn a_transaction_with_a_wal_is_counted_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let counters = counting::register("counting-wal").unwrap();
    let connection = open(&folder.path().join("db"), "counting-wal", "wal");
    let checkpoint = || {
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    };
    checkpoint();
    let first = counted(&counters, || {
        connection.execute("UPDATE t SET x = x + 1", []).unwrap();
    });
    // The first commit begins the WAL with its header, synced on its own.
    assert_eq!(first.bytes_written, WAL_HEADER + WAL_FRAME);
    assert_eq!(first.syncs(), 2);
    let second = counted(&counters, || {
        connection.execute("UPDATE t SET x = x + 1", []).unwrap();
    });
    assert_eq!((second.bytes_written, second.file_syncs), (WAL_FRAME, 1));
    // Both changed the same page, which the checkpoint writes to the database once; then WAL,
    // database and log are synced.
    let home = counted(&counters, checkpoint);
    assert_eq!((home.bytes_written, home.writes), (PAGE, 1));
    let read = counted(&counters, || {
        connection.query_row("SELECT sum(x) FROM t", [], |_| Ok(())).unwrap();
    });
    assert_eq!(read, Counts::default());
}

#[test]
fn a_transaction_with_a_rollback_journal_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let counters = counting::register("counting-delete").unwrap();
    let path = folder.path().join("db");
    let connection = open(&path, "counting-delete", "delete");
    let update = counted(&counters, || {
        connection.execute("UPDATE t SET x = x + 1", []).unwrap();
    });
    // Two pages change: the row's and the one with the change counter. Both go to the journal
    // and to the database.
    assert!(update.bytes_written >= 4 * PAGE + 16, "{update:?}");
    assert!(update.bytes_written < 4 * PAGE + 16 + 2 * 4096, "{update:?}");
    // The journal twice (content, then the number of records), and the database; with EXTRA the
    // directory too.
    assert_eq!((update.file_syncs, update.directory_syncs), (3, 0));
    let extra = counted(&counters, || {
        connection.execute_batch("PRAGMA synchronous=EXTRA; UPDATE t SET x = x + 1").unwrap();
    });
    assert_eq!((extra.file_syncs, extra.directory_syncs), (3, 1));
    let rollback = counted(&counters, || {
        connection.execute_batch("BEGIN; UPDATE t SET x = 0; ROLLBACK").unwrap();
    });
    assert_eq!(rollback.file_syncs, 0);
    let sum: i64 = connection.query_row("SELECT sum(x) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(sum, 2);
    assert!(counting::register("counting-delete").is_err());
}
