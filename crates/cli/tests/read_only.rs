//! `tantalum check`, `stat` and `serve --read-only` change nothing: beside each other, on a full and on
//! a read-only file system.
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::nbd::{Client, Command as Request, EPERM, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, tantalum};

const PAGES: u64 = 400;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A volume in `folder` of which the server was killed, so that there is a log to replay.
fn killed_volume(folder: &Path) -> PathBuf {
    let config = folder.join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for round in 0..3 {
        for page in 0..PAGES {
            client.write(page, &[content(page) + round - 2; PAGE_BYTES]);
        }
    }
    let socket = server.socket.clone();
    server.kill();
    fs::remove_file(socket).unwrap();
    config
}

fn content(page: u64) -> u8 {
    10 + (page % 200) as u8
}

/// Everything that a folder is and holds, but for when it was read.
fn everything_in(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, [i64; 5])> {
    let about = |path: &Path| {
        let it = fs::metadata(path).unwrap();
        [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec(), it.len() as i64]
    };
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut all: BTreeMap<_, _> =
        files.map(|path| (path.clone(), (fs::read(&path).ok(), about(&path)))).collect();
    all.insert(folder.to_path_buf(), (None, about(folder)));
    all
}

/// Checks, tells of and reads the volume, all of it twice and two servers at once, with a log to replay
/// each time; nothing changes.
fn read_all_ways(config: &Path, sockets: &Path) {
    let folder = config.parent().unwrap();
    let before = everything_in(folder);
    let servers = [1, 2]
        .map(|server| Server::start_read_only(config, sockets.join(format!("{server}.sock"))));
    for server in &servers {
        assert!(server.banner.contains("read-only at ") && server.replayed() > 0);
        let checked = good(&["check", text(config)]);
        assert!(
            checked.contains("v.toml: sound: ") && !checked.contains(" 0 changes"),
            "{checked}"
        );
        let stat: serde_json::Value =
            serde_json::from_str(&good(&["stat", text(config), "--format", "json"])).unwrap();
        assert_eq!(stat["rows"][0]["mapped_bytes"], PAGES * PAGE_BYTES as u64);
        let mut client = Client::connect(&server.socket).unwrap();
        for page in 0..PAGES {
            assert_eq!(client.read(page, 1), Ok(vec![content(page); PAGE_BYTES]), "page {page}");
        }
        client.send(Request::Write, 7, 3, 1, &[1; PAGE_BYTES]).unwrap();
        assert_eq!(client.reply().unwrap(), (7, EPERM));
        client.send(Request::Trim, 8, 3, 1, &[]).unwrap();
        assert_eq!(client.reply().unwrap(), (8, EPERM));
        client.flush();
    }
    for server in servers {
        server.terminate();
    }
    assert!(everything_in(folder) == before, "something changed");
}

#[test]
fn nothing_is_written_and_readers_go_side_by_side() {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = killed_volume(folder.path());
    read_all_ways(&config, sockets.path());

    let reader = Server::start_read_only(&config, sockets.path().join("reader.sock"));
    let serve = ["serve", text(&config), "--nbd", "127.0.0.1:0"];
    let told = refused(&serve);
    assert!(told.contains(&format!("another process (pid {})", reader.pid())), "{told}");
    reader.terminate();
    let writer = Server::start(&config);
    for reader in [&["check"][..], &["stat"], &["serve", "--read-only", "--nbd", "127.0.0.1:0"]] {
        let told = refused(&[reader, &[text(&config)]].concat());
        assert!(told.contains(&format!("another process (pid {})", writer.pid())), "{told}");
    }
    assert!(writer.replayed() > 0, "readers left the log as it was");
    writer.terminate();
    good(&["check", text(&config)]);
}

#[test]
fn a_full_or_read_only_file_system_is_no_hindrance() {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mount = folder.path().join("small");
    fs::create_dir(&mount).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !run("mount", &["-t", "tmpfs", "-o", "size=16m", "tmpfs", text(&mount)]) {
        eprintln!("skipped: a small tmpfs can be mounted only as root");
        return;
    }
    let unmount = Unmount(&mount);
    let config = killed_volume(&mount);
    let mut fill = fs::File::create(mount.join("fill")).unwrap();
    let full = std::io::copy(&mut std::io::repeat(1), &mut fill).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    drop(fill);
    read_all_ways(&config, sockets.path());
    assert!(run("mount", &["-o", "remount,ro", text(&mount)]));
    read_all_ways(&config, sockets.path());
    let told = tantalum(&["serve", text(&config), "--nbd", "127.0.0.1:0"]);
    assert!(told.code == 2 && told.err.contains("Read-only file system"), "{}", told.err);
    drop(unmount);
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        // A test that fails has its own message.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
