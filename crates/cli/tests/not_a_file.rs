//! Pipes, sockets, devices and folders in place of files: they are refused at once, and nothing is read from them or waited for.
mod support;

use rustix::fs::{CWD, Mode, mkfifoat};
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::volume::edit;
use support::{good, text};
use tantalum_testing::built;

/// Seconds within which each command ends.
const PATIENCE: &str = "20";

/// A pipe that nobody has open.
fn pipe(folder: &Path) -> PathBuf {
    let pipe = folder.join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    pipe
}

/// Runs `tantalum`, which must refuse by one line.
fn refused(args: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.args([PATIENCE, built::tantalum()]).args(args).stdin(Stdio::null());
    let run = command.output().unwrap();
    let told = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{args:?}: {told}");
    assert_eq!(told.lines().count(), 1, "{args:?}: {told}");
    told
}

#[test]
fn a_configuration_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for (path, kind) in [
        (pipe(folder.path()), "a pipe"),
        (socket, "a socket"),
        (PathBuf::from("/dev/zero"), "a device without blocks"),
    ] {
        for command in ["stat", "check", "detach"] {
            let told = refused(&[command, text(&path)]);
            let words = format!("{}, {kind}, is not a configuration", path.display());
            assert!(told.contains(&words), "{command}: {told}");
        }
        let told = refused(&["serve", text(&path), "--socket"]);
        assert!(told.contains("is not a configuration"), "{told}");
    }
}

#[test]
fn the_stores_of_a_volume_are_files_or_block_devices() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("VOLUME.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let data = folder.path().join("data.tantalum");
    std::fs::remove_file(&data).unwrap();
    let pipe = pipe(folder.path());
    std::fs::rename(&pipe, &data).unwrap();
    for args in [&["stat"][..], &["check"], &["check", "--accept-loss"], &["serve", "--socket"]] {
        let told = refused(&[&[args[0], text(&config)], &args[1..]].concat());
        let words = "data.tantalum is a pipe: a file or a block device is needed";
        assert!(told.contains(words), "{args:?}: {told}");
    }
    edit(&config, "path = \"data.tantalum\"", "path = \"/dev/zero\"");
    let told = refused(&["stat", text(&config)]);
    assert!(told.contains("/dev/zero is a device without blocks: a file"), "{told}");

    let home = folder.path().join("home");
    std::fs::File::create(&home).unwrap().set_len(8 << 20).unwrap();
    let tiered = folder.path().join("tiered.toml");
    let flash = folder.path().join("flash");
    let attach = |home: &Path, flash: &Path, journal: &Path| {
        let attach = ["attach", text(&tiered), "--home", text(home), "--flash", text(flash)];
        refused(&[&attach[..], &["--flash-size", "64MiB", "--journal", text(journal)]].concat())
    };
    let journal = folder.path().join("journal");
    let [as_home, as_flash, as_journal] = [
        attach(&data, &flash, &journal),
        attach(&home, &data, &journal),
        attach(&home, &flash, &data),
    ];
    for told in [as_home, as_flash, as_journal] {
        assert!(told.contains("data.tantalum is a"), "{told}");
    }
    assert!(!tiered.exists() && !flash.exists() && !journal.exists());
}

#[test]
fn a_database_to_import_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = pipe(folder.path());
    let config = folder.path().join("VOLUME.toml");
    let told = refused(&["sqlite", "import", text(&pipe), text(&config)]);
    assert!(told.contains("is a pipe: name the database's file"), "{told}");
    assert!(!config.exists());
}

#[test]
fn a_trace_may_come_through_a_pipe_that_somebody_writes() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = pipe(folder.path());
    let stat = ["trace", "stat", text(&pipe)];
    let told = refused(&stat);
    assert!(told.contains("is a pipe, and no program writes to it"), "{told}");
    let told = refused(&["trace", "stat", "/dev/zero"]);
    assert!(told.contains("/dev/zero: it is a device without blocks"), "{told}");
    let into = folder.path().join("into.csv");
    std::fs::rename(&pipe, &into).unwrap();
    let trace = folder.path().join("trace.csv");
    good(&["trace", "generate", "zipf:pages=64,requests=2000", text(&trace)]);
    let told = refused(&["trace", "convert", text(&trace), text(&into)]);
    assert!(told.contains("is a pipe, and no program reads from it"), "{told}");

    // Through a named pipe, a pipe of the shell, and the standard input by both of its names.
    let expected = good(&["trace", "stat", text(&trace), "--format", "csv"]);
    let content = std::fs::read(&trace).unwrap();
    for source in [text(&into), "/dev/stdin", "-"] {
        let command = ["trace", "stat", source, "--format", "csv"];
        let mut stat = Command::new("timeout");
        stat.args([PATIENCE, built::tantalum()]).args(command).stdout(Stdio::piped());
        let out = if source == text(&into) {
            std::thread::scope(|scope| {
                // It waits until the program reads; before that the program is refused.
                let writer = scope.spawn(|| std::fs::write(&into, &content).unwrap());
                let refused = |out: &Output| {
                    String::from_utf8_lossy(&out.stderr).contains("no program writes")
                };
                let out = std::iter::repeat_with(|| stat.output().unwrap());
                let out = out.take(1000).find(|out| !refused(out)).expect("it is read");
                writer.join().unwrap();
                out
            })
        } else {
            let mut child = stat.stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(&content).unwrap();
            child.wait_with_output().unwrap()
        };
        let out = String::from_utf8(out.stdout).unwrap();
        // The first column has the name.
        let figures = |text: &str| Some(text.lines().nth(1)?.split_once(',')?.1.to_owned());
        assert_eq!(figures(&out), figures(&expected), "{source}: {out}");
    }
}
