//! What a server tells on the standard error while it works, and whom it tells that it does.
use std::path::{Path, PathBuf};
use tantalum_base::{Error, Result};
use tracing_subscriber::filter::LevelFilter;

/// Logging, and the file with the process's number.
#[derive(clap::Args, Clone, Debug)]
pub struct Logging {
    /// What is logged on the standard error: error, warn, info, debug or off
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
    /// How: text, or json (an object a line)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// A file for the number of the process, as long as it serves
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum LogFormat {
    Text,
    Json,
}

impl Logging {
    /// Logs from now on.
    pub fn start(&self) {
        let to =
            tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(self.log_level);
        match self.log_format {
            LogFormat::Text => to.with_ansi(false).init(),
            LogFormat::Json => to.json().init(),
        }
    }

    /// The server listens: tells systemd, where that started it, and writes the file that is asked for.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn ready(&self) -> Result<Ready> {
        let file = self.pid_file.clone();
        if let Some(path) = &file {
            let text = format!("{}\n", std::process::id());
            let written = std::fs::write(path, text);
            written.map_err(|error| Error::io(format!("writing {}", path.display()), error))?;
        }
        tell_systemd(sd_notify::NotifyState::Ready);
        Ok(Ready(file))
    }
}

/// Until this is dropped, the server serves.
pub struct Ready(Option<PathBuf>);

impl Drop for Ready {
    fn drop(&mut self) {
        tell_systemd(sd_notify::NotifyState::Stopping);
        if let Some(path) = &self.0 {
            remove(path);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(%error, "{} was not removed", path.display());
    }
}

fn tell_systemd(state: sd_notify::NotifyState<'_>) {
    // Nobody to tell where nobody asked.
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::warn!(%error, "systemd was not told");
    }
}
