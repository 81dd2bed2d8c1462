//! The program, as `tantalum` calls it.
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tantalum-demo")).args(words).output().expect("it starts")
}

#[test]
fn it_speaks_as_tantalum() {
    let help = run(&["demo", "--help"]);
    let told = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.status.success() && told.contains("Usage: tantalum demo"), "{told}");
    let refused = run(&["demo", "--keep", "/proc/1"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.starts_with("tantalum: ") && told.contains("/proc/1"), "{told}");
}
