//! Traces that do not fit into memory.
use std::process::Command;

/// Without a limit of its own, the program would be ended by a failed allocation, or by the system.
#[test]
fn a_trace_that_exceeds_the_memory_is_refused() {
    let program = env!("CARGO_BIN_EXE_tantalum-lab");
    for rest in ["--policy lru --size 10", "--device durassd"] {
        let words =
            format!("ulimit -v 262144; exec {program} replay scan:pages=9,requests=500m {rest}");
        let ran = Command::new("sh").args(["-c", &words]).output().expect("a shell");
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{told}");
        assert!(told.contains("does not fit into half of the 256.0 MiB of memory"), "{told}");
    }
}

/// A trace whose length is known is refused before anything of it is made, which would take hours.
#[test]
fn a_generated_trace_that_exceeds_the_memory_is_refused_at_once() {
    let trace = "zipf:pages=1t,requests=1t";
    for words in [
        &["replay", trace, "--policy", "lru", "--size", "10"][..],
        &["replay", trace, "--device", "durassd"],
        &["advise", trace, "--flash", "durassd"],
    ] {
        let program = env!("CARGO_BIN_EXE_tantalum-lab");
        let ran = Command::new(program).args(words).output().expect("it starts");
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{told}");
        assert!(told.contains("1,099,511,627,776 requests take 8.0 TiB"), "{told}");
    }
}
