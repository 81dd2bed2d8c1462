//! The log of a server on the standard error, and the announcement that it is ready.
use crate::log_limits::LogLimits;
use crate::log_writer::LogWriter;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Logging, and the file with the process id.
#[derive(clap::Args, Clone, Debug)]
pub struct Logging {
    /// Level of the log on the standard error: error, warn, info, debug or off
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
    /// Format of the log: text, or json (one object per line)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// File for the process id, which exists while the server runs
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum LogFormat {
    Text,
    Json,
}

impl Logging {
    /// Starts logging, until the result is dropped.
    ///
    /// # Errors
    /// If there are no threads left.
    pub fn start(&self) -> Result<Log> {
        let (writer, limits) = (LogWriter::default(), LogLimits::default());
        let to = fmt::layer().with_writer(writer.clone());
        let to = match self.log_format {
            LogFormat::Text => to.with_ansi(false).with_filter(limits.clone()).boxed(),
            LogFormat::Json => to.json().with_filter(limits.clone()).boxed(),
        };
        tracing_subscriber::registry().with(self.log_level).with(to).init();
        let started = writer.start(std::io::stderr(), limits);
        started.map_err(|error| Error::io("starting the thread of the log", error))?;
        Ok(Log(writer))
    }

    /// Announces that the server listens: to systemd, if that started it, and in the pid file, if it is requested.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn ready(&self) -> Result<Ready> {
        let file = self.pid_file.as_deref().map(PidFile::write).transpose()?;
        tell_systemd(sd_notify::NotifyState::Ready);
        Ok(Ready(file))
    }
}

/// The log, as long as the program writes it.
pub struct Log(LogWriter);

impl Drop for Log {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// A file with the id of this process, locked while the process lives.
struct PidFile {
    path: PathBuf,
    _locked: File,
}

impl PidFile {
    fn write(path: &Path) -> Result<PidFile> {
        let failed = |error| Error::io(format!("writing {}", path.display()), error);
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        // In a folder that others write to, a link could lead to any file of this user, and a pipe would block.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
        let not_ordinary = || {
            let context = format!(
                "{} is a link, a pipe or a device: --pid-file needs a file",
                path.display()
            );
            Error::new(ErrorKind::InvalidInput, context)
        };
        let mut file = opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP | Errno::NXIO) => not_ordinary(),
            _ => failed(error),
        })?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(not_ordinary());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let context = format!("{} belongs to another running server", path.display());
                return Err(Error::new(ErrorKind::Locked, context));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let text = format!("{}\n", std::process::id());
        file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).map_err(failed)?;
        Ok(PidFile { path: path.into(), _locked: file })
    }
}

/// The server is ready until this is dropped.
pub struct Ready(Option<PidFile>);

impl Drop for Ready {
    fn drop(&mut self) {
        tell_systemd(sd_notify::NotifyState::Stopping);
        if let Some(file) = &self.0 {
            remove(&file.path);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(%error, "{} was not removed", path.display());
    }
}

fn tell_systemd(state: sd_notify::NotifyState<'_>) {
    // Without systemd, this does nothing.
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::warn!(%error, "systemd was not notified");
    }
}
