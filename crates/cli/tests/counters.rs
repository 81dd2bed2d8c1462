//! `tantalum stat` and `top` for a volume that a program has opened itself: its counters are in a file beside the
//! configuration.
mod support;

use rusqlite::{Connection, OpenFlags};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{good, on_small_disk, stat_row, tantalum, text};
use tantalum::Volume;
use tantalum::front_end::counters_of;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};
use tantalum_testing::{built, is_root, skip};
use tantalum_volume::VolumeConfig;

const CHILD: &str = "TANTALUM_TEST_VOLUME";

fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("v.toml");
    good(&["create", text(&config), "--capacity", "64MiB"]);
    config
}

fn counters(config: &Path) -> PathBuf {
    config.with_file_name("v.toml.counters")
}

fn page(byte: u8) -> PageBuf {
    PageBuf::copy_from(&[byte; PAGE_BYTES])
}

#[expect(clippy::disallowed_methods, reason = "counters are told by the real clock")]
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(gotten) = attempt() {
            return gotten;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to pass");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Does work until the counters are written.
fn work(client: &Volume, config: &Path) {
    until(|| {
        client.write(PageNo(0), vec![page(1)]).unwrap();
        counters(config).exists().then_some(())
    });
}

/// The program of the next tests: it begins a transaction of SQLite and stays inside it until it is killed.
#[test]
fn a_program_that_never_commits() {
    let Some(config) = std::env::var_os(CHILD) else { return };
    tantalum_sqlite::register("counted", |path: &Path| Volume::open(path), Default::default())
        .unwrap();
    let flags = OpenFlags::default();
    let database = Connection::open_with_flags_and_vfs(config, flags, c"counted").unwrap();
    database.execute_batch("PRAGMA cache_size = 100; CREATE TABLE t(x BLOB); BEGIN").unwrap();
    database.execute("INSERT INTO t VALUES (zeroblob(8000000))", []).unwrap();
    loop {
        database.execute("UPDATE t SET x = randomblob(8000000)", []).unwrap();
    }
}

fn program(config: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_program_that_never_commits"])
        .env(CHILD, config)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_transaction_of_sqlite_is_seen_while_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let mut child = program(&config);
    let row = until(|| {
        // Before that, the program may not have opened the volume; `stat` must not make it find the volume in use.
        counters(&config).exists().then_some(())?;
        let stat = tantalum(&["stat", text(&config), "--format", "json"]);
        let stat: serde_json::Value = serde_json::from_str(&stat.out).ok()?;
        let row = stat["rows"][0].clone();
        (row["uncommitted_bytes"].as_u64()? >= 4 << 20).then_some(row)
    });
    assert_eq!(row["open_by_pid"], child.id());
    assert!(row["told_seconds_ago"].as_f64().unwrap() < 30.0, "{row}");
    assert!(row["open_seconds"].as_f64().unwrap() > 0.1, "{row}");
    assert_eq!(row["program_transactions"], 1, "the table: {row}");
    assert!(row["mapped_bytes"].is_number() && row["zones_free"].is_number(), "{row}");
    let table = good(&["stat", text(&config)]);
    assert!(table.contains("\nProgram\n  open for ") && table.contains("in progress"), "{table}");
    assert!(!table.contains("published no counters"), "{table}");
    let top = ["top", text(&config), "--interval", "0.5", "--count", "1"];
    let json = [&top[..], &["--format", "json"]].concat();
    // A statement that computes for longer than the interval publishes nothing in it: there are no rates then.
    let seen = until(|| {
        let seen: serde_json::Value = serde_json::from_str(&good(&json)).unwrap();
        seen["writes_per_second"].is_number().then_some(seen)
    });
    assert!(seen["uncommitted_bytes"].as_u64().unwrap() >= 4 << 20, "{seen}");
    assert_eq!(seen["capacity_bytes"], 64 << 20, "{seen}");
    let seen = until(|| {
        let seen = good(&top);
        assert!(seen.contains("v.toml (on_ack), up "), "{seen}");
        seen.contains(", over ").then_some(seen)
    });
    assert!(seen.contains("\ntransactions  committed/s 0"), "{seen}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The counters that it left are ignored, even if another program has the volume open.
    assert!(counters(&config).exists());
    let left = std::fs::read(counters(&config)).unwrap();
    assert_eq!(stat_row(&config)["open_seconds"], serde_json::Value::Null);
    let client = Volume::open(&config).unwrap();
    assert!(!counters(&config).exists(), "the next one removes it");
    std::fs::write(counters(&config), left).unwrap();
    let row = stat_row(&config);
    assert_eq!(row["open_by_pid"], std::process::id());
    assert!(row["open_seconds"].is_null() && row["uncommitted_bytes"].is_null(), "{row}");
    let refused = tantalum(&top);
    assert_eq!(refused.code, 2, "{}", refused.out);
    assert!(refused.err.contains("has published no counters yet"), "{}", refused.err);
    drop(client);
    let refused = tantalum(&top);
    assert!(refused.err.contains("no program has this volume open"), "{}", refused.err);
}

#[test]
fn requests_and_transactions_are_counted_and_the_file_is_gone_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let client = Volume::open(&config).unwrap();
    let mut tx = client.begin().unwrap();
    tx.write(PageNo(8), vec![page(2), page(3), page(4)]).unwrap();
    client.write_scattered(vec![(PageNo(1), page(1)), (PageNo(5), page(1))]).unwrap();
    client.read(PageNo(0), 7).unwrap();
    work(&client, &config);
    let told = counters_of(&VolumeConfig::read(&config).unwrap()).unwrap();
    let told = support::exposition::Told::read(&told.text);
    assert_eq!(told.get("tantalum_program_open_transactions"), 1.0);
    assert_eq!(told.get("tantalum_program_uncommitted_pages"), 3.0);
    assert_eq!(told.get("tantalum_program_transactions_total"), 1.0);
    let bytes = "tantalum_program_request_bytes_total{command=\"read\"}";
    assert_eq!(told.get(bytes), 7.0 * PAGE_BYTES as f64);
    assert_eq!(std::fs::metadata(counters(&config)).unwrap().mode() & 0o777, 0o600);
    tx.commit().unwrap();
    let row = until(|| {
        client.read(PageNo(0), 1).unwrap();
        let row = stat_row(&config);
        (row["uncommitted_bytes"] == 0).then_some(row)
    });
    assert_eq!(
        (&row["program_transactions"], &row["program_open_transactions"]),
        (&2.into(), &0.into())
    );
    // An idle program has rates of 0, and its counters stay.
    let top = ["top", text(&config), "--interval", "1.5", "--count", "2", "--format", "json"];
    let last = good(&top);
    let last: serde_json::Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!((&last["reads_per_second"], &last["writes_per_second"]), (&0.0.into(), &0.0.into()));
    drop(client);
    assert!(!counters(&config).exists());
    let reader = Volume::open_read_only(&config).unwrap();
    for _ in 0..100 {
        reader.read(PageNo(0), 8).unwrap();
    }
    drop(reader);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn top_says_so_when_the_program_has_closed_the_volume() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let client = Volume::open(&config).unwrap();
    work(&client, &config);
    let mut top = Command::new(built::tantalum())
        .args(["top", text(&config), "--interval", "0.1", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    std::io::Read::read_exact(top.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(client);
    let ended = top.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("does not answer any more"), "{told}");
}

#[test]
fn where_somebody_has_a_file_of_that_name_there_are_no_counters_and_all_else_works() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "mine").unwrap();
    for link in [true, false] {
        match link {
            true => std::os::unix::fs::symlink(&precious, counters(&config)).unwrap(),
            false => std::fs::write(counters(&config), "mine").unwrap(),
        }
        let client = Volume::open(&config).unwrap();
        let end = deadline(Duration::from_millis(500));
        while !end() {
            client.write(PageNo(3), vec![page(9)]).unwrap();
        }
        assert_eq!(stat_row(&config)["open_seconds"], serde_json::Value::Null);
        drop(client);
        assert_eq!(std::fs::read(counters(&config)).unwrap(), b"mine");
        std::fs::remove_file(counters(&config)).unwrap();
    }
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
}

/// Whether this time has elapsed.
#[expect(clippy::disallowed_methods, reason = "counters are told by the real clock")]
fn deadline(time: Duration) -> impl Fn() -> bool {
    let begun = Instant::now();
    move || begun.elapsed() >= time
}

/// The volume is on another file system; its configuration is on one without space.
#[test]
fn on_a_full_file_system_there_are_no_counters_and_all_else_works() {
    if !is_root() {
        return skip("root");
    }
    let folder = tempfile::tempdir().unwrap();
    let made = volume(folder.path());
    let data = folder.path().join("data.tantalum");
    on_small_disk("64k", |small| {
        let config = small.join("v.toml");
        let named = std::fs::read_to_string(&made).unwrap();
        let named = named.replace("\"data.tantalum\"", &format!("{:?}", text(&data)));
        std::fs::write(&config, named).unwrap();
        while std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(small.join("filler"))
            .and_then(|mut file| std::io::Write::write_all(&mut file, &[1; 4096]))
            .is_ok()
        {}
        let client = Volume::open(&config).unwrap();
        let end = deadline(Duration::from_millis(500));
        while !end() {
            client.write(PageNo(3), vec![page(9)]).unwrap();
        }
        assert!(!counters(&config).exists(), "no half of a file is left");
        assert_eq!(client.read(PageNo(3), 1).unwrap(), [page(9)]);
        drop(client);
    });
}
