//! A volume as `serve` has it where nobody has chosen, one with `on_ack`, and `nbdkit file`; and how steady they are.
use std::path::Path;
use tantalum_testing::programs::fio;
use tantalum_testing::rig::{MIB, Server, tantalum};

/// What is measured, ours before the peer.
pub const NAMES: [&str; 3] = ["default", "on_ack", "nbdkit file"];
pub const DEVICE_MIB: u64 = 2048;

/// Seconds in a row of which the worst are told.
const WINDOW: usize = 3;

/// Serves a new device in `folder`.
pub fn server(name: &str, folder: &Path) -> Server {
    let config = folder.join("VOLUME.toml").to_string_lossy().into_owned();
    let size = format!("{DEVICE_MIB}MiB");
    match name {
        "nbdkit file" => {
            let path = folder.join("file");
            let file = std::fs::File::create(&path).expect("a file");
            file.set_len(DEVICE_MIB * MIB).expect("room");
            Server::nbdkit(folder, &["file", &path.to_string_lossy()])
        }
        name => {
            let durability: &[&str] = if name == "default" { &[] } else { &["--durability", name] };
            tantalum(&[&["create", &config, "--capacity", &size], durability].concat());
            Server::start(folder, "volume.sock", &[&config])
        }
    }
}

/// Writes three quarters of the device, in random order, and flushes: nothing of it is left to be done.
pub fn fill(server: &Server) {
    let (uri, size) = (format!("--uri={}", server.uri), format!("--size={}m", DEVICE_MIB * 3 / 4));
    let load = ["--rw=randwrite", "--bs=64k", "--iodepth=8", "--end_fsync=1"];
    fio(&[&["--ioengine=nbd", &uri, &size], &load[..]].concat());
}

pub fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// The mean of rates of one second each, and the worst seconds in a row.
pub fn told(rates: &[f64]) -> String {
    let worst = rates.windows(WINDOW).map(mean).fold(f64::INFINITY, f64::min);
    let mean = mean(rates);
    format!(
        "{mean:.0}/s; worst {WINDOW} seconds {worst:.0}/s, {:.2} of the mean (asked: 0.5)",
        worst / mean
    )
}

/// One round: the mean rates beside the peer's.
pub fn beside(what: &str, means: [f64; 3]) {
    let [default, on_ack, file] = means;
    println!(
        "{what}: beside nbdkit file (asked: 1): default {:.2}, on_ack {:.2}",
        default / file,
        on_ack / file
    );
}
