//! A database on a real volume in a file: through the Rust API, and through the loadable
//! extension in the distribution's `sqlite3`.
mod common;
use common::new_volume;
use rusqlite::{Connection, OpenFlags};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_database_on_a_volume_in_a_file_comes_back_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    tantalum_sqlite::register(
        "real",
        |path: &Path| tantalum::Volume::open(path),
        Default::default(),
    )
    .unwrap();
    let open = || {
        Connection::open_with_flags_and_vfs(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, "real")
            .unwrap()
    };
    let connection = open();
    connection.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT)").unwrap();
    for id in 0..200 {
        let change = "INSERT INTO t VALUES (?, hex(randomblob(200)))";
        connection.execute(change, [id]).unwrap();
        connection.execute_batch("BEGIN; UPDATE t SET x = '' WHERE id % 3 = 0; ROLLBACK").unwrap();
    }
    let sum = |connection: &Connection| -> (i64, i64) {
        connection
            .query_row("SELECT count(*), sum(length(x)) FROM t", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap()
    };
    assert_eq!(sum(&connection), (200, 80_000));
    drop(connection);
    let connection = open();
    assert_eq!(sum(&connection), (200, 80_000));
    let verdict: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    assert_eq!(names(folder.path()), ["VOLUME.toml", "data.tantalum"]);
    drop(connection);
    the_stock_shell_reads_it(folder.path(), &path);
}

fn the_stock_shell_reads_it(folder: &Path, volume: &Path) {
    let shell = Command::new("sqlite3")
        .args(["-batch", ":memory:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut shell) = shell else {
        return tantalum_testing::skip("sqlite3");
    };
    let test = std::env::current_exe().unwrap();
    let extension = test.with_file_name("libtantalum_sqlite.so");
    let input = format!(
        ".load {}\n.open 'file:{}?vfs=tantalum'\nUPDATE t SET x = 'short' WHERE id < 10;
         SELECT count(*), sum(length(x)) FROM t; PRAGMA integrity_check;\n",
        extension.display(),
        volume.display()
    );
    shell.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = shell.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "200|76050\nok\n");
    assert_eq!(names(folder), ["VOLUME.toml", "data.tantalum"], "no journal, no WAL");
}
