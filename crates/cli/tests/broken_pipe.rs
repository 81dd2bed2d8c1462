//! The reader of the standard output goes away, such as `head`: the command ends quietly.
mod support;
use std::process::{Command, Stdio};
use support::{good, refused, sample, text};
use tantalum_testing::built;

/// Runs `tantalum` without a reader of its output; its folder for temporary files must be empty afterwards.
fn unread(args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(built::tantalum())
        .args(args)
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    assert!(output.status.success(), "{args:?}: {:?}", output.status);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{args:?}: {left:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure_of_any_command() {
    let trace = sample("tpcc-pg-logical-6000.csv.zst");
    for args in [
        &["demo", "--transactions", "10", "--rounds", "1"][..],
        &["--help"],
        &["--version"],
        &["completions", "bash"],
        &["trace", "stat", &trace],
        &["trace", "generate", "--list"],
        &["curve", &trace],
        &["replay", &trace, "--policy", "lru", "--size", "10"],
        &["advise", &trace, "--flash", "ssd-a"],
    ] {
        unread(args);
    }
}

#[test]
fn a_reader_that_has_enough_of_a_trace_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    good(&["trace", "generate", "scan:pages=300k,requests=300k", text(&trace)]);
    unread(&["trace", "generate", "scan:requests=300k", "-"]);
    unread(&["trace", "convert", text(&trace), "-"]);
    // A file that cannot hold all of it is an error.
    if std::path::Path::new("/dev/full").exists() {
        let told = refused(&["trace", "generate", "scan:requests=300k", "/dev/full"]);
        assert!(told.contains("/dev/full"), "{told}");
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut list = Command::new(built::tantalum());
        let run = list.args(["trace", "generate", "--list"]).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(told.contains("writing the standard output: No space left"), "{told}");
        assert_eq!(run.status.code(), Some(2));
    }
}
