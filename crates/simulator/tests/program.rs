//! The program, as `tantalum` calls it.
use std::process::{Command, Output};
use tantalum_simulator::{Replay, find};

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

#[test]
fn what_a_device_does_not_offer_is_named() {
    for (device, command, says) in [
        ("ssd:cache=through", "w0+24", "over the limit"),
        ("block-map", "c0", "no transactions"),
        ("ssd:cache=volatile", "s1<0", "does not remap"),
        ("ssd:cache=through", "s1<0.1<2", "destination of two shares"),
        ("ssd:cache=through", "s3<3", "both source and destination"),
        ("txcache", "c0.1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.0", ""),
    ] {
        let text = format!("{device}; nand; pages=24; seed=1; w1 / r0 {command} -> dark");
        let replay = Replay::parse(&text).unwrap();
        let limits = find(&replay.device, &replay.media).unwrap().limits(24).unwrap();
        match replay.life.check(&limits) {
            Ok(()) => assert_eq!(says, "", "{text}"),
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains(says) && error.contains(command), "{error}");
            }
        }
    }
}
