//! A volume made larger, and ranges of it cloned and given up.
use crate::measured::{Spent, command, copy, fill, run, tantalum};
use crate::served::Served;
use crate::table::Row;
use std::path::Path;
use tantalum_testing::programs::fio;
use tantalum_testing::rig::MIB;

const RESIZED_MIB: u64 = 32;
const CLONED_MIB: u64 = 16;

/// A volume becomes twice as large.
pub fn resize(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let mib = RESIZED_MIB * factor;
    let volume = folder.join("VOLUME.toml");
    let volume = volume.to_string_lossy();
    tantalum(&["create", &volume, "--capacity", &format!("{mib}MiB")])?;
    let ours = tantalum(&["resize", &volume, &format!("{}MiB", 2 * mib)])?;
    let file = folder.join("file");
    fill(&file, mib * MIB)?;
    let peer = fallocate(&["--length", &(2 * mib * MIB).to_string()], &file)?;
    let (size, peer_name) = (mib, "fallocate of a file");
    Ok(vec![Row { operation: "resize", size, unit: "MiB", ours, peer, peer_name }])
}

/// The lower half of a volume, all of which was written, is cloned into the upper half, which is given up then.
pub fn clone_and_trim(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let mib = CLONED_MIB * factor;
    let half = format!("{mib}MiB");
    let volume = folder.join("VOLUME.toml");
    let volume_text = volume.to_string_lossy();
    tantalum(&["create", &volume_text, "--capacity", &format!("{}MiB", 2 * mib)])?;
    let server = Served::volume(folder, &volume, &[])?;
    let uri = format!("--uri={}", server.uri);
    let load = ["--ioengine=nbd", "--rw=write", "--bs=64k", "--iodepth=16", "--end_fsync=1"];
    fio(&[&load[..], &[&uri, &format!("--size={half}")]].concat());
    server.stop()?;
    let clone = tantalum(&["clone", &volume_text])?;
    let trim = tantalum(&["trim", &volume_text, &half, &half])?;
    let (file, other) = (folder.join("file"), folder.join("other"));
    fill(&file, mib * MIB)?;
    let copied = copy(&file, &other)?;
    let length = (mib * MIB).to_string();
    let punched = fallocate(&["--punch-hole", "--offset", "0", "--length", &length], &other)?;
    let row = |operation, ours, peer, peer_name| {
        let (size, unit) = (mib, "MiB");
        Row { operation, size, unit, ours, peer, peer_name }
    };
    Ok(vec![
        row("clone", clone, copied, "dd, fsync"),
        row("trim", trim, punched, "fallocate --punch-hole"),
    ])
}

fn fallocate(arguments: &[&str], file: &Path) -> anyhow::Result<Spent> {
    run(command("fallocate", arguments).arg(file))
}
