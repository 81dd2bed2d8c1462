//! A PostgreSQL server on ext4 on a block device, and its programs.
use crate::rig::{Process, run, until};
use crate::skip::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the server's programs in Debian; [`skip`]s if there is none.
pub fn binaries() -> Option<PathBuf> {
    let found = newest();
    if found.is_none() {
        skip("postgresql");
    }
    found
}

fn newest() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|folder| folder.join("pgbench").is_file() && folder.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop()
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
        // A process that has just ended may still keep it busy for a moment.
        for _ in 0..50 {
            let asked = Command::new("umount").arg(&self.0).status();
            if asked.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(100));
        }
    }
}

/// A server that runs until it is stopped, or this is dropped.
pub struct Postgres {
    binaries: PathBuf,
    data: String,
    sockets: String,
    // Declared, and dropped, before the file system that it uses.
    server: Option<Process>,
    _files: FileSystem,
}

impl Postgres {
    /// Makes a file system on `device`, and a new database server on it, with these `settings`.
    pub fn start(binaries: &Path, folder: &Path, device: &str, settings: &[&str]) -> Postgres {
        let files = FileSystem::new(folder, device);
        // PostgreSQL refuses to run as root, and must be able to reach its files.
        for reached in [folder, folder.parent().unwrap_or(folder)] {
            run("chmod", &["a+x", &reached.to_string_lossy()]);
        }
        run("chown", &["postgres", &files.0.to_string_lossy()]);
        let data = files.0.join("data").to_string_lossy().into_owned();
        let sockets = files.0.to_string_lossy().into_owned();
        let binaries = binaries.to_path_buf();
        let mut postgres = Postgres { binaries, data, sockets, server: None, _files: files };
        postgres.run("initdb", &["-D", &postgres.data, "-A", "trust", "--no-sync"]);
        let program = postgres.program("postgres");
        let mut server = vec!["-u", "postgres", "--", &program, "-D", &postgres.data];
        server.extend([
            "-k",
            &postgres.sockets,
            "-c",
            "listen_addresses=",
            "-c",
            "log_min_messages=fatal",
        ]);
        settings.iter().for_each(|setting| server.extend(["-c", setting]));
        postgres.server = Some(Process::start("runuser", &server));
        let ready = postgres.program("pg_isready");
        let is_ready = || {
            let mut asked = Command::new(&ready);
            let quiet = asked.args(["-q", "-h", &postgres.sockets]).status();
            quiet.is_ok_and(|status| status.success())
        };
        until("PostgreSQL", is_ready);
        postgres
    }

    fn program(&self, name: &str) -> String {
        self.binaries.join(name).to_string_lossy().into_owned()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let program = self.program(program);
        run("runuser", &[&["-u", "postgres", "--", program.as_str()], arguments].concat())
    }

    /// Runs `pgbench` with these arguments; returns its output.
    pub fn pgbench(&self, arguments: &[&str]) -> String {
        self.run("pgbench", &[&["-h", self.sockets.as_str()], arguments, &["postgres"]].concat())
    }

    /// Runs `pgbench` with these arguments; returns the number of transactions in each second.
    pub fn pgbench_by_second(&self, arguments: &[&str]) -> Vec<f64> {
        let program = self.program("pgbench");
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", &program, "-h", &self.sockets, "-P", "1"]);
        let out = command.args(arguments).arg("postgres").output().expect("pgbench starts");
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{told}");
        let rate = |line: &str| line.split(" s, ").nth(1)?.split(" tps").next()?.parse().ok();
        told.lines().filter(|line| line.starts_with("progress: ")).filter_map(rate).collect()
    }

    /// Runs a checkpoint.
    pub fn checkpoint(&self) {
        self.run("psql", &["-h", &self.sockets, "-c", "CHECKPOINT", "postgres"]);
    }

    /// Stops all its processes: any that remained would keep the file system mounted.
    pub fn stop(mut self) {
        self.run("pg_ctl", &["-D", &self.data, "-m", "fast", "-w", "stop"]);
        self.server = None;
    }
}
