//! Large operations of the stock shell on a tiered volume, in one transaction each. Skipped with a message if there is no
//! such program.
mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_volume::config::{NewSettings, NewTiered, write_new_tiered};
use tantalum_volume::{VolumeConfig, create_volume};

/// Creates a volume in `folder` as `tantalum create` does, with one line of its VOLUME.toml replaced.
fn new_volume(folder: &Path, flash_size: &str, default: &str, said: &str) -> PathBuf {
    let path = folder.join("VOLUME.toml");
    let settings = NewSettings::default();
    let (capacity, journal) = ("256MiB", None);
    let new = NewTiered { capacity, flash: "flash", flash_size, home: "home", journal, settings };
    write_new_tiered(&path, new).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(default), "{default}");
    std::fs::write(&path, text.replace(default, said)).unwrap();
    let config = VolumeConfig::read(&path).unwrap();
    let thread = spawn_thread("create", LiveOptions::default(), move |live| async move {
        create_volume(&live, &config, false).await.unwrap();
    });
    thread.unwrap().join().unwrap();
    path
}

/// Runs `commands` on the database of `volume`; returns the shell's output and its errors.
fn shell(volume: &Path, commands: &str) -> (String, String) {
    let mut shell = Command::new("sqlite3")
        .args(["-batch", ":memory:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let extension = std::env::current_exe().unwrap().with_file_name("libtantalum_sqlite.so");
    let (extension, volume) = (extension.display(), volume.display());
    let input = format!(".load {extension}\n.open 'file:{volume}?vfs=tantalum'\n{commands}\n");
    shell.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = shell.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&out.stdout), text(&out.stderr))
}

/// Fills a new table in one transaction, with rows of half a page.
fn fill(table: &str, rows: u64) -> String {
    format!(
        "CREATE TABLE {table}(id INTEGER PRIMARY KEY, x BLOB);
         INSERT INTO {table} SELECT value, zeroblob(2000) FROM generate_series(1, {rows});"
    )
}

fn what_takes_much_goes_through(default: &str, said: &str) {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume(folder.path(), "128MiB", default, said);
    let copy = folder.path().join("copy.db");
    let steps = [
        // 44 MB.
        (&fill("t", 22_000)[..], ""),
        (".backup 'COPY'", ""),
        ("UPDATE t SET x = randomblob(2000);", ""),
        ("BEGIN; UPDATE t SET x = NULL; DELETE FROM t WHERE id % 2; ROLLBACK;", ""),
        ("SELECT count(*), sum(length(x)) FROM t;", "22000|44000000\n"),
        ("DELETE FROM t WHERE id > 11000;", ""),
        ("VACUUM; PRAGMA integrity_check;", "ok\n"),
        ("SELECT count(*), sum(length(x)) FROM t;", "11000|22000000\n"),
        ("DELETE FROM t;", ""),
        (".restore 'COPY'", ""),
        ("SELECT count(*), sum(x = zeroblob(2000)) FROM t;", "22000|22000\n"),
        ("PRAGMA secure_delete=ON; DROP TABLE t; VACUUM; PRAGMA integrity_check;", "1\nok\n"),
    ];
    for (commands, wanted) in steps {
        let commands = commands.replace("COPY", &copy.display().to_string());
        let (told, errors) = shell(&volume, &commands);
        assert_eq!((&told[..], &errors[..]), (wanted, ""), "{said}: {commands}");
    }
}

#[test]
fn what_takes_much_in_one_transaction_goes_through_in_epochs() {
    what_takes_much_goes_through("# destage = \"ordered\"", "destage = \"ordered\"");
}

#[test]
fn what_takes_much_in_one_transaction_goes_through_track_by_track() {
    what_takes_much_goes_through("# destage = \"ordered\"", "destage = \"dense\"");
}

#[test]
fn what_takes_much_in_one_transaction_goes_through_where_home_is_awaited() {
    what_takes_much_goes_through("# mode = \"write-back\"", "mode = \"write-through\"");
}

#[test]
fn what_the_flash_has_no_room_for_is_refused_and_undone() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume(folder.path(), "64MiB", "# mode", "# mode");
    let (_, errors) = shell(&volume, &fill("t", 6000));
    assert_eq!(errors, "");
    let (_, errors) = shell(
        &volume,
        "BEGIN; UPDATE t SET x = randomblob(2000); CREATE TABLE u AS SELECT * FROM t;
         CREATE TABLE v AS SELECT * FROM t; COMMIT;",
    );
    assert!(errors.contains("full"), "{errors}");
    let (told, errors) = shell(
        &volume,
        "SELECT count(*), sum(x = zeroblob(2000)) FROM t; PRAGMA integrity_check;
         SELECT count(*) FROM sqlite_schema;",
    );
    assert_eq!((&told[..], &errors[..]), ("6000|6000\nok\n1\n", ""));
    let (told, errors) = shell(&volume, "DELETE FROM t WHERE id > 300; SELECT count(*) FROM t;");
    assert_eq!((&told[..], &errors[..]), ("300\n", ""));
}

#[test]
fn a_limit_that_is_set_is_the_one_in_force() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (default, said) = ("# transaction_max = \"1GiB\"", "transaction_max = \"12MiB\"");
    let volume = new_volume(folder.path(), "128MiB", default, said);
    let (_, errors) = shell(&volume, &fill("t", 10_000));
    assert!(errors.contains("full"), "{errors}");
    let (told, errors) = shell(&volume, &format!("{} SELECT count(*) FROM u;", fill("u", 4000)));
    assert_eq!((&told[..], &errors[..]), ("4000\n", ""));
    let text = std::fs::read_to_string(&volume).unwrap();
    std::fs::write(&volume, text.replace("\"12MiB\"", "\"120MiB\"")).unwrap();
    let refused = VolumeConfig::read(&volume).unwrap_err().to_string();
    assert!(refused.contains("transaction_max") && refused.contains("home.dirty_max"), "{refused}");
}
