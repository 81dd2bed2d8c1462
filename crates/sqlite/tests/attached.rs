//! One COMMIT over several volumes: if one of them refuses it, none of them keeps it.
mod common;
use common::disk::Disk;
use common::{MODES, check, one};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tantalum_sqlite::Options;

/// Two volumes, "first.toml" and "second.toml", and a VFS over both.
struct Pair {
    first: Disk,
    second: Disk,
    vfs: String,
}

impl Pair {
    fn new(batch_atomic: bool) -> Pair {
        Pair::on(Disk::new(1 << 16, 4096), Disk::new(1 << 16, 40), batch_atomic)
    }

    fn on(first: Disk, second: Disk, batch_atomic: bool) -> Pair {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let vfs = format!("pair{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let disks = (first.clone(), second.clone());
        let opener = move |path: &Path| {
            Ok(if path.ends_with("first.toml") { disks.0.client() } else { disks.1.client() })
        };
        tantalum_sqlite::register(&vfs, opener, Options { batch_atomic, ..Options::default() })
            .unwrap();
        Pair { first, second, vfs }
    }

    fn open(&self) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI;
        let connection =
            Connection::open_with_flags_and_vfs("/first.toml", flags, self.vfs.as_str()).unwrap();
        let attach = format!("ATTACH 'file:/second.toml?vfs={}' AS second", self.vfs);
        connection.execute_batch(&attach).unwrap();
        connection
    }

    /// The content of the disks opened elsewhere, as after a crash.
    fn after_crash(&self, batch_atomic: bool) -> Pair {
        let copy = |disk: &Disk| {
            let copy = Disk::new(1 << 16, 4096);
            copy.state().pages = disk.state().pages.clone();
            copy
        };
        Pair::on(copy(&self.first), copy(&self.second), batch_atomic)
    }
}

fn values(connection: &Connection) -> (String, String) {
    (one(connection, "SELECT x FROM t"), one(connection, "SELECT x FROM second.u"))
}

#[test]
fn what_one_volume_refuses_none_keeps() {
    let big = "UPDATE u SET x = 'new'; INSERT INTO u VALUES (hex(zeroblob(150000)))";
    let small = "UPDATE u SET x = 'new'";
    for batch in MODES {
        for journals in
            ["DELETE MEMORY", "DELETE DELETE", "MEMORY MEMORY", "OFF OFF", "PERSIST OFF"]
        {
            for locking in ["NORMAL", "EXCLUSIVE"] {
                for (cache, synchronous) in [(5, "FULL"), (2000, "FULL"), (2000, "OFF")] {
                    let case = format!("{batch} {journals} {locking} {cache} {synchronous}");
                    let pair = Pair::new(batch);
                    let connection = pair.open();
                    let (first, second) = journals.split_once(' ').unwrap();
                    let settings = format!(
                        "PRAGMA main.journal_mode={first}; PRAGMA second.journal_mode={second};
                         PRAGMA locking_mode={locking}; PRAGMA cache_size={cache};
                         PRAGMA second.cache_size=2000; PRAGMA synchronous={synchronous};
                         CREATE TABLE t(x); CREATE TABLE second.u(x);
                         INSERT INTO t VALUES ('old'); INSERT INTO u VALUES ('old')"
                    );
                    connection.execute_batch(&settings).unwrap();
                    let old = ("old".to_owned(), "old".to_owned());
                    let both = |change: &str| {
                        connection
                            .execute_batch(&format!("BEGIN; UPDATE t SET x = 'new'; {change}"))
                    };
                    // More pages than the second volume commits at once.
                    both(big).expect(&case);
                    connection.execute_batch("COMMIT").expect_err(&case);
                    let _ = connection.execute_batch("ROLLBACK");
                    assert_eq!(values(&connection), old, "{case}");
                    assert_eq!(values(&pair.after_crash(batch).open()), old, "{case}");
                    both(small).expect(&case);
                    connection.execute_batch("COMMIT").expect(&case);
                    let new = ("new".to_owned(), "new".to_owned());
                    assert_eq!(values(&connection), new, "{case}");
                    let crashed = pair.after_crash(batch).open();
                    assert_eq!(values(&crashed), new, "{case}");
                    check(&crashed);
                }
            }
        }
    }
}

/// With a super-journal, the default, the second volume may fail as late as in its own commit.
#[test]
fn a_volume_that_fails_to_commit_takes_the_other_back() {
    for batch in MODES {
        for locking in ["NORMAL", "EXCLUSIVE"] {
            let pair = Pair::new(batch);
            let connection = pair.open();
            let settings = format!(
                "PRAGMA locking_mode={locking}; CREATE TABLE t(x); CREATE TABLE second.u(x);
                 INSERT INTO t VALUES ('old'); INSERT INTO u VALUES ('old');
                 BEGIN; UPDATE t SET x = 'new' || hex(zeroblob(50000)); UPDATE u SET x = 'new'"
            );
            connection.execute_batch(&settings).unwrap();
            pair.second.state().fail_in = Some(0);
            connection.execute_batch("COMMIT").unwrap_err();
            assert!(pair.second.state().failed);
            let _ = connection.execute_batch("ROLLBACK");
            let old = ("old".to_owned(), "old".to_owned());
            assert_eq!(values(&connection), old, "batch {batch}, {locking}");
            let crashed = pair.after_crash(batch).open();
            assert_eq!(values(&crashed), old, "batch {batch}, {locking}");
            check(&crashed);
        }
    }
}
