//! 4 KiB random writes over a Unix socket at depth 32: a whole volume in memory, served as
//! `tantalum serve` does, and `nbdkit memory`, by the same `fio` command, in turns.
//!
//! `scripts/bench volume/nbd_volume`; rounds and seconds by `FIO_ROUNDS` (3)
//! and `FIO_SECONDS` (3).
mod support;

use std::rc::Rc;
use support::config;
use tantalum_nbd::{Server, ServerOptions};
use tantalum_runtime::live::net::Address;
use tantalum_runtime::live::remote::channel;
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_testing::built::disk_folder as folder;
use tantalum_testing::installed;
use tantalum_testing::programs::{Nbdkit, fio_nbd, median, setting};
use tantalum_volume::{OpenOptions, VolumeConfig, open_volume};

/// Bytes that fio writes to.
const BYTES: u64 = 256 << 20;

fn main() {
    if !support::wanted() || !installed(&["fio", "nbdkit"]) {
        return;
    }
    let folder = folder();
    let (rounds, seconds) = (setting("FIO_ROUNDS", 3), setting("FIO_SECONDS", 3));
    for (name, capacity_bytes) in [("a quarter in use", BYTES * 4), ("all in use", BYTES)] {
        let config = config(folder.path(), "type = \"memory\"", capacity_bytes, "");
        let mut ratios = Vec::new();
        for round in 1..=rounds {
            let nbdkit = Nbdkit::start(BYTES);
            let theirs = fio_nbd(&nbdkit.uri, "randwrite", BYTES, seconds).per_second("write");
            drop(nbdkit);
            let (ours, write_amplification) =
                serve(&config, |uri| fio_nbd(uri, "randwrite", BYTES, seconds).per_second("write"));
            println!(
                "{name}, round {round}: {ours:.0}/s (write amplification {write_amplification:.2}), \
                 nbdkit memory {theirs:.0}/s, ratio {:.2}",
                ours / theirs
            );
            ratios.push(ours / theirs);
        }
        println!("{name}: median ratio {:.2}", median(ratios));
    }
}

/// Serves a new volume for as long as `work` takes; its write amplification.
fn serve<T>(config: &VolumeConfig, work: impl FnOnce(&str) -> T) -> (T, f64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("nbd.sock");
    let (stop, mut stopped) = channel::<()>("the end of the bench", 1);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (config, address) = (config.clone(), Address::Unix(socket.clone()));
    let thread = spawn_thread("volume", LiveOptions::default(), move |live| async move {
        let (volume, _) =
            open_volume(&live, &config, OpenOptions::default()).await.expect("the volume opens");
        let options = ServerOptions::default();
        let listener = options.listen(&live, &address).expect("a socket");
        ready.send(()).expect("the bench waits for it");
        let server = Server::new(Rc::clone(&volume), options).expect("sound options");
        let stop = async move { assert!(stopped.recv().await.is_none()) };
        server.serve(&live, listener, stop).await.expect("the server stops");
        volume.device().statistics().write_amplification()
    });
    is_ready.recv().expect("the server starts");
    let result = work(&format!("nbd+unix:///?socket={}", socket.display()));
    drop(stop);
    let write_amplification = thread.and_then(|thread| thread.join()).expect("an executor");
    (result, write_amplification)
}
