//! A server on a thread with its own executor, and programs that run against it.
#![allow(dead_code, unused_imports, reason = "each test and bench uses a part of it")]

pub mod memory_device;
pub mod raw;

use memory_device::MemoryDevice;
use std::path::PathBuf;
use std::rc::Rc;
use tantalum_base::Durability;
use tantalum_nbd::{Server, ServerOptions, Statistics};
use tantalum_runtime::live::net::Address;
use tantalum_runtime::live::remote::{RemoteSender, channel};
use tantalum_runtime::live::{EngineChoice, LiveOptions, LiveThread, spawn_thread};
pub use tantalum_testing::{installed, programs::run};

/// A running server; `finish` stops it.
pub struct Serving {
    pub address: Address,
    pub folder: tempfile::TempDir,
    stop: RemoteSender<()>,
    thread: LiveThread<Statistics>,
}

/// Serves `bytes` of memory on a Unix socket.
pub fn serve(bytes: u64, durability: Durability, options: ServerOptions) -> Serving {
    let folder = tempfile::tempdir().unwrap();
    let address = Address::Unix(folder.path().join("nbd.sock"));
    serve_at(folder, address, EngineChoice::Auto, bytes, durability, options)
}

/// Serves `bytes` of memory at `address`.
pub fn serve_at(
    folder: tempfile::TempDir,
    address: Address,
    engine: EngineChoice,
    bytes: u64,
    durability: Durability,
    options: ServerOptions,
) -> Serving {
    let (stop, mut stopped) = channel::<()>("the end of the test", 1);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let live_options = LiveOptions { engine, ..Default::default() };
    let thread = spawn_thread("nbd", live_options, move |live| async move {
        let device = Rc::new(MemoryDevice::new(bytes / 4096, 64, durability));
        let listener = options.listen(&live, &address).unwrap();
        ready.send(listener.local_address().clone()).unwrap();
        let server = Server::new(device, options).unwrap();
        let stop = async move { assert!(stopped.recv().await.is_none()) };
        server.clone().serve(&live, listener, stop).await.unwrap();
        server.statistics()
    })
    .unwrap();
    Serving { address: is_ready.recv().unwrap(), folder, stop, thread }
}

impl Serving {
    /// The server's address in the form that clients of libnbd and QEMU accept.
    pub fn uri(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("nbd+unix:///?socket={}", path.display()),
            Address::Tcp(address) => format!("nbd://{address}"),
        }
    }

    /// A file beside the socket.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn finish(self) -> Statistics {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}
