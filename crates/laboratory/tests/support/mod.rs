//! The program, run to its end.
#![allow(dead_code, reason = "each test uses some of it")]
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run of the program.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// The standard output.
    pub out: String,
    /// The standard error.
    pub err: String,
}

/// Runs the program with `words`.
pub fn lab(words: &[&str]) -> Ran {
    let done = command(words).output().expect("it starts");
    ran(&done)
}

/// The program with `words`.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tantalum-lab"));
    command.args(words);
    command
}

/// The outcome of `done`.
pub fn ran(done: &Output) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = done.status.code().expect("it exits");
    Ran { code, out: text(&done.stdout), err: text(&done.stderr) }
}

/// The standard output of a run that succeeds.
#[track_caller]
pub fn good(words: &[&str]) -> String {
    let ran = lab(words);
    assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
    ran.out
}

/// The only line of the standard error of a run that is refused.
#[track_caller]
pub fn refused(words: &[&str]) -> String {
    let ran = lab(words);
    assert_eq!(ran.code, 2, "{words:?}: {}{}", ran.out, ran.err);
    ran.err
}

/// A file of `folder` with `content`.
pub fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a file");
    path
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The names in `folder`, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
