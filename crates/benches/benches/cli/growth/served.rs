//! A server that a bench can look into, and kill.
use crate::measured::{Spent, command, so_far};
use anyhow::{bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use tantalum_testing::built;
use tantalum_testing::rig::now;

const WAIT: Duration = Duration::from_secs(60);

/// It is killed when dropped.
pub struct Served {
    /// Its address, as clients of libnbd take it.
    pub uri: String,
    /// Its costs until its socket was there.
    pub start: Spent,
    process: Child,
    socket: PathBuf,
}

impl Served {
    /// Serves `volume` on a socket in `folder`.
    pub fn volume(folder: &Path, volume: &Path, options: &[&str]) -> anyhow::Result<Served> {
        let socket = folder.join("volume.sock");
        let nbd = format!("unix:{}", socket.display());
        let fixed = ["serve", "--log-level", "error", "--nbd", &nbd];
        Served::start(command(built::tantalum(), fixed).args(options).arg(volume), socket)
    }

    /// Serves a plain `file`.
    pub fn nbdkit(folder: &Path, file: &Path) -> anyhow::Result<Served> {
        let socket = folder.join("nbdkit.sock");
        let mut nbdkit = command("nbdkit", ["-f", "-U"]);
        Served::start(nbdkit.arg(&socket).arg("file").arg(file), socket)
    }

    fn start(command: &mut Command, socket: PathBuf) -> anyhow::Result<Served> {
        // The one of a server that was killed lies there still.
        let _ = std::fs::remove_file(&socket);
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        let began = now();
        let mut process = command.spawn()?;
        while !socket.exists() {
            if process.try_wait()?.is_some() || began.elapsed() > WAIT {
                let _ = process.kill();
                bail!("{command:?} does not come");
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let seconds = began.elapsed().as_secs_f64();
        let start = so_far(process.id(), seconds)?;
        Ok(Served { uri, start, process, socket })
    }

    /// Its costs until now; its clients tell the `seconds`.
    pub fn spent(&self, seconds: f64) -> anyhow::Result<Spent> {
        so_far(self.process.id(), seconds)
    }

    /// Asks it to end, and waits for it.
    pub fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        let status = self.process.wait()?;
        ensure!(status.success() || status.code().is_none(), "a server ended with {status}");
        Ok(())
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}
