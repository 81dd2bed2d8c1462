//! A server on a Unix socket in a thread of its own, and programs run against it.
pub mod memory_device;
pub mod reactor;

use memory_device::MemoryDevice;
use reactor::Reactor;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tantalum_base::Durability;
use tantalum_nbd::{Server, ServerOptions, Statistics};

/// A running server; `finish` stops it.
pub struct Serving {
    pub socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Statistics>,
    _folder: tempfile::TempDir,
}

/// Serves `bytes` of memory.
#[expect(clippy::disallowed_methods, reason = "the server shall not share the test's thread")]
pub fn serve(bytes: u64, durability: Durability, options: ServerOptions) -> Serving {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    let stop = Arc::new(AtomicBool::new(false));
    let (path, stopped) = (socket.clone(), Arc::clone(&stop));
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        Reactor::run(|runtime, reactor| async move {
            let device = Rc::new(MemoryDevice::new(bytes / 4096, 64, durability));
            let server = Server::new(device, options).unwrap();
            let listener = reactor.listen(&path);
            ready.send(()).unwrap();
            // Asked every turn, which the main task gets anyhow.
            let stop = std::future::poll_fn(|_| match stopped.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
            server.clone().serve(&runtime, listener, stop).await.unwrap();
            server.statistics()
        })
    });
    is_ready.recv().unwrap();
    Serving { socket, stop, thread, _folder: folder }
}

impl Serving {
    /// The server's address as clients of libnbd and QEMU take it.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    pub fn finish(self) -> Statistics {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Whether `program` can be run; says so where it cannot.
pub fn installed(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// Runs `program` for half a minute at most; returns what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new("timeout")
        .arg("30")
        .arg(program)
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}\n{errors}",
        output.status
    );
    text
}
