//! `tantalum serve` as a separate process, to be queried, stopped and killed.
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use tantalum_testing::built;
pub use tantalum_testing::programs::run;

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub socket: PathBuf,
    /// The line it printed once it listened.
    pub banner: String,
    out: BufReader<ChildStdout>,
}

impl Server {
    /// Serves the volume of `config` on a Unix socket beside it, and waits until it listens.
    pub fn start(config: &Path) -> Server {
        Server::start_with(config.with_file_name("nbd.sock"), &[config.as_os_str()])
    }

    /// Serves the volume of `config` read-only on `socket`.
    pub fn start_read_only(config: &Path, socket: PathBuf) -> Server {
        Server::start_with(socket, &[config.as_os_str(), "--read-only".as_ref()])
    }

    /// The same with additional `options`.
    pub fn start_as(config: &Path, options: &[&str]) -> Server {
        let options = options.iter().map(OsStr::new);
        let what: Vec<&OsStr> = std::iter::once(config.as_os_str()).chain(options).collect();
        Server::start_with(config.with_file_name("nbd.sock"), &what)
    }

    /// Serves a simulated device on a Unix socket in `folder`, and waits until it listens.
    pub fn start_device(folder: &Path, device: &str) -> Server {
        Server::start_with(folder.join("nbd.sock"), &["--device".as_ref(), device.as_ref()])
    }

    /// Serves a simulated device with additional `options`.
    pub fn start_device_as(folder: &Path, device: &str, options: &[&str]) -> Server {
        let options = options.iter().map(OsStr::new);
        let what: Vec<&OsStr> =
            ["--device".as_ref(), device.as_ref()].into_iter().chain(options).collect();
        Server::start_with(folder.join("nbd.sock"), &what)
    }

    /// The next line of its output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line
    }

    fn start_with(socket: PathBuf, what: &[&OsStr]) -> Server {
        // Tests of the log start their own servers.
        let mut child = Command::new(built::tantalum())
            .args(["serve", "--log-level", "off"])
            .args(what)
            .args(["--nbd", &format!("unix:{}", socket.display())])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tantalum starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut banner = String::new();
        out.read_line(&mut banner).expect("a line");
        assert!(banner.contains(" at "), "the server said {banner:?} and ended");
        Server { child, socket, banner, out }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server's address in the form that clients of libnbd and QEMU accept.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// The number of changes that opening replayed, from the banner.
    pub fn replayed(&self) -> u64 {
        let before = self.banner.split(" changes replayed").next().expect("a part");
        let number = before.rsplit(' ').next().expect("a part");
        number.parse().unwrap_or_else(|_| panic!("no number in {:?}", self.banner))
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends SIGTERM; the server must end without an error. Returns its output since the banner.
    pub fn terminate(self) -> String {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for its end, which must be without an error. Returns its output since the banner.
    pub fn ended(mut self) -> String {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The test may have ended it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
