//! PostgreSQL on ext4.
use crate::disk::Disk;
use std::path::Path;
use tantalum_testing::built::disk_folder;
use tantalum_testing::postgres::{Postgres, binaries};
use tantalum_testing::programs::setting;
use tantalum_testing::rig::{Loop, MIB, Mounted, Server};

const HOME_MIB: u64 = 2048;
const FLASH_MIB: u64 = 320;
/// 15 MB each: twice the flash.
const SCALE: u32 = 43;

/// pgbench on a tiered volume, and on the disk alone with its volatile cache and file system barriers.
pub fn pgbench() {
    let Some(binaries) = binaries() else { return };
    let bare = {
        let place = disk_folder();
        let disk = Disk::new(place.path(), HOME_MIB * MIB, 512 * MIB);
        transactions_a_second(&binaries, place.path(), &disk.home.device)
    };
    println!("bare disk: {bare:.0}/s");
    let place = disk_folder();
    let disk = Disk::new(place.path(), HOME_MIB * MIB, 512 * MIB);
    let config = disk.cache(place.path(), FLASH_MIB, HOME_MIB);
    let server = Server::start(place.path(), "volume.sock", &[&config.to_string_lossy()]);
    let file = Mounted::new(place.path(), &server);
    let device = Loop::new(&file.file, 0, HOME_MIB * MIB);
    let tiered = transactions_a_second(&binaries, place.path(), &device.device);
    println!("tiered: {tiered:.0}/s, {:.1}x the bare disk (asked: 3)", tiered / bare);
}

fn transactions_a_second(binaries: &Path, folder: &Path, device: &str) -> f64 {
    let settings = ["shared_buffers=64MB", "checkpoint_timeout=60s", "max_wal_size=512MB"];
    let postgres = Postgres::start(binaries, folder, device, &settings);
    let (scale, seconds) = (SCALE.to_string(), setting("SECONDS_EACH", 60).to_string());
    postgres.pgbench(&["-i", "-q", "-s", &scale]);
    // What it has just written goes to the disk before anything is measured.
    postgres.checkpoint();
    let told = postgres.pgbench(&["-c", "8", "-j", "2", "-T", &seconds, "-n"]);
    postgres.stop();
    let rate =
        told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.unwrap_or_else(|| panic!("pgbench said {told}"))
}
