//! The loadable extension in the distribution's own `sqlite3`, which is compiled without
//! batch-atomic writes. Skipped with a message if there is no such program.
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The target folder. Test binaries are in `deps`; the extensions are beside that folder and in
/// `examples`.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().to_path_buf()
}

fn shell(folder: &Path, input: &str) -> Output {
    let mut child = Command::new("sqlite3")
        .current_dir(folder)
        .args(["-batch", ":memory:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Commands that load the reference device and open a database on it.
fn opening(folder: &Path) -> String {
    let extension = target().join("examples/libfile_disk.so");
    let volume = folder.join("volume.toml");
    format!(
        ".bail on\n.load {} sqlite3_filedisk_init\n.open 'file:{}?vfs=filedisk'\n",
        extension.display(),
        volume.display()
    )
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_stock_shell_commits_and_rolls_back() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = opening(folder.path());
    let work = "PRAGMA cache_size=5; CREATE TABLE t(x, y); BEGIN;
        INSERT INTO t SELECT value, hex(randomblob(300)) FROM generate_series(1, 500); COMMIT;
        BEGIN; UPDATE t SET x = 0; DELETE FROM t WHERE rowid % 2; ROLLBACK;
        PRAGMA journal_mode=WAL; SELECT sum(x) FROM t; PRAGMA integrity_check;\n";
    let out = shell(folder.path(), &format!("{open}{work}"));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(text, "delete\n125250\nok\n", "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(names(folder.path()), ["volume.log"], "no journal, no WAL");
    let again = format!("{open}VACUUM; SELECT sum(x), count(*) FROM t; PRAGMA integrity_check;\n");
    let out = shell(folder.path(), &again);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "125250|500\nok\n");
}

#[test]
fn the_stock_shell_hands_on_what_the_name_asks_for() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = opening(folder.path());
    for (parameter, told) in [("", "1\n"), ("&psow=off", "0\n")] {
        let open = open.replace("vfs=filedisk", &format!("vfs=filedisk{parameter}"));
        let out = shell(folder.path(), &format!("{open}.filectrl psow\n"));
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(String::from_utf8_lossy(&out.stdout), told, "{parameter}: {error}");
    }
}

#[test]
fn a_killed_shell_leaves_whole_transactions() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = opening(folder.path());
    let made = shell(folder.path(), &format!("{open}CREATE TABLE t(n INT, part INT);\n"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for round in 0..4u64 {
        let mut child = Command::new("sqlite3")
            .current_dir(folder.path())
            .args(["-batch", ":memory:"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let opening = open.clone();
        let feeder = std::thread::Builder::new();
        let feeder = feeder.spawn(move || {
            let mut write = |line: &str| input.write_all(line.as_bytes());
            write(&opening).unwrap();
            // Ends when the child is killed.
            for n in 0.. {
                let n = round * 1_000_000 + n;
                let commit = format!(
                    "BEGIN; INSERT INTO t VALUES ({n}, 1); INSERT INTO t VALUES ({n}, 2);
                     INSERT INTO t VALUES ({n}, 3); COMMIT;\nSELECT {n};\n"
                );
                if write(&commit).is_err() {
                    break;
                }
            }
        });
        let mut acknowledged = None;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..20 + round * 37 {
            acknowledged = lines.next().map(|line| line.unwrap().parse::<u64>().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        feeder.unwrap().join().unwrap();
        let acknowledged = acknowledged.unwrap();
        let query = format!(
            "{open}PRAGMA integrity_check; SELECT count(*) FROM (SELECT n FROM t GROUP BY n
             HAVING count(*) <> 3); SELECT max(n) >= {acknowledged},
             count(DISTINCT n) > {} FROM t WHERE n >= {};\n",
            acknowledged - round * 1_000_000,
            round * 1_000_000
        );
        let out = shell(folder.path(), &query);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(text, "ok\n0\n1|1\n", "round {round}, acknowledged {acknowledged}");
        // Simulates a kill during the last commit, because real kills hardly ever hit it.
        let log = std::fs::File::options().append(true).open(folder.path().join("volume.log"));
        log.unwrap().write_all(&[1, 0, 0, 0, 0, 0, 0, 0, 9, 9]).unwrap();
    }
}

#[test]
fn the_extension_itself_loads_and_tells_what_is_missing() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let deps = target().join("deps/libtantalum_sqlite.so");
    let commands = format!(
        ".log stdout\n.load {}\n.open 'file:{}/none.toml?vfs=tantalum'\nSELECT 1;\n",
        deps.display(),
        folder.path().display()
    );
    let out = shell(folder.path(), &commands);
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("none.toml") && text.contains("tantalum: opening"), "{text}");
}

/// An opening that failed leaves no connection to ask for the reason: the one that loaded the extension tells it.
#[test]
fn the_connection_that_loaded_the_extension_tells_why_an_opening_failed() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let deps = target().join("deps/libtantalum_sqlite.so");
    let commands = format!(
        ".load {}\nSELECT 'before: ' || tantalum_error() || '.';\n\
         ATTACH 'file:{}/none.toml?vfs=tantalum' AS volume;\n\
         SELECT 'after: ' || tantalum_error();\n",
        deps.display(),
        folder.path().display()
    );
    let out = shell(folder.path(), &commands);
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(told.contains("before: .\nafter: tantalum: opening"), "{told}");
    assert!(told.contains("none.toml"), "{told}");
}

#[test]
fn a_name_that_asks_for_a_volume_and_is_none_is_no_plain_file_instead() {
    if !tantalum_testing::installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let extension = target().join("examples/libfile_disk.so");
    let commands = format!(
        ".log stdout\n.load {} sqlite3_filedisk_init\n.open 'file:app.db?vfs=filedisk'\n
         CREATE TABLE t(x);\n",
        extension.display()
    );
    let out = shell(folder.path(), &commands);
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(told.contains("app.db is not a volume"), "{told}");
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
    // Beside a volume, its name does not request the VFS, and it is a plain file.
    let commands = opening(folder.path())
        + "ATTACH 'file:app.db?psow=0' AS app; CREATE TABLE app.t(x); CREATE TABLE t(x);\n";
    let out = shell(folder.path(), &commands);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(names(folder.path()).contains(&"app.db".to_owned()));
}
