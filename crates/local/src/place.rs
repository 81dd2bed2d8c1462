//! Where the socket of a volume is.
//!
//! Clients look beside the configuration, at `VOLUME.toml.socket`. Where the server listens elsewhere, that is a
//! symbolic link to there.
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result, ResultExt};
use tantalum_runtime::Live;
use tantalum_runtime::live::net::{Address, Listener};

/// Where clients look for who serves the volume whose configuration is at `config`, by whatever name.
pub fn socket_path(config: &Path) -> PathBuf {
    let mut name = OsString::from(fs::canonicalize(config).unwrap_or_else(|_| config.into()));
    name.push(".socket");
    name.into()
}

/// Where a server listens, and how clients find it; the link is removed when this is dropped.
pub struct Place {
    socket: PathBuf,
    link: Option<PathBuf>,
}

impl Place {
    /// Listens for clients of the volume whose configuration is at `config`: at `path`, or beside the configuration.
    ///
    /// # Errors
    /// `Io` where that cannot be, such as where somebody listens there.
    pub fn claim(live: &Live, config: &Path, path: Option<&Path>) -> Result<(Place, Listener)> {
        let beside = socket_path(config);
        let socket = match path {
            Some(path) => std::path::absolute(path).context(|| path.display().to_string())?,
            None => beside.clone(),
        };
        if beside.is_symlink() {
            // Of a server that was killed, or to a reader beside which this one reads.
            remove(&beside)?;
        }
        let listener = Listener::bind(live, &Address::Unix(socket.clone()))?;
        Ok((Place { socket, link: None }, listener))
    }

    /// Lets clients that look beside the configuration at `config` find it there.
    ///
    /// # Errors
    /// `Io` where the link cannot be made.
    pub fn link(&mut self, config: &Path) -> Result<()> {
        let beside = socket_path(config);
        if beside == self.socket {
            return Ok(());
        }
        let linking = || format!("linking {} to {}", beside.display(), self.socket.display());
        remove_dead(&beside).context(linking)?;
        symlink(&self.socket, &beside).context(linking)?;
        self.link = Some(beside);
        Ok(())
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(link) = &self.link
            && fs::read_link(link).is_ok_and(|to| to == self.socket)
        {
            // Nobody is left to be told; a link to nowhere confuses no client.
            let _ = fs::remove_file(link);
        }
    }
}

/// Removes what a killed server left at `path`.
fn remove_dead(path: &Path) -> Result<()> {
    let Ok(status) = fs::symlink_metadata(path) else { return Ok(()) };
    if status.file_type().is_symlink() {
        return remove(path);
    }
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    if status.file_type().is_socket() && UnixStream::connect(path).as_ref().is_err_and(refused) {
        return remove(path);
    }
    Err(Error::new(ErrorKind::InvalidInput, "there is something that is in use"))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("removing {}", path.display()), error))
        }
        _ => Ok(()),
    }
}
