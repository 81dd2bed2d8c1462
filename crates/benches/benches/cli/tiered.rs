//! A tiered volume over the model of a disk of 7,200 turns a minute, which runs in real time behind NBD, `nbdfuse` and two
//! loop devices: one is the home, the other one the journal beside it, so that both are on one disk.
//!
//! - `first`: 4 KiB random writes at depth 32, durable when acknowledged, until half of what may be dirty is: beside a flash
//!   volume, in turns.
//! - `sustained`: the same without an end, on four times the flash, 80 % of them to a fifth of it; beside the bare disk with and without its
//!   volatile cache, and `nbdkit`'s cache filter over it.
//! - `sqlite`: transactions on a tiered volume and on a flash volume, in turns.
//! - `pgbench`: PostgreSQL on ext4, beside the bare disk, where the database is twice the flash.
//!
//! `scripts/bench cli/tiered [-- PART...]`, as root; seconds by `SECONDS_EACH` (60), rounds by `ROUNDS` (3).
#[path = "tiered/disk.rs"]
mod disk;
#[path = "tiered/loads.rs"]
mod loads;
#[path = "tiered/postgres.rs"]
mod postgres;

use tantalum_testing::{installed, is_root};

fn main() {
    // `cargo test` builds benches too and starts them without `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let programs = ["fio", "nbdfuse", "losetup", "nbdkit", "fusermount3"];
    if !installed(&programs) || !is_root() {
        return;
    }
    let parts: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let all: [(&str, fn()); 4] = [
        ("first", loads::first),
        ("sustained", loads::sustained),
        ("sqlite", loads::sqlite),
        ("pgbench", postgres::pgbench),
    ];
    for (name, part) in all {
        if parts.is_empty() || parts.iter().any(|wanted| wanted == name) {
            println!("-- {name}");
            part();
        }
    }
}
