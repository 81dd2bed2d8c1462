//! Clients of NBD, each with one request at a time: reads, and writes with a flush after each.
use crate::measured::{Spent, fill, tantalum};
use crate::served::Served;
use crate::table::Row;
use std::path::Path;
use tantalum_testing::programs::fio;
use tantalum_testing::rig::MIB;

const DEVICE_MIB: u64 = 256;
const READS_EACH: u64 = 4_000;
const WRITES_EACH: u64 = 200;

/// `reads` and `writes`, by the number of clients.
pub fn measure(folder: &Path, clients: u64) -> anyhow::Result<Vec<Row>> {
    let volume = folder.join("VOLUME.toml");
    let capacity = format!("{DEVICE_MIB}MiB");
    tantalum(&["create", &volume.to_string_lossy(), "--capacity", &capacity])?;
    let most = (clients + 1).to_string();
    let ours = || Served::volume(folder, &volume, &["--connections-max", &most]);
    let server = ours()?;
    let (uri, size) = (format!("--uri={}", server.uri), format!("--size={DEVICE_MIB}m"));
    let load = ["--ioengine=nbd", "--rw=write", "--bs=64k", "--iodepth=16", "--end_fsync=1"];
    fio(&[&load[..], &[&uri, &size]].concat());
    server.stop()?;
    let file = folder.join("file");
    fill(&file, DEVICE_MIB * MIB)?;
    let peer = || Served::nbdkit(folder, &file);
    let reads = |server| measured(server, "read", clients, READS_EACH);
    let writes = |server| measured(server, "write", clients, WRITES_EACH);
    let row = |operation, ours, peer| {
        let (size, unit, peer_name) = (clients, "clients", "nbdkit file");
        Row { operation, size, unit, ours, peer, peer_name }
    };
    // A server each, as its memory is told from its start on.
    Ok(vec![
        row("reads", reads(ours()?)?, reads(peer()?)?),
        row("writes", writes(ours()?)?, writes(peer()?)?),
    ])
}

/// Each of so many clients does `count` requests in this `direction`.
fn measured(server: Served, direction: &str, clients: u64, count: u64) -> anyhow::Result<Spent> {
    rustix::fs::sync();
    let job = fio(&[
        "--ioengine=nbd",
        &format!("--uri={}", server.uri),
        &format!("--rw=rand{direction}"),
        "--bs=4k",
        "--iodepth=1",
        "--fsync=1",
        "--thread",
        "--group_reporting",
        &format!("--numjobs={clients}"),
        &format!("--size={DEVICE_MIB}m"),
        &format!("--io_size={}k", count * 4),
    ]);
    let mut spent = server.spent(job.seconds(direction))?;
    spent.read_bytes -= server.start.read_bytes;
    spent.written_bytes -= server.start.written_bytes;
    spent.processor_seconds -= server.start.processor_seconds;
    server.stop()?;
    Ok(spent)
}
