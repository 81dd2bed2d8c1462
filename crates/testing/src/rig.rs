//! Volumes, their servers, and their exports as files and block devices.
use crate::built;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A mebibyte in bytes.
pub const MIB: u64 = 1 << 20;
const WAIT: Duration = Duration::from_secs(20);

/// Runs `program`; returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs `tantalum`; returns its output.
pub fn tantalum(arguments: &[&str]) -> String {
    run(built::tantalum(), arguments)
}

/// The current time, for measurements.
#[expect(clippy::disallowed_methods, reason = "measures programs, in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Waits until `is_true`.
pub fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = now();
    while !is_true() {
        assert!(began.elapsed() < WAIT, "{what} does not come");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A process that is asked to end when dropped, and waited for.
pub struct Process(Child);

impl Process {
    /// Starts `program` without output.
    pub fn start(program: &str, arguments: &[&str]) -> Process {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        Process(command.spawn().expect("the program starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// An NBD server.
pub struct Server {
    /// Its address, in the form that clients of libnbd accept.
    pub uri: String,
    /// Its socket.
    pub socket: PathBuf,
    _process: Process,
}

impl Server {
    /// Starts `tantalum serve` of `what`, on `name` in `folder`.
    pub fn start(folder: &Path, name: &str, what: &[&str]) -> Server {
        let socket = folder.join(name);
        let nbd = format!("unix:{}", socket.display());
        let arguments = [&["serve", "--log-level", "warn", "--nbd", &nbd], what].concat();
        Server::of(Process::start(built::tantalum(), &arguments), socket)
    }

    /// Starts `nbdkit` with these arguments.
    pub fn nbdkit(folder: &Path, what: &[&str]) -> Server {
        let socket = folder.join("nbdkit.sock");
        let own = socket.display().to_string();
        let arguments = [&["-f", "-U", &own], what].concat();
        Server::of(Process::start("nbdkit", &arguments), socket)
    }

    fn of(process: Process, socket: PathBuf) -> Server {
        until("the server", || socket.exists());
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        Server { uri, socket, _process: process }
    }
}

/// A server's export, as a file.
pub struct Mounted {
    /// The file.
    pub file: PathBuf,
    _process: Process,
}

impl Mounted {
    /// Mounts the export of `server` on a file in `folder`.
    pub fn new(folder: &Path, server: &Server) -> Mounted {
        let name = server.socket.file_name().expect("a socket has a name").to_string_lossy();
        let file = folder.join(format!("{name}.file"));
        std::fs::write(&file, b"").expect("a file to mount on");
        let process = Process::start("nbdfuse", &[&file.to_string_lossy(), &server.uri]);
        until("nbdfuse", || file.metadata().is_ok_and(|it| it.len() > 0));
        Mounted { file, _process: process }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3").arg("-u").arg(&self.file).status();
    }
}

/// A part of a file as a block device.
pub struct Loop {
    /// The device, such as `/dev/loop0`.
    pub device: String,
}

impl Loop {
    /// The `bytes` bytes of `file` from `first_byte` on.
    pub fn new(file: &Path, first_byte: u64, bytes: u64) -> Loop {
        let (offset, size) = (first_byte.to_string(), bytes.to_string());
        let file = file.to_string_lossy();
        let device = run("losetup", &["-f", "--show", "-o", &offset, "--sizelimit", &size, &file]);
        Loop { device }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// Makes a flash volume in `folder`, as durable as a tiered one; returns its configuration.
pub fn flash_volume(folder: &Path, mib: u64) -> PathBuf {
    let config = folder.join("flash.toml");
    let capacity = format!("{mib}MiB");
    let create = ["create", &config.to_string_lossy(), "--capacity", &capacity];
    tantalum(&[&create[..], &["--durability", "on_ack"]].concat());
    config
}
