//! A volume opened again after its server was killed, with ever more in its log.
use crate::measured::{read, tantalum};
use crate::served::Served;
use crate::table::Row;
use std::path::Path;
use tantalum_testing::programs::fio;
use tantalum_testing::rig::MIB;

const LOG_MIB: u64 = 8;
const CAPACITY: &str = "1GiB";

/// Random pages are written, the server is killed, and started again.
pub fn measure(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let mib = LOG_MIB * factor;
    let volume = folder.join("VOLUME.toml");
    let create = ["create", &volume.to_string_lossy(), "--capacity", CAPACITY];
    tantalum(&[&create[..], &["--durability", "on_ack"]].concat())?;
    let server = Served::volume(folder, &volume, &[])?;
    let (uri, written) = (format!("--uri={}", server.uri), format!("--io_size={mib}m"));
    let load = ["--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=32", "--size=1g"];
    fio(&[&load[..], &[&uri, &written]].concat());
    server.kill()?;
    rustix::fs::sync();
    let server = Served::volume(folder, &volume, &[])?;
    let ours = server.start;
    server.stop()?;
    let peer = read(&folder.join("data.tantalum"), mib * MIB)?;
    let (size, peer_name) = (mib, "dd, reading as much");
    Ok(vec![Row { operation: "open", size, unit: "MiB of log", ours, peer, peer_name }])
}
