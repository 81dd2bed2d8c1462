//! A second signal ends a process whose executor does nothing any more.
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::live::signal::Endings;

const NAME: &str = "a_second_signal_ends_a_process_that_hangs";
/// Set in the process that hangs.
const HANGS: &str = "TANTALUM_TEST_HANGS";

fn hang() -> ! {
    let live = Live::new(LiveOptions::default()).unwrap();
    let _endings = Endings::watch(&live).unwrap();
    println!("ready");
    loop {
        std::thread::park();
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a process of the real world needs its time")]
fn a_second_signal_ends_a_process_that_hangs() {
    if std::env::var_os(HANGS).is_some() {
        hang();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]).env(HANGS, "1").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_child(&child);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("ready")));
    let signal = || kill_process(pid, Signal::TERM).unwrap();
    signal();
    // A terminal that closes sends two signals at once: they count as one.
    std::thread::sleep(Duration::from_millis(50));
    signal();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "two signals of one event ended it");
    let begin = Instant::now();
    signal();
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(128 + 15), "the first signal did not end it");
    assert!(begin.elapsed() < Duration::from_secs(2));
}
