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

/// With its own settings: a shorter load would leave out files and tasks that need their time.
#[test]
fn the_demo_comes_to_its_end() {
    let demo = run(&["demo"]);
    let [told, error] = [&demo.stdout, &demo.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(demo.status.success(), "{told}{error}");
    for part in ["1. ", "no journal and no WAL file was written", "2. ", "3. ", "4. "] {
        assert!(told.contains(part), "{part:?} is missing: {told}");
    }
}
