//! 4 KiB random writes over a Unix socket at queue depth 32: this server and `nbdkit memory`,
//! the same `fio` command, one after the other, several rounds.
//!
//! `cargo bench -p tantalum-nbd --bench fio_vs_nbdkit`; rounds and seconds by
//! `FIO_ROUNDS` (3) and `FIO_SECONDS` (3).
#[path = "../tests/support/mod.rs"]
mod support;

use std::process::{Child, Command};
use support::{installed, run, serve};
use tantalum_base::Durability;
use tantalum_nbd::ServerOptions;

const BYTES: u64 = 256 << 20;

fn main() {
    // `cargo test` builds benches too and runs them with `--test` at most: nothing to do then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if !["fio", "nbdkit"].iter().all(|program| installed(program)) {
        return;
    }
    let number = |name: &str, default: u32| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (rounds, seconds) = (number("FIO_ROUNDS", 3), number("FIO_SECONDS", 3));
    for rw in ["randwrite", "randread"] {
        let mut ratios = Vec::new();
        for round in 1..=rounds {
            let theirs = nbdkit(rw, seconds);
            let ours = tantalum(rw, seconds);
            println!(
                "{rw} 4k depth 32, round {round}: tantalum {ours:.0}/s, nbdkit memory {theirs:.0}/s, \
                 ratio {:.2}",
                ours / theirs
            );
            ratios.push(ours / theirs);
        }
        ratios.sort_by(f64::total_cmp);
        println!("{rw} 4k depth 32: median ratio {:.2}", ratios[ratios.len() / 2]);
    }
}

fn tantalum(rw: &str, seconds: u32) -> f64 {
    let serving = serve(BYTES, Durability::OnAck, ServerOptions::default());
    let rate = fio(&serving.uri(), rw, seconds);
    serving.finish();
    rate
}

fn nbdkit(rw: &str, seconds: u32) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("nbdkit.sock");
    let mut child = Ended(
        Command::new("nbdkit")
            .args(["-f", "-U", &socket.to_string_lossy(), "memory", &BYTES.to_string()])
            .spawn()
            .expect("nbdkit is installed"),
    );
    while !socket.exists() {
        assert!(child.0.try_wait().is_ok_and(|ended| ended.is_none()), "nbdkit ended early");
        std::thread::yield_now();
    }
    fio(&format!("nbd+unix:///?socket={}", socket.display()), rw, seconds)
}

/// Ends its process when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs fio; returns operations a second.
fn fio(uri: &str, rw: &str, seconds: u32) -> f64 {
    let output = tempfile::NamedTempFile::new().expect("a temporary file");
    let path = output.path().to_string_lossy().into_owned();
    run(
        "fio",
        &[
            "--name=bench",
            "--ioengine=nbd",
            &format!("--uri={uri}"),
            &format!("--rw={rw}"),
            "--bs=4k",
            "--iodepth=32",
            &format!("--size={BYTES}"),
            "--time_based",
            &format!("--runtime={seconds}"),
            "--ramp_time=1",
            "--output-format=json",
            &format!("--output={path}"),
        ],
    );
    let text = std::fs::read_to_string(&path).expect("fio's output");
    // fio may print notes in front of the JSON.
    let json = &text[text.find('{').expect("JSON in fio's output")..];
    let result: serde_json::Value = serde_json::from_str(json).expect("fio's JSON");
    let direction = if rw == "randread" { "read" } else { "write" };
    result["jobs"][0][direction]["iops"].as_f64().expect("a rate in fio's JSON")
}
