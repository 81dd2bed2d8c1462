//! 4 KiB random writes over a Unix socket at queue depth 32: this server and `nbdkit memory`,
//! the same `fio` command, one after the other, several rounds.
//!
//! `scripts/bench nbd/fio_vs_nbdkit`; rounds and seconds by
//! `FIO_ROUNDS` (3) and `FIO_SECONDS` (3).
#[path = "../../../nbd/tests/support/mod.rs"]
mod support;

use support::{installed, serve};
use tantalum_base::Durability;
use tantalum_nbd::ServerOptions;
use tantalum_testing::programs::{Nbdkit, fio_nbd, median, setting};

const BYTES: u64 = 256 << 20;

fn main() {
    // `cargo test` builds benches too and runs them with `--test` at most: nothing to do then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if !installed(&["fio", "nbdkit"]) {
        return;
    }
    let (rounds, seconds) = (setting("FIO_ROUNDS", 3), setting("FIO_SECONDS", 3));
    for (rw, direction) in [("randwrite", "write"), ("randread", "read")] {
        let mut ratios = Vec::new();
        for round in 1..=rounds {
            let nbdkit = Nbdkit::start(BYTES);
            let theirs = fio_nbd(&nbdkit.uri, rw, BYTES, seconds).per_second(direction);
            drop(nbdkit);
            let serving = serve(BYTES, Durability::OnAck, ServerOptions::default());
            let ours = fio_nbd(&serving.uri(), rw, BYTES, seconds).per_second(direction);
            serving.finish();
            println!(
                "{rw} 4k depth 32, round {round}: tantalum {ours:.0}/s, nbdkit memory {theirs:.0}/s, \
                 ratio {:.2}",
                ours / theirs
            );
            ratios.push(ours / theirs);
        }
        println!("{rw} 4k depth 32: median ratio {:.2}", median(ratios));
    }
}
