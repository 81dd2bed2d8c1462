//! From a load to what is said of it: a served volume, and SQLite's, recorded.
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::nbd::{Client, PAGE_BYTES};
use support::server::{Server, installed};
use support::{good, refused, text};

fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    config
}

/// What `tantalum trace stat` says of the trace at `path`.
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
    // A line a page.
    assert_eq!(counts, [100, 50, 4, 1], "{row}");
    good(&["curve", text(&trace), "--size", "16"]);
    good(&["replay", text(&trace), "--policy", "lru,arc", "--size", "16"]);
    good(&["advise", text(&trace), "--flash", "ssd-a"]);
    // A second run must not take the first one's place.
    let again =
        ["serve", text(&config), "--nbd", "unix:/nowhere/nbd.sock", "--record", text(&trace)];
    assert!(refused(&again).contains("is there already"));
}

/// As the shell's user does it: nothing but the environment says so.
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
