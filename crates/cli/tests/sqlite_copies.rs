//! `tantalum sqlite import` and `export` from the user's view.
mod support;

use rusqlite::Connection;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::server::Server;
use support::tiered::TieredVolume;
use support::volume::data_of;
use support::{good, refused, stat_row, text};
use tantalum_testing::built;

/// A database of `rows` rows of half a page.
fn make(path: &Path, settings: &str, rows: u32) {
    let database = Connection::open(path).unwrap();
    database.execute_batch(settings).unwrap();
    let fill = format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, x BLOB); CREATE INDEX by_x ON t(x);
         WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT {rows})
         INSERT INTO t SELECT id, randomblob(2000) FROM n"
    );
    database.execute_batch(&fill).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A summary of its content.
fn digest(path: &Path) -> (String, i64, Vec<Vec<u8>>) {
    let database = Connection::open(path).unwrap();
    let verdict = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    let page = database.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let mut rows = database.prepare("SELECT x FROM t ORDER BY id").unwrap();
    let rows = rows.query_map([], |row| row.get(0)).unwrap();
    (verdict, page, rows.map(Result::unwrap).collect())
}

#[test]
fn a_database_comes_back_as_it_went() {
    for (settings, rows) in
        [("", 4000), ("PRAGMA page_size=1024", 500), ("PRAGMA journal_mode=WAL", 500)]
    {
        let folder = tempfile::tempdir().unwrap();
        let [file, volume, back] =
            ["a.db", "a/VOLUME.toml", "b.db"].map(|name| folder.path().join(name));
        make(&file, settings, rows);
        let told = good(&["sqlite", "import", text(&file), text(&volume)]);
        assert!(told.contains("allocated") && told.contains("a.db"), "{told}");
        let data = data_of(&volume);
        assert_eq!(mode(&data), 0o600, "only the owner may read what a database holds");
        std::fs::set_permissions(&data, Permissions::from_mode(0o640)).unwrap();
        let told = good(&["sqlite", "export", text(&volume), text(&back)]);
        assert!(told.contains("b.db"), "{told}");
        assert_eq!(mode(&back), 0o640, "a copy has the permissions of the volume");
        let (there, here) = (digest(&back), digest(&file));
        assert_eq!((&there.0[..], there.1), ("ok", here.1), "{settings}");
        assert!(there.2 == here.2, "{settings}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
        good(&["check", text(&volume)]);
    }
}

/// The maximum memory of the program while it ran with these arguments.
fn peak_memory_bytes(arguments: &[&str]) -> u64 {
    let mut child =
        Command::new(built::tantalum()).args(arguments).stdout(Stdio::null()).spawn().unwrap();
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().strip_suffix(" kB"));
        // A process that has just ended reports none.
        peak_kib = peak.map_or(peak_kib, |number| number.parse().unwrap());
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success(), "{arguments:?}");
    peak_kib * 1024
}

#[test]
fn a_copy_keeps_no_more_in_memory_of_a_larger_database() {
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let peaks = ["small", "large"].map(|name| {
        let [file, volume, back] =
            [".db", "/VOLUME.toml", ".back"].map(|end| folder.path().join(format!("{name}{end}")));
        make(&file, "PRAGMA synchronous=OFF", if name == "small" { 8_000 } else { 32_000 });
        let import = peak_memory_bytes(&["sqlite", "import", text(&file), text(&volume)]);
        let export = peak_memory_bytes(&["sqlite", "export", text(&volume), text(&back)]);
        (import, export)
    });
    // The larger database has 154 MiB more. The tables of its volume are larger, too.
    let [small, large] = peaks;
    assert!(large.0 < small.0 + 40 * MIB, "import: {small:?}, {large:?}");
    assert!(large.1 < small.1 + 40 * MIB, "export: {small:?}, {large:?}");
}

#[test]
fn what_is_refused_leaves_all_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let [file, volume, other] =
        ["a.db", "a/VOLUME.toml", "other.db"].map(|name| folder.path().join(name));
    make(&file, "", 3000);
    make(&other, "", 10);
    let import = |file: &Path, options: &[&str]| {
        let arguments = [&["sqlite", "import", text(file), text(&volume)], options].concat();
        refused(&arguments)
    };
    std::fs::write(folder.path().join("no.db"), "no database at all, and long enough").unwrap();
    assert!(import(&folder.path().join("no.db"), &[]).contains("no.db is not a database"));
    assert!(import(&folder.path().join("none.db"), &[]).contains("none.db"));
    assert!(import(&file, &["--capacity", "4MiB"]).contains("full"));
    assert!(!volume.exists() && !volume.with_file_name("data.tantalum").exists());
    good(&["sqlite", "import", text(&other), text(&volume)]);
    assert!(import(&file, &[]).contains("holds a database already"));
    let other_capacity = import(&file, &["--capacity", "1GiB"]);
    assert!(other_capacity.contains("exists already") && other_capacity.contains("resize"));
    let server = Server::start(&volume);
    assert!(import(&file, &["--force"]).contains("pid"));
    assert!(refused(&["sqlite", "export", text(&volume), "/nowhere/x.db"]).contains("pid"));
    server.terminate();
    let export = ["sqlite", "export", text(&volume), text(&other)];
    assert!(refused(&export).contains("other.db exists already"));
    let nowhere = refused(&["sqlite", "export", text(&volume), "/nowhere/x.db"]);
    assert!(nowhere.contains("the folder /nowhere does not exist"), "{nowhere}");
    good(&["sqlite", "import", text(&file), text(&volume), "--force"]);
    let back = folder.path().join("back.db");
    good(&["sqlite", "export", text(&volume), text(&back)]);
    assert!(digest(&back) == digest(&file));
}

#[test]
fn a_volume_without_a_database_gives_none() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, file) = (folder.path().join("v.toml"), folder.path().join("v.db"));
    good(&["create", text(&volume), "--capacity", "8MiB"]);
    let export = ["sqlite", "export", text(&volume), text(&file)];
    assert!(refused(&export).contains("holds no database yet"));
    let server = Server::start(&volume);
    let mut client = support::nbd::Client::connect(&server.socket).unwrap();
    client.write(0, &[7; support::nbd::PAGE_BYTES]);
    server.terminate();
    assert!(refused(&export).contains("is not a database"));
    assert!(!file.exists());
    // An import does not guess that this content may go.
    make(&file, "", 10);
    let told = refused(&["sqlite", "import", text(&file), text(&volume), "--force"]);
    assert!(told.contains("is not a database") && told.contains("create"), "{told}");
}

/// An import that was killed when its volume was there already: the same command again, which may name the capacity.
#[test]
fn an_import_is_repeated_with_the_capacity_that_it_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [file, volume, back] =
        ["a.db", "a/VOLUME.toml", "b.db"].map(|name| folder.path().join(name));
    make(&file, "", 100);
    std::fs::create_dir(volume.parent().unwrap()).unwrap();
    good(&["create", text(&volume), "--capacity", "96MiB"]);
    let import = ["sqlite", "import", text(&file), text(&volume), "--capacity", "96MiB"];
    good(&import);
    assert!(refused(&import).contains("holds a database already"));
    good(&[&import[..], &["--force"]].concat());
    good(&["sqlite", "export", text(&volume), text(&back)]);
    assert!(digest(&back) == digest(&file));
}

/// The medium lost pages of a database: an export says so, and the way to put a good copy back is named and works.
#[test]
fn a_damaged_database_is_told_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [file, volume, back] =
        ["a.db", "a/VOLUME.toml", "b.db"].map(|name| folder.path().join(name));
    make(&file, "", 2000);
    good(&["sqlite", "import", text(&file), text(&volume)]);
    let data = data_of(&volume);
    let mut bytes = std::fs::read(&data).unwrap();
    let written = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    (1 << 20..written).step_by(300_000).for_each(|at| bytes[at] ^= 1);
    std::fs::write(&data, bytes).unwrap();
    let export = ["sqlite", "export", text(&volume), text(&back)];
    let told = refused(&export);
    assert!(told.contains("page") && told.contains("tantalum check"), "{told}");
    assert!(!back.exists());
    let checked = support::tantalum(&["check", text(&volume), "--accept-loss"]);
    assert!(checked.out.contains("could not be read"), "{}{}", checked.out, checked.err);
    let import = ["sqlite", "import", text(&file), text(&volume), "--force"];
    let told = refused(&import);
    let make_anew = format!("tantalum create {} --force", text(&volume));
    assert!(told.contains(&make_anew), "{told}");
    good(&["create", text(&volume), "--force"]);
    good(&import);
    good(&export);
    assert!(digest(&back) == digest(&file));
}

/// SQLite lets a database grow into any page, and knows nothing of clones.
#[test]
fn no_clone_share_or_trim_touches_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let [file, volume, back] =
        ["a.db", "a/VOLUME.toml", "b.db"].map(|name| folder.path().join(name));
    make(&file, "", 3000);
    good(&["sqlite", "import", text(&file), text(&volume), "--capacity", "64MiB"]);
    let refusals = |beyond: bool| {
        for command in [
            &["clone"][..],
            &["clone", "--replace"],
            &["clone", "60MiB", "0", "1MiB"],
            &["share", "60MiB", "1MiB", "4"],
            &["trim", "1MiB", "1MiB"],
            &["trim", "0", "1"],
            &["trim", "60MiB", "1MiB"],
        ] {
            let (name, rest) = command.split_first().unwrap();
            let arguments = [&[*name, text(&volume)], rest].concat();
            if beyond && command == ["trim", "60MiB", "1MiB"] {
                good(&arguments);
                continue;
            }
            let told = refused(&arguments);
            assert!(told.contains("hold a SQLite database"), "{command:?}: {told}");
        }
    };
    refusals(true);
    let server = Server::start(&volume);
    refusals(false);
    server.terminate();
    good(&["sqlite", "export", text(&volume), text(&back)]);
    assert!(digest(&back) == digest(&file));
}

/// An import was killed before it had made its volume; its leftovers do not prevent a repetition.
#[test]
fn an_import_that_was_killed_early_is_repeated() {
    for options in [&[][..], &["--capacity", "96MiB"]] {
        let folder = tempfile::tempdir().unwrap();
        let [file, volume] = ["a.db", "a/VOLUME.toml"].map(|name| folder.path().join(name));
        make(&file, "", 100);
        let import = [&["sqlite", "import", text(&file), text(&volume)], options].concat();
        good(&import);
        std::fs::remove_file(volume.with_file_name("data.tantalum")).unwrap();
        std::fs::write(volume.with_file_name("data.tantalum.creating"), "begun").unwrap();
        assert!(good(&import).contains("a.db"));
        let back = folder.path().join("back.db");
        good(&["sqlite", "export", text(&volume), text(&back)]);
        assert!(digest(&back) == digest(&file));
    }
}

#[test]
fn what_a_cache_has_no_room_for_is_told_with_the_setting_that_says_so() {
    let volume = TieredVolume::new("ordered");
    let file = volume.at("a.db");
    make(&file, "", 1000);
    let error = refused(&["sqlite", "import", text(&file), text(&volume.config())]);
    assert!(error.contains("is full") && error.contains("transaction"), "{error}");
    assert!(!error.contains("Error code"), "{error}");
}

#[test]
fn an_import_leaves_nothing_to_replay() {
    let folder = tempfile::tempdir().unwrap();
    let [file, volume] = ["a.db", "a/VOLUME.toml"].map(|name| folder.path().join(name));
    make(&file, "", 500);
    good(&["sqlite", "import", text(&file), text(&volume)]);
    let stat = stat_row(&volume);
    assert_eq!(stat["replayed_at_open"], 0, "it was closed");
    assert!(stat["mapped_bytes"].as_u64().unwrap() >= file.metadata().unwrap().len());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a kill comes at some time of the real clock")]
fn what_a_killed_import_staged_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    make(&file, "", 10_000);
    for ms in [1000, 500, 250, 125, 60, 30] {
        let volume = folder.path().join(format!("{ms}/VOLUME.toml"));
        let mut import = std::process::Command::new(built::tantalum());
        let mut import =
            import.args(["sqlite", "import", text(&file), text(&volume)]).spawn().unwrap();
        while !volume.with_file_name("data.tantalum").exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(ms));
        import.kill().unwrap();
        if import.wait().unwrap().success() {
            continue;
        }
        let check = support::tantalum(&["check", text(&volume)]);
        assert_eq!(check.code, 0, "{}", check.out);
        let mapped = stat_row(&volume)["mapped_bytes"].as_u64().unwrap();
        if mapped >= file.metadata().unwrap().len() {
            // Committed already.
            continue;
        }
        assert_eq!(mapped, 0, "killed after {ms} ms");
        return;
    }
    panic!("an import is too quick to be killed");
}

#[test]
fn what_a_killed_export_left_goes_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    make(&at("a.db"), "", 50);
    good(&["sqlite", "import", text(&at("a.db")), text(&at("a/VOLUME.toml"))]);
    std::fs::write(at(".exporting-left"), "half").unwrap();
    std::fs::write(at(".exporting-at-work"), "half").unwrap();
    std::fs::write(at("exporting-other"), "whole").unwrap();
    let at_work = std::fs::File::open(at(".exporting-at-work")).unwrap();
    rustix::fs::flock(&at_work, rustix::fs::FlockOperation::LockExclusive).unwrap();
    good(&["sqlite", "export", text(&at("a/VOLUME.toml")), text(&at("b.db"))]);
    let there = ["b.db", ".exporting-left", ".exporting-at-work", "exporting-other"];
    assert_eq!(there.map(|name| at(name).exists()), [true, false, true, true]);
}

/// The extension, which is beside the test.
fn extension() -> std::path::PathBuf {
    std::env::current_exe().unwrap().with_file_name("libtantalum_sqlite.so")
}

/// Runs `program` with `arguments` in `folder`; returns its output.
fn printed_in(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let mut run = std::process::Command::new(program);
    // If the extension is not beside the program, the system's loader searches for it.
    run.env("LD_LIBRARY_PATH", extension().parent().unwrap());
    let run = run.args(arguments).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && errors.is_empty(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// The code in this language on a page of `docs`.
fn documented(page: &str, language: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, code) = docs.split_once(&format!("```{language}\n")).expect("it is there");
    code.split_once("```").unwrap().0.to_owned()
}

#[test]
fn what_import_and_the_docs_say_opens_the_database() {
    if !tantalum_testing::installed(&["sqlite3", "/usr/bin/python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [file, volume] = ["a.db", "app/VOLUME.toml"].map(|name| folder.path().join(name));
    make(&file, "", 30);
    let told = good(&["sqlite", "import", text(&file), text(&volume)]);
    let (_, command) = told.lines().last().unwrap().split_once("open it: ").unwrap();
    let (command, _) = command.split_once(" (from").unwrap();
    let count = |command: &str| {
        let command = format!("echo 'SELECT count(*) FROM t;' | {}", command.trim());
        printed_in(folder.path(), "sh", &["-c", &command])
    };
    assert_eq!(count(command), "30\n", "{command}");
    std::fs::copy(extension(), folder.path().join("libtantalum_sqlite.so")).unwrap();
    for page in ["sqlite.md", "manual/sqlite.md"] {
        assert_eq!(count(&documented(page, "sh")), "30\n", "{page}");
        let python = documented(page, "python");
        let printed = printed_in(folder.path(), "/usr/bin/python3", &["-c", &python]);
        assert_eq!(printed, "(2,)\n", "{page}");
    }
}
