//! Interrupted long runs print complete rows of their results so far, and say that these are not all.
mod support;

use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tantalum_testing::built;

/// A replay with one quick run, and one that takes minutes.
const REPLAYS: [&[&str]; 2] = [
    &[
        "replay",
        "uniform:pages=1000,requests=2000,writes=0.5",
        "--device",
        "ssd-a:capacity=16MiB",
        "--device",
        "durassd:capacity=64GiB",
    ],
    &[
        "replay",
        "uniform:pages=1000,requests=2000,writes=0.5",
        "--policy",
        "lru",
        "--size",
        "100",
        "--threads",
        "1",
        "--device",
        "ssd-a:capacity=16MiB",
        "--device",
        "durassd:capacity=64GiB",
    ],
];

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(built::tantalum());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a signal comes at some time of the real clock")]
fn after(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// Runs `arguments` and interrupts them after a delay, which grows until `is_some` accepts the output.
fn interrupted(
    arguments: &[&str],
    with: rustix::process::Signal,
    is_some: impl Fn(&str) -> bool,
) -> (Output, String) {
    for seconds in [1, 4, 16, 64] {
        let child = start(arguments);
        after(seconds);
        signal(&child, with);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        if is_some(&text) {
            return (output, text);
        }
    }
    panic!("{arguments:?} prints nothing when it is interrupted");
}

/// The report, and its rows.
fn parsed(text: &str) -> (Value, Vec<Value>) {
    let report: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let rows = report["rows"].as_array().cloned().unwrap_or_default();
    (report, rows)
}

#[test]
fn a_replay_prints_the_rows_that_are_whole() {
    for replay in REPLAYS {
        let json = [replay, &["--format", "json"]].concat();
        let (output, text) =
            interrupted(&json, rustix::process::Signal::INT, |text| !parsed(text).1.is_empty());
        assert_eq!(output.status.code(), Some(130), "{replay:?}");
        let (report, rows) = parsed(&text);
        assert_eq!(report["interrupted"], true);
        assert_eq!((&report["completed"], &report["planned"]), (&1.into(), &2.into()));
        assert_eq!(rows.len(), 1);
        assert!(rows[0]["device"].as_str().unwrap().starts_with("ssd-a"), "{text}");
        let whole = [&replay[..replay.len() - 2], &["--format", "json"]].concat();
        assert_eq!(rows[0], parsed(&support::good(&whole)).1[0], "a whole row is as ever");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("interrupted: 1 of 2"), "{told}");
    }
}

#[test]
fn tables_and_csv_say_it_too_and_sigterm_is_as_good() {
    let table = REPLAYS[0];
    let is_some = |text: &str| text.contains("ssd-a");
    let (output, text) = interrupted(table, rustix::process::Signal::TERM, is_some);
    assert_eq!(output.status.code(), Some(143));
    assert!(text.contains("interrupted: 1 of 2 devices are done"), "{text}");
    let csv = [REPLAYS[0], &["--format", "csv"]].concat();
    let (_, text) = interrupted(&csv, rustix::process::Signal::INT, is_some);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(",interrupted,completed,planned"), "{text}");
    assert!(lines[1].ends_with(",true,1,2") && lines.len() == 2, "the names and a row: {text}");
}

#[test]
fn experiments_cuts_curves_and_advice_end_with_what_they_have() {
    let trace = "zipf:pages=200k,requests=1000m,writes=0.3";
    let small = "zipf:pages=2k,requests=300k,writes=0.3";
    let advise =
        ["advise", small, "--flash", "durassd:capacity=64MiB", "--size", "1%", "--clients"];
    let advise = [&advise[..], &["64", "--tries", "15", "--threads", "1"]].concat();
    for arguments in [
        &["repro", "durassd"][..],
        &["crash", "--cuts", "100m", "--device", "ssd:cache=durable"],
        &["curve", trace],
        &advise,
    ] {
        let json = [arguments, &["--format", "json"]].concat();
        let (output, text) =
            interrupted(&json, rustix::process::Signal::INT, |text| !parsed(text).1.is_empty());
        let (report, rows) = parsed(&text);
        if arguments[0] == "advise" && output.status.code() == Some(0) {
            // On a fast machine it may be done before.
            continue;
        }
        assert_eq!(output.status.code(), Some(130), "{arguments:?}");
        assert_eq!(report["interrupted"], true, "{arguments:?}");
        assert!(report["completed"].is_u64(), "{arguments:?}");
        if arguments[0] == "repro" {
            assert_eq!(report["completed"], rows.len(), "rows of the only experiment");
        }
        assert!(report["advised_policy"].is_null(), "{arguments:?}");
    }
}

#[test]
fn without_a_row_it_says_so_and_the_second_signal_ends_it() {
    let trace = "zipf:pages=200k,requests=300m,writes=0.3";
    let child = start(&["replay", trace, "--policy", "lru", "--size", "10"]);
    after(1);
    signal(&child, rustix::process::Signal::INT);
    // It may notice either of the two signals.
    signal(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(output.stdout.is_empty());
}

/// It reports that it leaves nothing behind.
#[test]
fn a_demo_that_is_interrupted_takes_its_folder_away() {
    for (with, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(built::tantalum());
        command.args(["demo", "--transactions", "1000000"]).env("TMPDIR", folder.path());
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.unwrap();
        let is_empty = || folder.path().read_dir().unwrap().next().is_none();
        while is_empty() {
            std::thread::yield_now();
        }
        after(1);
        signal(&child, with);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(is_empty(), "{:?}", folder.path().read_dir().unwrap().collect::<Vec<_>>());
    }
}
