//! The program, called in the way in which `tantalum` calls it.
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tantalum-lab")).args(words).output().expect("it starts")
}

/// Its usage and its errors begin with `tantalum`.
#[test]
fn it_speaks_as_tantalum() {
    let help = run(&["replay", "--help"]);
    let told = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.status.success() && told.contains("Usage: tantalum replay "), "{told}");
    let refused = run(&["curve", "/nowhere/trace.csv"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.starts_with("tantalum: ") && told.contains("/nowhere/trace.csv"), "{told}");
}
