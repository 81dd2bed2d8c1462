//! A flash cache over a home: attached, written to, and ended.
use crate::measured::{Spent, fill, read, tantalum};
use crate::served::Served;
use crate::table::Row;
use std::path::Path;
use tantalum_testing::programs::fio;
use tantalum_testing::rig::MIB;

const BASE_MIB: u64 = 16;
/// The least that there may be.
const FLASH_MIB: u64 = 64;

/// The cache has one size and nothing is written to it, so the size of the home alone is measured.
pub fn attach_and_detach(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let mib = BASE_MIB * factor;
    let home = folder.join("home");
    fill(&home, mib * MIB)?;
    let attach = attached(folder, FLASH_MIB)?;
    let detach = tantalum(&["detach", &folder.join("VOLUME.toml").to_string_lossy()])?;
    let peer = read(&home, mib * MIB)?;
    let row = |operation, ours| {
        let (size, unit, peer_name) = (mib, "MiB of home", "dd, reading the home");
        Row { operation, size, unit, ours, peer, peer_name }
    };
    Ok(vec![row("attach", attach), row("detach", detach)])
}

/// Pages are written at random, half as many as the home has. The cache has room for twice of them. Its end
/// brings the rest of them home.
pub fn destage(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let mib = BASE_MIB * factor;
    let home = folder.join("home");
    fill(&home, mib * MIB)?;
    attached(folder, FLASH_MIB + mib)?;
    let volume = folder.join("VOLUME.toml");
    let server = Served::volume(folder, &volume, &[])?;
    writes(mib, &["--ioengine=nbd", &format!("--uri={}", server.uri)]);
    server.stop()?;
    let ours = tantalum(&["detach", &volume.to_string_lossy()])?;
    rustix::fs::sync();
    let file = format!("--filename={}", home.display());
    let seconds = writes(mib, &["--ioengine=io_uring", "--direct=1", &file]);
    let peer = Spent { seconds, ..Spent::default() };
    let (size, peer_name) = (mib, "fio, the same writes to the home");
    Ok(vec![Row { operation: "destage", size, unit: "MiB of home", ours, peer, peer_name }])
}

/// Puts a cache of so much flash over the home in `folder`.
fn attached(folder: &Path, flash_mib: u64) -> anyhow::Result<Spent> {
    let path = |name| folder.join(name).to_string_lossy().into_owned();
    let (volume, home, flash) = (path("VOLUME.toml"), path("home"), path("flash"));
    let size = format!("{flash_mib}MiB");
    tantalum(&["attach", &volume, "--home", &home, "--flash", &flash, "--flash-size", &size])
}

/// Writes pages at random to half of a device of so many MiB; the seconds that this took.
fn writes(mib: u64, to: &[&str]) -> f64 {
    let (size, written) = (format!("--size={mib}m"), format!("--io_size={}m", mib / 2));
    let load = ["--rw=randwrite", "--bs=4k", "--iodepth=32", "--end_fsync=1", &size, &written];
    fio(&[to, &load[..]].concat()).seconds("write")
}
