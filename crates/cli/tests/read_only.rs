//! `tantalum check`, `stat` and `serve --read-only` change nothing: at the same time, on a full file system, and on a
//! read-only one.
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::nbd::{Client, Command as Request, EPERM, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, stat_row, tantalum, text};

const PAGES: u64 = 400;

/// A volume in `folder` whose server was killed, so that there is a log to replay.
fn killed_volume(folder: &Path, more: &[&str]) -> PathBuf {
    let config = folder.join("v.toml");
    good(&[&["create", text(&config), "--capacity", "4MiB"], more].concat());
    let server = Server::start_as(&config, &["--durability", "on_ack"]);
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

/// All properties and content of a folder, except access times.
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

/// Checks the volume, prints its properties and reads it, each twice and with two servers at once, with a log to replay
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
        assert_eq!(stat_row(config)["mapped_bytes"], PAGES * PAGE_BYTES as u64);
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
    let config = killed_volume(folder.path(), &[]);
    read_all_ways(&config, sockets.path());

    let reader = Server::start_read_only(&config, sockets.path().join("reader.sock"));
    let serve = ["serve", text(&config), "--nbd", "127.0.0.1:0"];
    let told = refused(&serve);
    assert!(told.contains(&format!("another process (pid {})", reader.pid())), "{told}");
    reader.terminate();
    let writer = Server::start(&config);
    for reader in [&["check"][..], &["serve", "--read-only", "--nbd", "127.0.0.1:0"]] {
        let told = refused(&[reader, &[text(&config)]].concat());
        assert!(told.contains(&format!("another process (pid {})", writer.pid())), "{told}");
    }
    assert!(writer.replayed() > 0, "readers left the log as it was");
    writer.terminate();
    good(&["check", text(&config)]);
}

#[test]
fn a_full_or_read_only_file_system_is_no_hindrance() {
    let sockets = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount() else { return };
    let config = killed_volume(&small.path, &[]);
    small.fill();
    read_all_ways(&config, sockets.path());
    assert!(run("mount", &["-o", "remount,ro", text(&small.path)]));
    read_all_ways(&config, sockets.path());
    let told = tantalum(&["serve", text(&config), "--nbd", "127.0.0.1:0"]);
    assert!(told.code == 2 && told.err.contains("Read-only file system"), "{}", told.err);
}

#[test]
fn a_sparse_volume_on_a_full_file_system_says_what_helps() {
    let sockets = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount() else { return };
    let config = killed_volume(&small.path, &["--sparse"]);
    small.fill();
    let told = tantalum(&["serve", text(&config), "--nbd", "127.0.0.1:0"]);
    assert_eq!(told.code, 2, "{}", told.err);
    for said in ["No space left on device", "make room", "read-only"] {
        assert!(told.err.contains(said), "{}", told.err);
    }
    read_all_ways(&config, sockets.path());
    fs::remove_file(small.path.join("fill")).unwrap();
    Server::start(&config).kill();
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A file system of 16 MiB, unmounted when this is dropped.
struct Small {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Small {
    fn mount() -> Option<Small> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small");
        fs::create_dir(&path).unwrap();
        if !run("mount", &["-t", "tmpfs", "-o", "size=16m", "tmpfs", text(&path)]) {
            tantalum_testing::skip("tmpfs");
            return None;
        }
        Some(Small { path, _folder: folder })
    }

    fn fill(&self) {
        let mut fill = fs::File::create(self.path.join("fill")).unwrap();
        let full = std::io::copy(&mut std::io::repeat(1), &mut fill).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // A failing test has its own message.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
