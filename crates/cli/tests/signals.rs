//! The effect of each signal on each command: the table of docs/nbd.md, row by row.
mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::{good, text};
use tantalum_testing::built;

const PAGES: u64 = 100;

/// The effect of a signal on a command.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Meaning {
    Stops,
    IsInterrupted,
    EndsAtOnce,
    GoesOn,
}

/// The effects of each signal on `serve`, `top`, long runs and other commands.
fn table() -> Vec<(Signal, [Meaning; 4])> {
    let rows =
        include_str!("../../../docs/nbd.md").lines().filter(|line| line.starts_with("| `SIG"));
    let rows = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let means = |column: usize| match cells[column] {
            "stops" => Meaning::Stops,
            "is interrupted" => Meaning::IsInterrupted,
            "ends at once" => Meaning::EndsAtOnce,
            "goes on" => Meaning::GoesOn,
            other => panic!("{other:?} in {row}"),
        };
        (signal(cells[0].trim_matches('`')), [means(1), means(2), means(3), means(4)])
    });
    rows.collect()
}

fn signal(name: &str) -> Signal {
    match name {
        "SIGTERM" => Signal::TERM,
        "SIGINT" => Signal::INT,
        "SIGHUP" => Signal::HUP,
        "SIGQUIT" => Signal::QUIT,
        "SIGPIPE" => Signal::PIPE,
        "SIGXFSZ" => Signal::XFSZ,
        "SIGUSR1" => Signal::USR1,
        "SIGUSR2" => Signal::USR2,
        other => panic!("{other}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "programs of the real world need their time")]
fn after_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Writes pages without a flush, and disconnects.
fn write_unflushed(server: &Server) {
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..PAGES {
        client.write(page, &[page as u8 + 1; PAGE_BYTES]);
    }
}

fn assert_holds_all(server: &Server) {
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..PAGES {
        let content = client.read(page, 1).unwrap();
        assert!(content.iter().all(|byte| *byte == page as u8 + 1), "page {page}");
    }
}

fn assert_serve(signal: Signal, meaning: Meaning) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "8MiB"]);
    let (pid, record) = (folder.path().join("pid"), folder.path().join("r.csv"));
    let options = ["--socket", "--pid-file", text(&pid), "--record", text(&record)];
    let server = Server::start_as(&config, &options);
    until(|| pid.exists());
    write_unflushed(&server);
    let (socket, local) = (server.socket.clone(), folder.path().join("v.toml.socket"));
    assert!(socket.exists() && local.exists());
    // A server inherits an ignored signal if this test was started by `nohup`.
    let is_ignored = signal == Signal::HUP && is_in("SigIgn:", std::process::id(), signal);
    server.signal(signal);
    match if is_ignored { Meaning::GoesOn } else { meaning } {
        Meaning::Stops => {
            server.ended();
        }
        Meaning::GoesOn => {
            after_ms(100);
            assert_holds_all(&server);
            assert!(socket.exists() && local.exists() && pid.exists());
            server.terminate();
        }
        other => panic!("a server {other:?}"),
    }
    assert!(!socket.exists() && !local.exists() && !pid.exists(), "{signal:?} leaves something");
    let recorded = std::fs::read_to_string(&record).unwrap();
    assert!(recorded.lines().count() as u64 >= PAGES, "{signal:?}: {recorded}");
    let again = Server::start(&config);
    assert_holds_all(&again);
    again.terminate();
}

/// Starts a program with no signal ignored, however this test was started.
fn start(program: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new("env");
    command
        .args(["--default-signal", program])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn until(is_so: impl Fn() -> bool) {
    let tries = (0..6_000).take_while(|_| {
        after_ms(10);
        !is_so()
    });
    assert!(tries.count() < 6_000, "it did not come to that within a minute");
}

/// Whether `signal` is in the `mask` that the kernel reports for process `pid`.
fn is_in(mask: &str, pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let bits = status.lines().find_map(|line| line.strip_prefix(mask)).unwrap();
    let bits = u64::from_str_radix(bits.trim(), 16).unwrap();
    bits >> (signal.as_raw() - 1) & 1 == 1
}

/// Whether `child` has been handed over to `program`, which catches nothing at first.
fn is_running(child: &Child, program: &str) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    name.trim_end() == program
}

fn catches(child: &Child, signal: Signal) -> bool {
    is_in("SigCgt:", child.id(), signal)
}

/// Sends `signal` to a running program, and checks how it ends. Its output is not read.
fn assert_ends(mut child: Child, signal: Signal, meaning: Meaning, what: &str) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    if meaning == Meaning::GoesOn {
        after_ms(100);
        assert_eq!(child.try_wait().unwrap(), None, "{what} after {signal:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    let ended: ExitStatus = child.wait().unwrap();
    let expected = match meaning {
        Meaning::Stops => (Some(0), None),
        Meaning::IsInterrupted => (Some(128 + signal.as_raw()), None),
        _ => (None, Some(signal.as_raw())),
    };
    assert_eq!((ended.code(), ended.signal()), expected, "{what} after {signal:?}");
}

fn assert_top(folder: &Path, signal: Signal, meaning: Meaning) {
    let metrics = format!("unix:{}", folder.join("metrics").display());
    let server =
        Server::start_device_as(folder, "durassd:capacity=16MiB", &["--metrics", &metrics]);
    let arguments = ["top", &metrics, "--interval", "0.1", "--format", "json"];
    let mut top = start(built::tantalum(), &arguments);
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let reader = std::thread::Builder::new().spawn(move || lines.count()).unwrap();
    assert_ends(top, signal, meaning, "top");
    reader.join().unwrap();
    server.terminate();
}

const LONG: &[&str] = &["crash", "--cuts", "100m", "--device", "ssd:cache=durable"];
const OTHER: &[&str] = &["trace", "generate", "zipf:pages=200k,requests=1000m", "-"];

#[test]
fn each_signal_means_to_each_command_what_the_table_says() {
    let table = table();
    assert_eq!(table.len(), 8, "signals in docs/nbd.md");
    let folder = tempfile::tempdir().unwrap();
    for (signal, [serve, top, long, other]) in table {
        assert_serve(signal, serve);
        assert_top(folder.path(), signal, top);
        let run = start(built::tantalum(), LONG);
        until(|| is_running(&run, "tantalum-crash") && catches(&run, Signal::INT));
        assert_ends(run, signal, long, "a long run");
        let run = start(built::tantalum(), OTHER);
        until(|| is_running(&run, "tantalum-lab") && catches(&run, Signal::XFSZ));
        assert_ends(run, signal, other, "another command");
    }
}

#[test]
fn what_nohup_starts_outlives_its_terminal() {
    let command = [&[built::tantalum()], LONG].concat();
    let run = start("nohup", &command);
    until(|| is_running(&run, "tantalum-crash") && catches(&run, Signal::INT));
    assert_ends(run, Signal::HUP, Meaning::GoesOn, "under nohup");
}
