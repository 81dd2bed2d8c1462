//! Writes by fio, and transactions by SQLite.
use crate::disk::Disk;
use rusqlite::Connection;
use std::path::Path;
use tantalum::Volume;
use tantalum_base::Rng;
use tantalum_testing::built::disk_folder;
use tantalum_testing::programs::{FioJob, fio, median, setting};
use tantalum_testing::rig::{MIB, Server, flash_volume, now};

const PERCENTILES: [(&str, &str); 3] =
    [("p50", "50.000000"), ("p99", "99.000000"), ("p99.9", "99.900000")];

/// 4 KiB random writes at depth 32, by these `options`.
fn writes(server: &Server, mib: u64, options: &[&str]) -> FioJob {
    let (uri, size) = (format!("--uri={}", server.uri), format!("--size={mib}m"));
    let common = ["--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k", "--iodepth=32", &size];
    fio(&[&common, options].concat())
}

/// Until half of what may be dirty is, beside a flash volume.
pub fn first() {
    const HOME_MIB: u64 = 2048;
    const FLASH_MIB: u64 = 1024;
    let mut ratios = Vec::new();
    for round in 1..=setting("ROUNDS", 3) {
        let rate = |config: &Path, folder: &Path| {
            let server = Server::start(folder, "volume.sock", &[&config.to_string_lossy()]);
            // 200 MiB of 1 GiB: less than half of what may be dirty.
            writes(&server, FLASH_MIB, &["--io_size=200m"]).per_second("write")
        };
        let place = disk_folder();
        let flash = rate(&flash_volume(place.path(), FLASH_MIB), place.path());
        let place = disk_folder();
        let disk = Disk::new(place.path(), HOME_MIB * MIB, 1024 * MIB);
        let tiered = rate(&disk.cache(place.path(), FLASH_MIB, HOME_MIB), place.path());
        println!(
            "round {round}: flash {flash:.0}/s, tiered {tiered:.0}/s, ratio {:.2}",
            tiered / flash
        );
        ratios.push(tiered / flash);
    }
    println!("until it is full: {:.2} of a flash volume's rate (asked: 0.80)", median(ratios));
}

/// Four times the flash, for ever.
pub fn sustained() {
    const HOME_MIB: u64 = 1024;
    let seconds = setting("SECONDS_EACH", 60);
    let tell = |what: &str, server: &Server, warm_seconds: u32| {
        let skew = "--random_distribution=zoned:80/20:20/80";
        let written = |seconds: u32| {
            let runtime = format!("--runtime={seconds}");
            let options = ["--time_based", &runtime, skew, "--norandommap", "--randrepeat=0"];
            writes(server, HOME_MIB, &options)
        };
        written(warm_seconds);
        let job = written(seconds);
        let rate = job.per_second("write");
        let latencies = PERCENTILES.map(|(name, percentile)| {
            format!("{name} {:.1} ms", job.latency_us("write", percentile) / 1e3)
        });
        println!("{what}: {rate:.0}/s, {}", latencies.join(", "));
        rate
    };
    let place = disk_folder();
    let durable = format!("wd800aajs:capacity={HOME_MIB}MiB,storage-cache=off");
    let bare = {
        let server = Server::start(place.path(), "bare.sock", &["--device", &durable]);
        tell("bare disk, durable when acknowledged", &server, 5)
    };
    let volatile = {
        let device = format!("wd800aajs:capacity={HOME_MIB}MiB");
        let server = Server::start(place.path(), "bare.sock", &["--device", &device]);
        tell("bare disk, acknowledged in its volatile cache", &server, 15)
    };
    {
        let under = Server::start(place.path(), "under.sock", &["--device", &durable]);
        let below = format!("socket={}", under.socket.display());
        let what = ["--filter=cache", "nbd", &below, "cache=writeback"];
        let filter = Server::nbdkit(place.path(), &what);
        tell("nbdkit's cache filter over it, nothing durable until a flush", &filter, 5);
    }
    let disk = Disk::new(place.path(), HOME_MIB * MIB, 256 * MIB);
    let config = disk.cache(place.path(), HOME_MIB / 4, HOME_MIB);
    let server = Server::start(place.path(), "volume.sock", &[&config.to_string_lossy()]);
    // Two epochs, until its pace is known.
    let tiered = tell("tiered, durable when acknowledged", &server, 60);
    println!(
        "sustained: {:.1}x the disk that is as durable (asked: 5), {:.1}x the one that is not",
        tiered / bare,
        tiered / volatile
    );
}

/// Transactions a second, beside a flash volume, where all fits the flash.
pub fn sqlite() {
    const HOME_MIB: u64 = 1024;
    let transactions = i64::from(setting("SQLITE_TRANSACTIONS", 3000));
    let mut ratios = Vec::new();
    for round in 1..=setting("ROUNDS", 3) {
        let place = disk_folder();
        let flash = transactions_a_second(&flash_volume(place.path(), 256), transactions);
        let place = disk_folder();
        let disk = Disk::new(place.path(), HOME_MIB * MIB, 512 * MIB);
        let config = disk.cache(place.path(), 512, HOME_MIB);
        let tiered = transactions_a_second(&config, transactions);
        println!(
            "round {round}: flash {flash:.0}/s, tiered {tiered:.0}/s, ratio {:.2}",
            tiered / flash
        );
        ratios.push(tiered / flash);
    }
    println!("SQLite: {:.2} of a flash volume's rate (asked: 0.80)", median(ratios));
}

fn transactions_a_second(config: &Path, transactions: i64) -> f64 {
    const ROWS: u64 = 20_000;
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    let opener = |path: &Path| Volume::open(path);
    let register = || tantalum_sqlite::register("bench", opener, Default::default());
    REGISTERED.call_once(|| register().expect("a VFS"));
    let flags = rusqlite::OpenFlags::default();
    let db = Connection::open_with_flags_and_vfs(config, flags, "bench").expect("a database");
    db.execute_batch(&format!(
        "PRAGMA synchronous = FULL;
         CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
         INSERT INTO t SELECT value, value, hex(zeroblob(50)) FROM (WITH RECURSIVE n(value) AS
         (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {ROWS}) SELECT value FROM n)"
    ))
    .expect("a table");
    let mut rng = Rng::new(1);
    let began = now();
    for _ in 0..transactions {
        db.execute_batch("BEGIN").expect("a transaction");
        let mut update = db.prepare_cached("UPDATE t SET a = a + 1 WHERE id = ?").expect("SQL");
        for _ in 0..4 {
            update.execute([1 + rng.below(ROWS) as i64]).expect("an update");
        }
        drop(update);
        db.execute_batch("COMMIT").expect("a commit");
    }
    transactions as f64 / began.elapsed().as_secs_f64()
}
