//! The log of a server, and the announcement that it is ready.
mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::nbd::{Client, EIO, PAGE_BYTES};
use support::server::Server;
use support::{good, text};
use tantalum_testing::built;

fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    config
}

/// Starts a server with these options, and waits until it listens.
fn serve(config: &Path, options: &[&str], notify: Option<&Path>) -> Child {
    let socket = config.with_file_name("nbd.sock");
    let mut command = Command::new(built::tantalum());
    command.args(["serve", text(config), "--nbd", &format!("unix:{}", socket.display())]);
    command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(notify) = notify {
        command.env("NOTIFY_SOCKET", notify);
    }
    let mut child = command.spawn().unwrap();
    let mut banner = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut banner).unwrap();
    assert!(banner.contains(" at "), "{banner}");
    child
}

/// Ends the server; returns its log.
fn stop(mut child: Child) -> String {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut logged = String::new();
    child.stderr.take().unwrap().read_to_string(&mut logged).unwrap();
    assert!(child.wait().unwrap().success(), "{logged}");
    logged
}

/// A volume whose page 5 is damaged.
fn damaged_volume(folder: &Path) -> PathBuf {
    let config = volume(folder);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    client.write(5, &[0x45; PAGE_BYTES]);
    server.terminate();
    let path = config.with_file_name("data.tantalum");
    let bytes = std::fs::read(&path).unwrap();
    let data = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let is_page = |slot: &usize| bytes[slot * PAGE_BYTES..][..PAGE_BYTES] == [0x45; PAGE_BYTES];
    for slot in (0..bytes.len() / PAGE_BYTES).filter(is_page) {
        data.write_all_at(&[0x44], (slot * PAGE_BYTES + 1000) as u64).unwrap();
    }
    config
}

#[test]
fn each_thing_that_happens_is_a_line_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let config = damaged_volume(folder.path());
    let server = serve(&config, &["--log-format", "json"], None);
    let mut client = Client::connect(&config.with_file_name("nbd.sock")).unwrap();
    assert_eq!(client.read(5, 1), Err(EIO));
    drop(client);
    let logged = stop(server);
    let events: Vec<Value> = logged
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = |message: &str| {
        let found = events.iter().find(|event| {
            event["fields"]["message"].as_str().is_some_and(|text| text.contains(message))
        });
        found.unwrap_or_else(|| panic!("no {message:?} in {logged}"))
    };
    assert_eq!(told("opened ")["fields"]["pages_lost"], 0);
    assert_eq!(told("a client connected")["fields"]["connection"], 1);
    let failed = told("a request failed");
    assert_eq!((&failed["level"], &failed["fields"]["offset"]), (&"ERROR".into(), &20480.into()));
    let error = failed["fields"]["error"].as_str().unwrap();
    assert!(error.contains("page 5 at slot") && error.contains("checksum"), "{error}");
    for message in ["stopping", "the volume is closed"] {
        told(message);
    }
}

#[test]
fn of_a_flood_of_failures_some_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = damaged_volume(folder.path());
    let server = serve(&config, &[], None);
    let mut client = Client::connect(&config.with_file_name("nbd.sock")).unwrap();
    for _ in 0..1000 {
        assert_eq!(client.read(5, 1), Err(EIO));
    }
    drop(client);
    let told = stop(server).matches("a request failed").count();
    // Ten per second, and this takes much less than a minute.
    assert!((10..600).contains(&told), "{told}");
}

#[test]
fn people_read_it_too_and_may_have_less() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let logged = stop(serve(&config, &[], None));
    assert!(logged.contains("INFO") && logged.contains("opened ") && logged.contains("v.toml"));
    assert_eq!(stop(serve(&config, &["--log-level", "warn"], None)), "");
    let serve = ["serve", text(&config), "--nbd", "127.0.0.1:0", "--log-format", "xml"];
    assert!(support::tantalum(&serve).err.contains("text, json"));
}

#[test]
fn systemd_and_the_file_with_its_number_are_told_when_it_serves_and_when_not() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let (notify, pid_file) = (folder.path().join("notify"), folder.path().join("v.pid"));
    let systemd = UnixDatagram::bind(&notify).unwrap();
    let received = || {
        let mut bytes = [0; 100];
        let count = systemd.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).trim().to_owned()
    };
    // A pid file that a killed server left behind.
    std::fs::write(&pid_file, "a number that is longer than any other\n").unwrap();
    let server = serve(&config, &["--pid-file", text(&pid_file)], Some(&notify));
    assert_eq!(received(), "READY=1");
    let device = ["serve", "--device", "durassd:capacity=64MiB", "--nbd", "127.0.0.1:0"];
    let second = support::tantalum(&[&device, &["--pid-file", text(&pid_file)][..]].concat());
    assert!(second.err.contains("another running server"), "{}", second.err);
    assert_eq!(std::fs::read_to_string(&pid_file).unwrap(), format!("{}\n", server.id()));
    stop(server);
    assert_eq!(received(), "STOPPING=1");
    assert!(!pid_file.exists());
    // In a folder of others, a link may lead to any file, and a pipe would wait for a reader.
    let (link, pipe, other) = ["link", "pipe", "other"].map(|name| folder.path().join(name)).into();
    std::fs::write(&other, "precious").unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(fifo.success());
    for file in [&link, &pipe] {
        let told = support::tantalum(&[&device, &["--pid-file", text(file)][..]].concat());
        assert!(
            told.code == 2 && told.err.contains("is a link, a pipe or a device"),
            "{}",
            told.err
        );
    }
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    let nowhere = ["serve", text(&config), "--nbd", "127.0.0.1:0", "--pid-file", "/nowhere/v.pid"];
    let told = support::tantalum(&nowhere);
    assert!(told.code == 2 && told.err.contains("/nowhere/v.pid"), "{}", told.err);
}
