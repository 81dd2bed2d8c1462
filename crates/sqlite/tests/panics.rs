//! Panics in the code that a program passed to the VFS, or from a bug, never unwind into SQLite,
//! which is C.
mod common;
use common::disk::Disk;
use common::{MODES, Stage, check, one};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tantalum::Volume;
use tantalum_base::{PageNo, Result};
use tantalum_sqlite::{TraceSink, VolumeOpener};

/// Panics after this many more calls.
#[derive(Clone)]
struct Panicking(Arc<AtomicI64>);

impl Panicking {
    fn count(&self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) != 0, "planted");
    }
}

impl TraceSink for Panicking {
    fn read(&mut self, _: PageNo, _: u64) {
        self.count();
    }
    fn write(&mut self, _: PageNo, _: u64) {
        self.count();
    }
    fn commit(&mut self) {
        self.count();
    }
}

#[test]
fn a_panic_is_an_io_error_to_all_connections_until_they_are_closed() {
    for batch in MODES {
        for after in 0..12 {
            let calls = Arc::new(AtomicI64::new(i64::MAX));
            let stage = Stage::traced(batch, 1024, Panicking(Arc::clone(&calls)));
            let (one_, other) = (stage.open(), stage.open());
            one_.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (randomblob(20000))")
                .unwrap();
            assert_eq!(one::<i64>(&other, "SELECT count(*) FROM t"), 1);
            calls.store(after, Ordering::Relaxed);
            let mut error = None;
            for _ in 0..20 {
                let work =
                    "UPDATE t SET x = randomblob(20000); PRAGMA cache_size=1; SELECT x FROM t";
                error = error.or(one_.execute_batch(work).err());
            }
            let case = format!("batch {batch}, after {after}");
            let error = error.expect(&case);
            assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure), "{case}");
            calls.store(i64::MAX, Ordering::Relaxed);
            for connection in [&one_, &other] {
                for work in ["SELECT * FROM t", "INSERT INTO t VALUES (1)"] {
                    let error = connection.execute_batch(work).expect_err(&case);
                    let code = error.sqlite_error_code();
                    assert_eq!(code, Some(ErrorCode::SystemIoFailure), "{case}: {work}");
                }
            }
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
            let third = Connection::open_with_flags_and_vfs("/volume.toml", flags, &*stage.vfs);
            assert!(third.is_err(), "{case}");
            drop((one_, other));
            let again = stage.open();
            check(&again);
            again.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        }
    }
}

/// Panics if the path requests it.
struct Opener(Disk);

impl VolumeOpener for Opener {
    fn open(&self, path: &Path) -> Result<Volume> {
        assert!(!path.ends_with("opening.toml"), "planted");
        Ok(self.0.client())
    }

    fn is_volume(&self, path: &Path) -> bool {
        assert!(!path.ends_with("looking.toml"), "planted");
        path.extension().is_some_and(|extension| extension == "toml")
    }
}

#[test]
fn a_panic_while_opening_is_an_error() {
    let disk = Disk::new(1 << 16, 4096);
    tantalum_sqlite::register("panicking", Opener(disk), Default::default()).unwrap();
    let open = |path: &str| {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        Connection::open_with_flags_and_vfs(path, flags, "panicking")
    };
    for path in ["/opening.toml", "/looking.toml"] {
        let code = open(path).unwrap_err().sqlite_error_code();
        assert_eq!(code, Some(ErrorCode::SystemIoFailure), "{path}");
    }
    open("/volume.toml").unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
}

#[test]
fn a_panic_of_the_volume_itself_is_an_io_error() {
    let stage = Stage::without_cache();
    let connection = stage.open();
    connection.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (randomblob(9000))").unwrap();
    let other = stage.open();
    stage.disk.state().panics = true;
    let code = other.execute_batch("SELECT * FROM t").unwrap_err().sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::SystemIoFailure));
    let code =
        connection.execute_batch("INSERT INTO t VALUES (1)").unwrap_err().sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::SystemIoFailure));
    stage.disk.state().panics = false;
    drop((connection, other));
    assert_eq!(one::<i64>(&stage.open(), "SELECT count(*) FROM t"), 1);
}
