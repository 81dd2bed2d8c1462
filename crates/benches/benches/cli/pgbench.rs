//! pgbench with 8 clients, PostgreSQL on ext4 over `nbdfuse` and a loop device, checkpoints every 30 seconds, on what three
//! quarters were written of before: a volume as it is served where nobody has chosen, one with `on_ack`, and `nbdkit file`. Tells
//! transactions a second, and in the worst three seconds in a row.
//!
//! `scripts/bench cli/pgbench`, as root; seconds by `SECONDS_EACH` (90), rounds by `ROUNDS` (1).
#[path = "support/peers.rs"]
mod peers;

use peers::{DEVICE_MIB, NAMES, beside, fill, mean, server, told};
use std::path::Path;
use tantalum_testing::built::disk_folder;
use tantalum_testing::postgres::{Postgres, binaries};
use tantalum_testing::programs::setting;
use tantalum_testing::rig::{Loop, MIB, Mounted, Server};
use tantalum_testing::{installed, is_root};

/// 15 MB each.
const SCALE: u32 = 40;

fn main() {
    // `cargo test` builds benches too and starts them without `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let programs = ["fio", "nbdfuse", "losetup", "nbdkit", "fusermount3"];
    if !installed(&programs) || !is_root() {
        return;
    }
    let Some(binaries) = binaries() else { return };
    for round in 1..=setting("ROUNDS", 1) {
        let means = NAMES.map(|name| {
            let place = disk_folder();
            let server = server(name, place.path());
            let rates = rates(&binaries, place.path(), &server);
            println!("round {round}: {name}: {}", told(&rates));
            mean(&rates)
        });
        beside(&format!("round {round}"), means);
    }
}

/// Transactions in each second.
fn rates(binaries: &Path, folder: &Path, server: &Server) -> Vec<f64> {
    fill(server);
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
