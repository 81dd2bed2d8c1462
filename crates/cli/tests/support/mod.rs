//! Runs the built `tantalum`.
#![allow(dead_code, reason = "each test uses a part of it")]
pub mod browser;
pub mod exposition;
pub mod kill_history;
pub mod kill_load;
pub mod nbd;
pub mod server;
pub mod tiered;
pub mod volume;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tantalum_testing::{built, skip};

/// The outcome of a run.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `tantalum` with `args`, without a terminal.
pub fn tantalum(args: &[&str]) -> Run {
    let output = Command::new(built::tantalum())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("tantalum starts");
    Run {
        code: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs `tantalum`, which must succeed, and returns its standard output.
pub fn good(args: &[&str]) -> String {
    let run = tantalum(args);
    assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    run.out
}

/// Runs `tantalum`, which must refuse with status 2 and one line; returns that line.
pub fn refused(args: &[&str]) -> String {
    let run = tantalum(args);
    assert_eq!(run.code, 2, "{args:?}: {}{}", run.out, run.err);
    assert_eq!(run.out, "", "{args:?}: nothing is printed where nothing was run");
    assert!(run.err.starts_with("tantalum: "), "{args:?}: {}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{args:?}: {}", run.err);
    run.err
}

/// Runs `body` on a file system of this size (`size` in the form of `mount`); `None` if none can be mounted, which
/// requires root.
pub fn on_small_disk<T>(size: &str, body: impl FnOnce(&Path) -> T) -> Option<T> {
    let folder = tempfile::tempdir().expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", text(folder.path())])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        skip("tmpfs");
        return None;
    }
    let ran = body(folder.path());
    let unmounted = Command::new("umount").arg(folder.path()).status().expect("umount starts");
    assert!(unmounted.success());
    Some(ran)
}

/// The output of `tantalum stat` for the volume of `config`.
pub fn stat_row(config: &Path) -> serde_json::Value {
    let stat = good(&["stat", text(config), "--format", "json"]);
    let stat: serde_json::Value = serde_json::from_str(&stat).expect("JSON");
    stat["rows"][0].clone()
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A sample trace of the repository.
pub fn sample(name: &str) -> String {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../trace/samples");
    samples.join(name).to_str().expect("UTF-8").to_owned()
}
