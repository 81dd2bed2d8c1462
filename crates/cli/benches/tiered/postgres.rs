//! PostgreSQL on ext4.
use crate::programs::setting;
use crate::rig::{Disk, Loop, MIB, Mounted, Process, Server, folder, run, until};
use std::path::{Path, PathBuf};

const HOME_MIB: u64 = 2048;
const FLASH_MIB: u64 = 320;
/// 15 MB each: twice the flash.
const SCALE: u32 = 43;

/// Where Debian keeps the server's programs.
fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|folder| folder.join("pgbench").is_file() && folder.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop()
}

/// pgbench on a tiered volume, and on the disk alone with its volatile cache and file system barriers.
pub fn pgbench() {
    let Some(binaries) = binaries() else {
        eprintln!("skipped: PostgreSQL's server programs are not installed");
        return;
    };
    let bare = {
        let place = folder();
        let disk = Disk::new(place.path(), HOME_MIB * MIB, 512 * MIB);
        transactions_a_second(&binaries, place.path(), &disk.home.device)
    };
    println!("bare disk: {bare:.0}/s");
    let place = folder();
    let disk = Disk::new(place.path(), HOME_MIB * MIB, 512 * MIB);
    let config = disk.cache(place.path(), FLASH_MIB, HOME_MIB);
    let server = Server::start(place.path(), "volume.sock", &[&config.to_string_lossy()]);
    let file = Mounted::new(place.path(), &server);
    let device = Loop::new(&file.file, 0, HOME_MIB * MIB);
    let tiered = transactions_a_second(&binaries, place.path(), &device.device);
    println!("tiered: {tiered:.0}/s, {:.1}x the bare disk (asked: 3)", tiered / bare);
}

/// A file system that is mounted until this is dropped.
struct FileSystem(PathBuf);

impl FileSystem {
    fn new(folder: &Path, device: &str) -> FileSystem {
        run("mkfs.ext4", &["-q", "-F", "-E", "nodiscard", device]);
        let at = folder.join("mnt");
        std::fs::create_dir(&at).expect("a folder to mount on");
        run("mount", &["-o", "noatime", device, &at.to_string_lossy()]);
        FileSystem(at)
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        // It may be busy for a moment with what has just ended.
        for _ in 0..50 {
            let asked = std::process::Command::new("umount").arg(&self.0).status();
            if asked.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(100));
        }
    }
}

fn transactions_a_second(binaries: &Path, folder: &Path, device: &str) -> f64 {
    let files = FileSystem::new(folder, device);
    // PostgreSQL does not run as root, and must reach its files.
    for reached in [folder, folder.parent().unwrap_or(folder)] {
        run("chmod", &["a+x", &reached.to_string_lossy()]);
    }
    run("chown", &["postgres", &files.0.to_string_lossy()]);
    let data = files.0.join("data").to_string_lossy().into_owned();
    let sockets = files.0.to_string_lossy().into_owned();
    let program = |name: &str| binaries.join(name).to_string_lossy().into_owned();
    let as_postgres =
        |arguments: &[&str]| run("runuser", &[&["-u", "postgres", "--"], arguments].concat());
    as_postgres(&[&program("initdb"), "-D", &data, "-A", "trust", "--no-sync"]);
    let server_program = program("postgres");
    let settings = [
        "listen_addresses=",
        "shared_buffers=64MB",
        "checkpoint_timeout=60s",
        "max_wal_size=512MB",
    ];
    let mut server = vec!["-u", "postgres", "--", &server_program, "-D", &data, "-k", &sockets];
    settings.iter().for_each(|setting| server.extend(["-c", setting]));
    let server = Process::start("runuser", &server);
    let ready = program("pg_isready");
    let is_ready = || {
        let mut asked = std::process::Command::new(&ready);
        let quiet = asked.args(["-q", "-h", &sockets]).status();
        quiet.is_ok_and(|status| status.success())
    };
    until("PostgreSQL", is_ready);
    let (scale, seconds) = (SCALE.to_string(), setting("SECONDS_EACH", 60).to_string());
    let pgbench = program("pgbench");
    as_postgres(&[&pgbench, "-h", &sockets, "-i", "-q", "-s", &scale, "postgres"]);
    // What it has just written goes to the disk before anything is measured.
    as_postgres(&[&program("psql"), "-h", &sockets, "-c", "CHECKPOINT", "postgres"]);
    let clients = ["-c", "8", "-j", "2", "-T", &seconds, "-n"];
    let told =
        as_postgres(&[&[pgbench.as_str(), "-h", &sockets], &clients[..], &["postgres"]].concat());
    // Whole, or its files keep the file system mounted.
    as_postgres(&[&program("pg_ctl"), "-D", &data, "-m", "fast", "-w", "stop"]);
    drop(server);
    let rate =
        told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.unwrap_or_else(|| panic!("pgbench said {told}"))
}
