//! Opens a volume in this process, or connects to the process that serves it.
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_local::{Connection, Patience, socket_path};
use tantalum_volume::{Origin, VolumeConfig};

use crate::host::{RECORD_VARIABLE, host};
use crate::options::OpenOptions;
use crate::shared::Shared;

/// The path of the VOLUME.toml of the volume at `path`, which may not exist yet.
pub(crate) fn config_path(path: &Path) -> PathBuf {
    match path.extension().is_some_and(|extension| extension == "toml") {
        true => path.to_owned(),
        false => path.join("VOLUME.toml"),
    }
}

/// Opens the volume at `path`: a VOLUME.toml, the folder that contains it, or the socket of its server.
pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<Shared> {
    if std::fs::metadata(path).is_ok_and(|status| status.file_type().is_socket()) {
        return connect(path, options);
    }
    let config = read_config(path)?;
    if let Some(shared) = find(&config, options)? {
        return Ok(shared);
    }
    match host(&config, options) {
        // A server may just have started.
        Err(error) if error.kind() == ErrorKind::Locked => find(&config, options)?.ok_or(error),
        opened => opened,
    }
}

/// Opens the volume at `path` for a caller that only reads. If this process opens the volume, it opens it read-only. A client
/// of a server may still write, because that costs nothing.
pub(crate) fn open_to_read(path: &Path) -> Result<Shared> {
    match find(&read_config(path)?, OpenOptions::default())? {
        Some(shared) => Ok(shared),
        None => open(path, OpenOptions::READ_ONLY),
    }
}

/// The configuration at `path`, or in the folder `path`.
pub(crate) fn read_config(path: &Path) -> Result<VolumeConfig> {
    match path.is_dir() {
        true => VolumeConfig::read(&config_path(path)),
        false => VolumeConfig::read(path),
    }
}

/// Connects to the server that listens for local clients at `socket`.
fn connect(socket: &Path, options: OpenOptions) -> Result<Shared> {
    match tantalum_local::connect(socket, options.read_only, Patience::default())? {
        Some(connection) => served(connection, None, options),
        None => {
            let context = format!("{}: no server serves a volume there", socket.display());
            Err(Error::new(ErrorKind::Io, context))
        }
    }
}

/// The volume of `config` at its server; `None` if no process serves it.
fn find(config: &VolumeConfig, options: OpenOptions) -> Result<Option<Shared>> {
    if options.accept_loss {
        // This option is only for a process that opens the file itself.
        return Ok(None);
    }
    let socket = socket_path(&config.path);
    let found = tantalum_local::connect(&socket, options.read_only, Patience::default())?;
    let Some(connection) = found else { return Ok(None) };
    let origin = Origin::of(config);
    let theirs = connection.welcome().file;
    if let (Some(ours), Some(theirs)) = (origin.as_ref().map(Origin::file), theirs)
        && ours != theirs
    {
        let context = format!(
            "{}: the server (pid {}) has a file open that is not the volume's any more; stop it",
            socket.display(),
            connection.welcome().pid
        );
        return Err(Error::new(ErrorKind::Locked, context));
    }
    let mut shared = served(connection, origin, options)?;
    shared.config = Some(config.path.clone());
    Ok(Some(shared))
}

fn served(connection: Connection, origin: Option<Origin>, options: OpenOptions) -> Result<Shared> {
    if std::env::var_os(RECORD_VARIABLE).is_some_and(|file| !file.is_empty()) {
        let context = format!(
            "{RECORD_VARIABLE} is set, and the volume is served by another process, which alone can record \
             (tantalum serve --record)"
        );
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let read_only = options.read_only || connection.welcome().read_only;
    let mut shared = Shared::served(connection);
    shared.origin = origin;
    shared.read_only = read_only.into();
    Ok(shared)
}
