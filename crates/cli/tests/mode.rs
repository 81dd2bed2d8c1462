//! `tantalum mode`: the mode of a cache is changed while it is served.
mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, text};

/// A cache over an empty home in `folder`; it destages nothing unless it has to.
fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("VOLUME.toml");
    let (home, flash) = (folder.join("home"), folder.join("flash"));
    let (home, flash) = (home.to_str().unwrap(), flash.to_str().unwrap());
    let made = ["create", config.to_str().unwrap(), "--home", home, "--flash", flash];
    good(&[&made[..], &["--capacity", "64MiB", "--flash-size", "128MiB"]].concat());
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("# destage_after_ms = 5000", "destage_after_ms = 3600000");
    std::fs::write(&config, text).unwrap();
    config
}

fn byte_at_home(folder: &Path, page: usize) -> u8 {
    std::fs::read(folder.join("home")).unwrap()[page * PAGE_BYTES]
}

#[test]
fn a_cache_is_switched_off_and_on_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..1000 {
        client.write(page, &[1; PAGE_BYTES]);
    }
    let told = good(&["mode", text(&config)]);
    assert!(told.contains("write-back, home lacks 1000 pages (3.9 MiB)"), "{told}");
    assert_eq!(byte_at_home(folder.path(), 507), 0, "nothing went home");

    let told = good(&["mode", text(&config), "off"]);
    assert!(told.contains("off, home has everything"), "{told}");
    client.write(7, &[2; PAGE_BYTES]);
    // Acknowledged writes are in the journal of the home, or already at home.
    let rescued = tempfile::tempdir().unwrap();
    for name in ["home", "home.journal", "VOLUME.toml"] {
        std::fs::copy(folder.path().join(name), rescued.path().join(name)).unwrap();
    }
    let copy = rescued.path().join("VOLUME.toml");
    let paths = std::fs::read_to_string(&copy).unwrap();
    let paths = paths.replace(text(folder.path()), text(rescued.path()));
    std::fs::write(&copy, paths).unwrap();
    good(&["rescue", text(&copy)]);
    assert_eq!([6, 7, 999, 1000].map(|page| byte_at_home(rescued.path(), page)), [1, 2, 1, 0]);
    assert_eq!(client.read(7, 1).unwrap()[0], 2);

    let told = good(&["mode", text(&config), "write-back"]);
    assert!(told.contains("write-back, home has everything"), "{told}");
    client.write(8, &[3; PAGE_BYTES]);
    drop(client);
    server.kill();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    let found = [6, 7, 8, 1000].map(|page| client.read(page, 1).unwrap()[0]);
    assert_eq!(found, [1, 2, 3, 0]);
}

#[test]
fn the_configuration_says_the_mode_of_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let written = std::fs::read_to_string(&config).unwrap();
    let through = written.replace("# mode = \"write-back\"", "mode = \"write-through\"");
    std::fs::write(&config, &through).unwrap();
    {
        let server = Server::start(&config);
        let mut client = Client::connect(&server.socket).unwrap();
        client.write(505, &[9; PAGE_BYTES]);
        assert!(good(&["mode", text(&config)]).contains("write-through"));
        server.terminate();
        assert_eq!(byte_at_home(folder.path(), 505), 9);
    }
    std::fs::write(&config, through.replace("write-through\"\n", "write-around\"\n")).unwrap();
    let error = refused(&["check", text(&config)]);
    assert!(
        error.contains("\"write-around\" is not a mode: the modes are write-back, write-through"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let error = refused(&["mode", text(&config), "off"]);
    assert!(error.contains("not being served"), "{error}");
    let error = refused(&["mode", text(&config), "fast"]);
    assert!(error.contains("write-back, write-through, read-cache, off"), "{error}");
    let flash = folder.path().join("FLASH.toml");
    good(&["create", text(&flash), "--capacity", "8MiB"]);
    let error = refused(&["mode", text(&flash)]);
    assert!(error.contains("only a tiered volume has modes"), "{error}");

    let server = Server::start(&config);
    let socket = folder.path().join("VOLUME.toml.control");
    for (asked, answered) in [
        ("format c:\n", "error a request is"),
        ("mode x y\n", "error a request is"),
        ("mode x\n", "error \"x\" is not a mode"),
    ] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(asked.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(answered), "{asked}: {answer}");
    }
    // A silent client does not prevent the server from stopping.
    let silent = UnixStream::connect(&socket).unwrap();
    server.terminate();
    assert!(!socket.exists());
    drop(silent);
}

#[test]
fn a_server_that_does_not_answer_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start(&config);
    server.signal(rustix::process::Signal::STOP);
    let told = refused(&["mode", text(&config)]);
    server.signal(rustix::process::Signal::CONT);
    assert!(told.contains("does not answer in 10 s"), "{told}");
    good(&["mode", text(&config)]);
    server.terminate();
}
