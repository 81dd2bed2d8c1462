//! The path of a volume's socket.
//!
//! Clients look beside the configuration, at `VOLUME.toml.socket`. If the server listens at another path,
//! `VOLUME.toml.socket` is a symbolic link to it.
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result, ResultExt};
use tantalum_runtime::Live;
use tantalum_runtime::live::net::{Address, Listener};

/// The path at which clients look for the server of the volume with the configuration at `config`. It is the same
/// for every name of that file.
pub fn socket_path(config: &Path) -> PathBuf {
    let mut name = OsString::from(fs::canonicalize(config).unwrap_or_else(|_| config.into()));
    name.push(".socket");
    name.into()
}

/// The socket of a server and the link by which clients find it; dropping this removes the link.
pub struct Place {
    socket: PathBuf,
    link: Option<PathBuf>,
}

impl Place {
    /// Listens for clients of the volume with the configuration at `config`: at `path`, or beside the configuration.
    ///
    /// # Errors
    /// `Io` if this is impossible, for example because another server listens there.
    pub fn claim(live: &Live, config: &Path, path: Option<&Path>) -> Result<(Place, Listener)> {
        let beside = socket_path(config);
        let socket = match path {
            Some(path) => std::path::absolute(path).context(|| path.display().to_string())?,
            None => beside.clone(),
        };
        if beside.is_symlink() {
            // The link was left by a killed server, or leads to another read-only server, beside which this one
            // may serve too.
            remove(&beside)?;
        }
        let listener = Listener::bind(live, &Address::Unix(socket.clone()))?;
        Ok((Place { socket, link: None }, listener))
    }

    /// Links the path beside the configuration at `config` to the socket, so that clients find it.
    ///
    /// # Errors
    /// `Io` if the link cannot be created.
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
            // An error here could not be reported. A dangling link does no harm to clients.
            let _ = fs::remove_file(link);
        }
    }
}

/// Removes the socket or link of a killed server at `path`.
fn remove_dead(path: &Path) -> Result<()> {
    let Ok(status) = fs::symlink_metadata(path) else { return Ok(()) };
    if status.file_type().is_symlink() {
        return remove(path);
    }
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    if status.file_type().is_socket() && UnixStream::connect(path).as_ref().is_err_and(refused) {
        return remove(path);
    }
    Err(Error::new(ErrorKind::InvalidInput, "the file exists and is in use"))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("removing {}", path.display()), error))
        }
        _ => Ok(()),
    }
}
