//! From a load to its statistics: a served volume and SQLite are recorded.
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, tantalum, text};
use tantalum_testing::installed;

fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    config
}

/// The output of `tantalum trace stat` for the trace at `path`.
fn row(path: &Path) -> serde_json::Value {
    let stat = good(&["trace", "stat", text(path), "--format", "json"]);
    serde_json::from_str::<serde_json::Value>(&stat).unwrap()["rows"][0].clone()
}

#[test]
fn what_a_server_was_asked_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let trace = folder.path().join("load.csv.zst");
    let mut server = Server::start_as(&config, &["--record", text(&trace)]);
    assert!(server.line().contains(text(&trace)));
    let mut client = Client::connect(&server.socket).unwrap();
    for round in 0..50u64 {
        client.write(round * 7 % 64, &[round as u8; PAGE_BYTES]);
        client.read(round * 3 % 32, 2).unwrap();
    }
    client.flush();
    client.trim(0, 4);
    server.terminate();
    let row = row(&trace);
    let counts = ["reads", "writes", "trims", "commits"].map(|name| row[name].as_u64().unwrap());
    // One line per page.
    assert_eq!(counts, [100, 50, 4, 1], "{row}");
    good(&["curve", text(&trace), "--size", "16"]);
    good(&["replay", text(&trace), "--policy", "lru,arc", "--size", "16"]);
    good(&["advise", text(&trace), "--flash", "ssd-a"]);
    // A second run must not replace the first recording.
    let again =
        ["serve", text(&config), "--nbd", "unix:/nowhere/nbd.sock", "--record", text(&trace)];
    assert!(refused(&again).contains("is there already"));
}

/// Reads `rounds` times 32 pages, one line of about 6 bytes each, then kills the server. Returns the number of lines
/// that can be recovered from the recording.
fn lines_of_a_killed_recording(name: &str, rounds: u64) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let (trace, whole) = (folder.path().join(name), folder.path().join("whole.csv"));
    let server = Server::start_as(&config, &["--record", text(&trace)]);
    let mut client = Client::connect(&server.socket).unwrap();
    (0..rounds).for_each(|round| drop(client.read(1000 + round * 13 % 3000, 32).unwrap()));
    server.kill();
    let run = tantalum(&["trace", "convert", "--rescue", text(&trace), text(&whole)]);
    assert!([0, 1].contains(&run.code), "{name}: {}", run.err);
    if name.ends_with(".zst") || name.ends_with(".gz") {
        assert!(run.code == 1 && run.err.contains("cut off behind line"), "{name}: {}", run.err);
    }
    std::fs::read_to_string(&whole).unwrap().lines().count()
}

#[test]
fn what_a_killed_server_recorded_is_there_but_for_the_last_block() {
    for name in ["load.csv", "load.csv.zst", "load.csv.gz"] {
        let lines = lines_of_a_killed_recording(name, 1000);
        assert!(lines + (64 << 10) / 6 > 32_000, "{name}: {lines} lines of 32,000");
    }
}

/// As a user of the shell does it: only the environment requests the recording.
#[test]
fn what_the_stock_shell_did_is_recorded() {
    if !installed(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (config, trace) = (volume(folder.path()), folder.path().join("shell.csv"));
    let mut shell = Command::new("sqlite3")
        .args(["-batch", ":memory:"])
        .env("TANTALUM_RECORD", &trace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let extension = std::env::current_exe().unwrap().with_file_name("libtantalum_sqlite.so");
    let sql = format!(
        ".load {}\n.open 'file:{}?vfs=tantalum'
         CREATE TABLE t(x); INSERT INTO t VALUES (1); BEGIN; DELETE FROM t; ROLLBACK;
         SELECT count(*) FROM t;\n",
        extension.display(),
        config.display()
    );
    shell.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let told = shell.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "1\n");
    let row = row(&trace);
    // One for the table, one for the row.
    assert_eq!(row["commits"], 2, "{row}");
    good(&["curve", text(&trace)]);
}
