//! A server beside clients that squat, flood or do not read.
mod support;

use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::nbd::{self, Client, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, text};
use tantalum_testing::built;

fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    config
}

#[expect(clippy::disallowed_methods, reason = "a server of the real world needs its time")]
fn after_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[expect(clippy::disallowed_methods, reason = "a server of the real world needs its time")]
fn seconds(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}

/// A client that asks for much and reads nothing.
fn greedy(server: &Server) -> Client {
    let mut client = Client::connect(&server.socket).unwrap();
    for _ in 0..16 {
        client.send(nbd::Command::Read, 1, 0, 2048, &[]).unwrap();
    }
    client
}

#[test]
fn a_second_signal_hastens_a_server_that_waits_for_a_client() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--stop-seconds-max", "600"]);
    Client::connect(&server.socket).unwrap().write(3, &[9; PAGE_BYTES]);
    let _greedy = greedy(&server);
    after_ms(500);
    server.signal(Signal::TERM);
    after_ms(1500);
    assert!(server.socket.with_file_name("v.toml.control").exists(), "it waits for its client");
    server.signal(Signal::INT);
    let waited = seconds(|| {
        server.ended();
    });
    assert!(waited < 2.0, "{waited} s");
    let again = Server::start(&config);
    let content = Client::connect(&again.socket).unwrap().read(3, 1).unwrap();
    assert!(content == [9; PAGE_BYTES], "it closed the volume");
    again.terminate();
}

/// A client that closes its own direction and reads on, as `nc` does, gets a success only for writes that were done.
#[test]
fn replies_after_the_end_of_the_requests_are_true() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start(&config);
    for round in 1..=8u8 {
        let mut client = Client::connect(&server.socket).unwrap();
        let content = vec![round; 16 * PAGE_BYTES];
        for cookie in 0..64 {
            client.send(nbd::Command::Write, cookie, cookie * 16, 16, &content).unwrap();
        }
        client.send_no_more().unwrap();
        let (mut done, mut refused) = (Vec::new(), 0);
        while let Ok((cookie, error)) = client.reply() {
            match error {
                0 => done.push(cookie),
                _ => refused += 1,
            }
        }
        println!("round {round}: {} done, {refused} refused", done.len());
        assert_eq!(done.len() + refused, 64, "each is answered");
        let mut other = Client::connect(&server.socket).unwrap();
        for cookie in done {
            assert!(other.read(cookie * 16, 16).unwrap() == content, "round {round}: {cookie}");
        }
    }
    server.terminate();
}

#[test]
fn a_server_stops_in_time_whatever_its_clients_do() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--stop-seconds-max", "1"]);
    let _greedy = greedy(&server);
    let zeroes = Client::connect(&server.socket);
    let mut zeroes = zeroes.unwrap();
    for _ in 0..60 {
        zeroes.send(nbd::Command::WriteZeroes, 1, 0, 4096, &[]).unwrap();
    }
    after_ms(200);
    let waited = seconds(|| {
        server.terminate();
    });
    assert!(waited < 8.0, "{waited} s");
}

#[test]
fn silent_connections_keep_nobody_out_and_a_stopped_server_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--socket", "--connections-max", "4"]);
    let control = folder.path().join("v.toml.control");
    let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&control).unwrap()).collect();
    let told = seconds(|| {
        good(&["stat", text(&config)]);
    });
    assert!(told < 5.0, "{told} s");
    drop(silent);
    server.signal(Signal::STOP);
    let told = refused(&["stat", text(&config)]);
    server.signal(Signal::CONT);
    assert!(told.contains("does not answer in 10 s") && told.contains("v.toml"), "{told}");
    good(&["stat", text(&config)]);
    server.terminate();
}

/// Asks for exports that do not exist.
fn ask_for_nothing(socket: &Path) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut asked = 3u32.to_be_bytes().to_vec();
    for _ in 0..60 {
        asked.extend(b"IHAVEOPT\0\0\0\x06\0\0\x10\x06\0\0\x10\0");
        asked.extend([0xff; 4096]);
        asked.extend([0; 2]);
    }
    asked.extend(b"IHAVEOPT\0\0\0\x02\0\0\0\0");
    // The server may disconnect before it has read all.
    let _ = stream.write_all(&asked);
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_log_that_nobody_reads_stops_nobody_and_a_flood_of_lines_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let socket = folder.path().join("nbd.sock");
    let address = format!("unix:{}", socket.display());
    let mut serve = Command::new(built::tantalum());
    serve.args(["serve", text(&config), "--nbd", &address, "--log-level", "debug"]);
    let mut server = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while UnixStream::connect(&socket).is_err() {
        after_ms(10);
    }
    let mut good = Client::connect(&socket).unwrap();
    for _ in 0..50 {
        ask_for_nothing(&socket);
    }
    good.write(1, &[1; PAGE_BYTES]);
    after_ms(2500);
    rustix::process::kill_process(rustix::process::Pid::from_child(&server), Signal::TERM).unwrap();
    let mut told = String::new();
    server.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(server.wait().unwrap().success(), "{told}");
    let lines = told.matches("an export that does not exist").count();
    // 3,000 requests, and ten lines of a kind a second.
    assert!((1..400).contains(&lines), "{lines} lines");
    assert!(told.contains("more lines of one kind were not written"), "{told}");
    assert!(told.lines().all(|line| line.len() < 2000), "long lines");
}
