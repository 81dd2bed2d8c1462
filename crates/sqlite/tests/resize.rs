//! A full database continues after its volume has grown.
mod common;

use common::new_volume_of;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use tantalum_volume::{VolumeConfig, resize_volume};

#[test]
fn a_full_database_grows_with_its_volume() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume_of(folder.path(), "4MiB", "");
    tantalum_sqlite::register(
        "grown",
        |path: &Path| tantalum::Volume::open(path),
        Default::default(),
    )
    .unwrap();
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        Connection::open_with_flags_and_vfs(&path, flags, "grown").unwrap()
    };
    let insert = |connection: &Connection| {
        connection.execute("INSERT INTO t(x) VALUES (randomblob(100000))", [])
    };
    let rows = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    };
    let connection = open();
    connection.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x BLOB)").unwrap();
    let full = std::iter::repeat_with(|| insert(&connection)).take(100).find_map(Result::err);
    assert_eq!(full.unwrap().sqlite_error_code(), Some(ErrorCode::DiskFull));
    let before = rows(&connection);
    assert!((30..50).contains(&before), "{before} rows");
    drop(connection);
    resize_volume(&VolumeConfig::read(&path).unwrap(), "16MiB").unwrap();
    let connection = open();
    assert_eq!(rows(&connection), before);
    for _ in 0..100 {
        insert(&connection).unwrap();
    }
    assert_eq!(rows(&connection), before + 100);
    let verdict: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}
