//! From PostgreSQL on ext4 to the report, in three commands: served and recorded, replayed, displayed. Skipped with a
//! message if the user is not root, or a program is missing.
mod support;

use support::good;
use tantalum_testing::built::disk_folder;
use tantalum_testing::postgres::{Postgres, binaries};
use tantalum_testing::rig::{Loop, MIB, Mounted, Server};
use tantalum_testing::{can_loop, installed, skip};

const CAPACITY_MIB: u64 = 256;

#[test]
fn from_postgres_on_ext4_to_the_report() {
    let programs = ["nbdfuse", "losetup", "mkfs.ext4", "mount", "fusermount3", "runuser"];
    let Some(binaries) = binaries() else { return };
    if !installed(&programs) || !can_loop() {
        return;
    }
    if !std::path::Path::new("/dev/fuse").exists() {
        return skip("FUSE");
    }
    let folder = disk_folder();
    let [config, trace, report] = ["v.toml", "load.csv.zst", "curve.html"]
        .map(|name| folder.path().join(name).to_string_lossy().into_owned());
    good(&["create", &config, "--capacity", "256MiB", "--durability", "on_flush"]);
    {
        let server = Server::start(folder.path(), "v.sock", &[&config, "--record", &trace]);
        let file = Mounted::new(folder.path(), &server);
        let device = Loop::new(&file.file, 0, CAPACITY_MIB * MIB);
        let settings = ["shared_buffers=16MB", "max_wal_size=64MB", "min_wal_size=32MB"];
        let postgres = Postgres::start(&binaries, folder.path(), &device.device, &settings);
        postgres.pgbench(&["-i", "-q", "-s", "1"]);
        postgres.pgbench(&["-c", "2", "-t", "100", "-n"]);
        postgres.checkpoint();
        postgres.stop();
    }
    let stat = good(&["trace", "stat", &trace, "--format", "json"]);
    let row = &serde_json::from_str::<serde_json::Value>(&stat).unwrap()["rows"][0];
    let count = |name: &str| row[name].as_u64().unwrap();
    // Two clients commit 200 times, sometimes together; a database of scale 1 has 15 MB.
    assert!(count("commits") > 50 && count("written_pages") > 3000, "{row}");
    let told = good(&["curve", &trace, "--report", &report]);
    assert!(told.contains("lru"), "{told}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("load") && page.contains("<html"));
}
