//! `fio` over NBD, 4 KiB random writes on what three quarters were written of before: a volume as it is served where nobody has
//! chosen, one with `on_ack`, and `nbdkit file`. One writer that flushes every 16 writes, as a database's log does; and depth
//! 32 without a flush, which only `on_ack` makes durable. Tells writes a second, and in the worst three seconds in a row.
//!
//! `scripts/bench cli/fio`; seconds by `SECONDS_EACH` (20), rounds by `ROUNDS` (1).
#[path = "support/peers.rs"]
mod peers;

use peers::{DEVICE_MIB, NAMES, beside, fill, mean, server, told};
use std::path::Path;
use tantalum_testing::built::disk_folder;
use tantalum_testing::installed;
use tantalum_testing::programs::{fio, setting};
use tantalum_testing::rig::Server;

/// A load's name, and its depth and flushes.
const LOADS: [(&str, [&str; 2]); 2] = [
    ("depth 1, a flush every 16", ["--iodepth=1", "--fsync=16"]),
    ("depth 32, no flush", ["--iodepth=32", "--fsync=0"]),
];

fn main() {
    // `cargo test` builds benches too and starts them without `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if !installed(&["fio", "nbdkit"]) {
        return;
    }
    for round in 1..=setting("ROUNDS", 1) {
        let places = NAMES.map(|_| disk_folder());
        let servers = [0, 1, 2].map(|at: usize| server(NAMES[at], places[at].path()));
        servers.iter().for_each(fill);
        for (load, settings) in LOADS {
            let means = [0, 1, 2].map(|at: usize| {
                let rates = rates(&servers[at], places[at].path(), &settings);
                println!("round {round}: {load}: {}: {}", NAMES[at], told(&rates));
                mean(&rates)
            });
            beside(&format!("round {round}: {load}"), means);
        }
    }
}

/// Writes in each second.
fn rates(server: &Server, folder: &Path, settings: &[&str]) -> Vec<f64> {
    let (uri, size) = (format!("--uri={}", server.uri), format!("--size={}m", DEVICE_MIB * 3 / 4));
    let log = folder.join("rates").to_string_lossy().into_owned();
    let seconds = format!("--runtime={}", setting("SECONDS_EACH", 20));
    let log_to = format!("--write_iops_log={log}");
    let common = ["--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k", &size, "--time_based"];
    let logged = [&seconds, &log_to, "--log_avg_msec=1000"];
    fio(&[&common[..], &logged, settings].concat());
    let rates = std::fs::read_to_string(format!("{log}_iops.1.log")).expect("fio's log");
    // Each line: milliseconds, rate, direction, and more.
    rates.lines().filter_map(|line| line.split(", ").nth(1)?.trim().parse().ok()).collect()
}
