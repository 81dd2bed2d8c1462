//! What the stock shell does to a database of some size, in one transaction each: it restores it, vacuums it, drops and
//! deletes tables, and writes a large value. Skipped with a message where there is no such program.
mod common;

use common::new_volume_of;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `commands` on the database of `volume`; what the shell said, and said of errors.
fn shell(volume: &Path, commands: &str) -> (String, String) {
    shell_with(volume, commands, "64MiB")
}

/// The same with committed pages in so much memory.
fn shell_with(volume: &Path, commands: &str, cache: &str) -> (String, String) {
    let mut shell = Command::new("sqlite3")
        .args(["-batch", ":memory:"])
        .env("TANTALUM_SQLITE_CACHE", cache)
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

/// Rows of half a page, made by the shell itself.
fn rows(table: &str, count: u64) -> String {
    format!(
        "CREATE TABLE {table}(id INTEGER PRIMARY KEY, x BLOB);
         INSERT INTO {table} SELECT value, zeroblob(2000) FROM generate_series(1, {count});\n"
    )
}

#[test]
fn what_takes_much_in_one_transaction_goes_through() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume_of(folder.path(), "128MiB", "");
    // 44 MB in one transaction.
    let told = shell(&volume, &rows("t", 22_000));
    assert_eq!(told, (String::new(), String::new()));
    let copy = folder.path().join("copy.db");
    let steps = [
        (".backup 'COPY'", ""),
        ("UPDATE t SET x = randomblob(2000);", ""),
        ("SELECT count(*), sum(length(x)) FROM t;", "22000|44000000\n"),
        ("BEGIN; UPDATE t SET x = NULL; DELETE FROM t WHERE id % 2; ROLLBACK;", ""),
        ("DELETE FROM t WHERE id > 11000;", ""),
        ("VACUUM;", ""),
        ("SELECT count(*), sum(length(x)) FROM t; PRAGMA integrity_check;", "11000|22000000\nok\n"),
        (".restore 'COPY'", ""),
        ("SELECT count(*), sum(x = zeroblob(2000)) FROM t;", "22000|22000\n"),
        ("CREATE TABLE v(x); INSERT INTO v VALUES (randomblob(6291456));", ""),
        ("SELECT length(x) FROM v;", "6291456\n"),
        ("PRAGMA secure_delete=ON; DROP TABLE t;", "1\n"),
        ("PRAGMA integrity_check;", "ok\n"),
    ];
    for (commands, wanted) in steps {
        let commands = commands.replace("COPY", &copy.display().to_string());
        let (told, errors) = shell(&volume, &commands);
        assert_eq!((&told[..], &errors[..]), (wanted, ""), "{commands}");
    }
}

/// As much as there is room for, and no half of what is more.
#[test]
fn what_the_volume_has_no_room_for_is_refused_and_undone() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume_of(folder.path(), "64MiB", "");
    shell(&volume, &rows("t", 20_000));
    // All of it would have to be there twice. What is rolled back needs no room, and the connection goes on.
    // In little memory it meets that as it goes on, and otherwise when it commits.
    for (locking, cache, commit) in [
        ("NORMAL", "8MiB", ""),
        ("EXCLUSIVE", "8MiB", ""),
        ("NORMAL", "256MiB", "COMMIT;"),
        ("EXCLUSIVE", "256MiB", "COMMIT;"),
    ] {
        let refused = format!(
            "PRAGMA locking_mode={locking}; BEGIN; UPDATE t SET x = randomblob(2000); {commit}
             SELECT count(*) FROM t; UPDATE t SET id = -id WHERE id = 7; SELECT min(id) FROM t;
             UPDATE t SET id = -id WHERE id = -7; SELECT min(id) FROM t;"
        );
        let (told, errors) = shell_with(&volume, &refused, cache);
        assert!(errors.contains("full") && errors.lines().count() == 1, "{errors}");
        assert_eq!(told, format!("{}\n20000\n-7\n1\n", locking.to_lowercase()));
    }
    let (told, errors) =
        shell(&volume, "SELECT count(*), sum(x = zeroblob(2000)) FROM t; PRAGMA integrity_check;");
    assert_eq!((&told[..], &errors[..]), ("20000|20000\nok\n", ""));
    // What frees some is let through.
    let (told, errors) = shell(&volume, "DELETE FROM t WHERE id > 300; SELECT count(*) FROM t;");
    assert_eq!((&told[..], &errors[..]), ("300\n", ""));
}

#[test]
fn a_limit_that_is_set_is_the_one_in_force() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume_of(folder.path(), "64MiB", "transaction_max = \"8MiB\"");
    let (_, errors) = shell(&volume, &rows("t", 5000));
    assert!(errors.contains("full"), "{errors}");
    let (told, errors) =
        shell(&volume, &format!("DROP TABLE t;{} SELECT count(*) FROM u;", rows("u", 3000)));
    assert_eq!((&told[..], &errors[..]), ("3000\n", ""));
}

/// The most memory that the shell had for `commands`, in bytes.
fn peak_bytes(volume: &Path, commands: &str) -> u64 {
    let (told, errors) =
        shell_with(volume, &format!("{commands}\n.shell grep VmHWM /proc/$PPID/status"), "1MiB");
    assert_eq!(errors, "");
    let kib = told.split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// Neither what a transaction writes nor what it would need to be rolled back stays in memory.
#[test]
fn memory_does_not_grow_with_the_transaction() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume_of(folder.path(), "512MiB", "");
    let small = peak_bytes(&volume, &rows("s", 1000));
    let large = peak_bytes(&volume, &rows("t", 60_000));
    let rewritten = peak_bytes(&volume, "UPDATE t SET x = randomblob(2000);");
    let undone = peak_bytes(&volume, "BEGIN; UPDATE t SET x = randomblob(2000); ROLLBACK;");
    for peak in [large, rewritten, undone] {
        assert!(peak < small + (40 << 20), "{small}, {large}, {rewritten}, {undone}");
    }
}

#[test]
fn a_cache_of_no_size_is_refused() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = new_volume_of(folder.path(), "64MiB", "");
    let (_, errors) = shell_with(&volume, "SELECT 1;", "much");
    assert!(errors.contains("TANTALUM_SQLITE_CACHE") && errors.contains("much"), "{errors}");
}
