//! The program, as `tantalum` calls it.
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tantalum-crash")).args(words).output().expect("it starts")
}

#[test]
fn it_speaks_as_tantalum() {
    let help = run(&["crash", "--help"]);
    let told = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.status.success() && told.contains("Usage: tantalum crash "), "{told}");
    let refused = run(&["crash", "--device", "floppy"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.starts_with("tantalum: ") && told.contains("floppy"), "{told}");
}
