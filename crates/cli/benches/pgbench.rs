//! pgbench with 8 clients, PostgreSQL on ext4 over `nbdfuse` and a loop device, checkpoints every 30 seconds, on what three
//! quarters were written of before: volumes with `on_ack` and `on_flush`, beside `nbdkit file`. Tells transactions a second, and
//! in the worst three seconds in a row.
//!
//! `cargo bench -p tantalum-cli --bench pgbench`, as root; seconds by `SECONDS_EACH` (90), rounds by `ROUNDS` (1).
#[path = "support/database.rs"]
mod database;
#[path = "../../nbd/tests/support/programs.rs"]
mod programs;
#[path = "support/rig.rs"]
#[allow(dead_code, reason = "other benches use the rest")]
mod rig;

use database::{Postgres, binaries};
use programs::{fio, installed, setting};
use rig::{Loop, MIB, Mounted, Server, folder, tantalum};
use std::path::Path;

const DEVICE_MIB: u64 = 2048;
/// 15 MB each.
const SCALE: u32 = 40;
/// Seconds in a row of which the worst are told.
const WINDOW: usize = 3;

fn main() {
    // `cargo test` builds benches too and starts them without `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let programs = ["fio", "nbdfuse", "losetup", "nbdkit", "fusermount3"];
    if !programs.iter().all(|program| installed(program)) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: loop devices are for root");
        return;
    }
    let Some(binaries) = binaries() else {
        eprintln!("skipped: PostgreSQL's server programs are not installed");
        return;
    };
    for round in 1..=setting("ROUNDS", 1) {
        let rates = ["on_ack", "on_flush", "nbdkit file"].map(|name| {
            let place = folder();
            let server = server(name, place.path());
            let rates = rates(&binaries, place.path(), &server);
            println!("round {round}: {name}: {}", told(&rates));
            mean(&rates)
        });
        let [on_ack, on_flush, file] = rates;
        println!(
            "round {round}: beside nbdkit file (asked: 1): on_ack {:.2}, on_flush {:.2}",
            on_ack / file,
            on_flush / file
        );
    }
}

fn server(name: &str, folder: &Path) -> Server {
    let config = folder.join("VOLUME.toml").to_string_lossy().into_owned();
    let size = format!("{DEVICE_MIB}MiB");
    match name {
        "nbdkit file" => {
            let path = folder.join("file");
            let file = std::fs::File::create(&path).expect("a file");
            file.set_len(DEVICE_MIB * MIB).expect("room");
            Server::nbdkit(folder, &["file", &path.to_string_lossy()])
        }
        durability => {
            tantalum(&["create", &config, "--capacity", &size, "--durability", durability]);
            Server::start(folder, "volume.sock", &[&config])
        }
    }
}

/// Transactions in each second.
fn rates(binaries: &Path, folder: &Path, server: &Server) -> Vec<f64> {
    let (uri, size) = (format!("--uri={}", server.uri), format!("--size={}m", DEVICE_MIB * 3 / 4));
    fio(&["--ioengine=nbd", &uri, "--rw=randwrite", "--bs=64k", "--iodepth=8", &size]);
    let file = Mounted::new(folder, server);
    let device = Loop::new(&file.file, 0, DEVICE_MIB * MIB);
    let settings = ["shared_buffers=64MB", "checkpoint_timeout=30s", "max_wal_size=512MB"];
    let postgres = Postgres::start(binaries, folder, &device.device, &settings);
    let (scale, seconds) = (SCALE.to_string(), setting("SECONDS_EACH", 90).to_string());
    postgres.pgbench(&["-i", "-q", "-s", &scale]);
    // What it has just written goes to the device before anything is measured.
    postgres.checkpoint();
    let rates = postgres.pgbench_by_second(&["-c", "8", "-j", "2", "-T", &seconds, "-n"]);
    postgres.stop();
    rates
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

fn told(rates: &[f64]) -> String {
    let worst = rates.windows(WINDOW).map(mean).fold(f64::INFINITY, f64::min);
    let mean = mean(rates);
    format!(
        "{mean:.0}/s; worst {WINDOW} seconds {worst:.0}/s, {:.2} of the mean (asked: 0.5)",
        worst / mean
    )
}
