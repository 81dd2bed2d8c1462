//! A volume on a recording file system, its server with either engine, and several lives of it under load.
use crate::history::{Durability, PAGES, WriteNo, numbers_of};
use crate::load::{CONNECTIONS, Load};
use crate::passthrough::Mounted;
use crate::recorder::Recorder;
use crate::support::good;
use crate::support::nbd::Client;
use crate::support::server::Server;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tantalum_base::PAGE_BYTES;
use tempfile::TempDir;

/// The server's interface to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Ring,
    /// The fallback if the kernel refuses the ring.
    Threads,
}

/// The text of a VOLUME.toml with the volume's content in `data`.
pub fn config_text(durability: Durability, data: &Path) -> String {
    let durability = match durability {
        Durability::OnAck => "on_ack",
        Durability::OnFlush => "on_flush",
    };
    // Small zones, so that a short load makes many of them be cleaned.
    format!(
        "kind = \"flash\"\n[media]\ntype = \"file\"\npath = \"{}\"\nzone = \"128KiB\"\n\
         [device]\ncapacity = \"{}KiB\"\ndurability = \"{durability}\"\n",
        data.display(),
        PAGES * PAGE_BYTES as u64 / 1024
    )
}

/// A new volume on a recording file system.
pub struct Rig {
    // Declared first: it must be unmounted before its folder is removed.
    mounted: Mounted,
    _folder: TempDir,
    config: PathBuf,
    engine: Engine,
    durability: Durability,
    /// The position of the journal after the volume was created.
    pub created_at: usize,
}

impl Rig {
    /// Without FUSE, prints a message and returns `None`.
    pub fn new(engine: Engine, durability: Durability) -> Option<Rig> {
        let folder = tempfile::tempdir().expect("a folder");
        let (mount, backing) = (folder.path().join("mnt"), folder.path().join("backing"));
        std::fs::create_dir(&mount).expect("a folder");
        std::fs::create_dir(&backing).expect("a folder");
        let mounted = Mounted::new(&mount, &backing)?;
        let config = folder.path().join("v.toml");
        std::fs::write(&config, config_text(durability, &mount.join("data.tantalum")))
            .expect("written");
        good(&["create", config.to_str().expect("UTF-8")]);
        let created_at = mounted.recorder.position();
        Some(Rig { mounted, _folder: folder, config, engine, durability, created_at })
    }

    /// A volume whose configuration does not set a durability: over NBD, flushed changes survive.
    pub fn silent(engine: Engine) -> Option<Rig> {
        let rig = Rig::new(engine, Durability::OnFlush)?;
        let said = std::fs::read_to_string(&rig.config).expect("read");
        let silent = said.replace("durability = \"on_flush\"\n", "");
        assert_ne!(silent, said);
        std::fs::write(&rig.config, silent).expect("written");
        Some(rig)
    }

    pub fn durability(&self) -> Durability {
        self.durability
    }

    pub fn config(&self) -> &Path {
        &self.config
    }

    pub fn recorder(&self) -> &Recorder {
        &self.mounted.recorder
    }

    pub fn load(&self, seed: u64) -> Load<'_> {
        Load::new(self.recorder(), self.durability, seed)
    }

    pub fn serve(&self) -> Server {
        let server = match self.engine {
            Engine::Ring => Server::start(&self.config),
            Engine::Threads => without_ring(|| Server::start(&self.config)),
        };
        let ring = server.banner.contains("(io_uring,");
        assert!(self.engine == Engine::Ring || !ring, "{}", server.banner);
        if self.engine == Engine::Ring && !ring {
            eprintln!("this kernel refuses io_uring: threads do its part");
        }
        server
    }

    /// Several lives of the volume under load, of about `changes` changes each; they end with a kill and with a regular
    /// stop, in turn. The content after every opening is explained.
    pub fn live(&self, load: &Load, lives: u64, changes: u64) {
        for life in 0..lives {
            let server = self.serve();
            self.explain(load, &server, life);
            let socket = server.socket.clone();
            let enough = load.answered.load(Ordering::Relaxed) + changes;
            if life % 2 == 0 {
                let reached = || load.answered.load(Ordering::Relaxed) >= enough;
                under_load(load, &socket, life, u64::MAX, reached, || server.kill());
            } else {
                under_load(load, &socket, life, enough, || false, || ());
                server.terminate();
                // Closing implies a flush.
                let tick = load.history().tick();
                load.history().flushed(tick, self.recorder().position());
            }
        }
    }

    /// The content that a server shows must be explained by the changes, and is certain from now on.
    pub fn explain(&self, load: &Load, server: &Server, life: u64) {
        let explained = served(server).and_then(|found| {
            let position = self.recorder().position();
            load.history().reopened(&found, position)
        });
        explained.unwrap_or_else(|error| panic!("seed {}, life {life}: {error}", load.seed));
    }
}

/// Runs the clients until each has had `enough` answers; calls `then` once `reached` is true, or all have ended.
pub fn under_load(
    load: &Load,
    socket: &Path,
    life: u64,
    enough: u64,
    reached: impl Fn() -> bool,
    then: impl FnOnce(),
) {
    std::thread::scope(|scope| {
        let run = |connection| move || load.run(socket, connection, life, enough);
        let clients: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(run(number))).collect();
        #[expect(clippy::disallowed_methods, reason = "waits for threads")]
        while !reached() && !clients.iter().all(|client| client.is_finished()) {
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        then();
    });
}

/// The content of each page of a served volume, as write numbers.
///
/// # Errors
/// Reports pages that cannot be read, or have content that was never written.
pub fn served(server: &Server) -> Result<Vec<WriteNo>, String> {
    let mut client = Client::connect(&server.socket).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    for first in (0..PAGES).step_by(64) {
        let read = client.read(first, 64);
        bytes.extend(read.map_err(|error| format!("error {error} reading page {first} and on"))?);
    }
    numbers_of(&bytes)
}

/// Runs `start` on a thread that may not use io_uring; processes started there may not either.
fn without_ring<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    /// The number of `io_uring_setup` on every architecture.
    const IO_URING_SETUP: i64 = 425;
    const EPERM: u32 = 1;
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            let architecture = std::env::consts::ARCH.try_into().expect("seccomp is there");
            let filter = SeccompFilter::new(
                BTreeMap::from([(IO_URING_SETUP, vec![])]),
                SeccompAction::Allow,
                SeccompAction::Errno(EPERM),
                architecture,
            );
            let program: BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
            seccompiler::apply_filter(&program).expect("seccomp");
            start()
        });
        refused.join().expect("it starts")
    })
}
