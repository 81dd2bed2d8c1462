//! A volume that this process opens itself, or that another process serves to it.
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_local::{Connection, FileId, Patience, socket_path};

use crate::client::Client;
use crate::config::VolumeConfig;
use crate::host::{HostOptions, RECORD_VARIABLE, VolumeHost};
use crate::open_options::OpenOptions;
use crate::origin::Origin;

/// Opens the volume of the VOLUME.toml at `path` for synchronous callers. If the volume is served for local clients
/// (`tantalum serve --socket`), this connects to the server. `path` may also be the socket of such a server.
///
/// # Errors
/// `Locked` if another process has the volume open and does not serve it; `Io` if it is served and this process may not
/// connect, or if the file cannot be opened; as [`VolumeHost::open`].
pub fn open_client(path: &Path) -> Result<Client> {
    open_client_with(path, OpenOptions::default())
}

/// As [`open_client`], with `options`.
///
/// # Errors
/// As [`open_client`].
pub fn open_client_with(path: &Path, options: OpenOptions) -> Result<Client> {
    open_client_hosted(path, HostOptions { open: options, ..HostOptions::default() })
}

/// As [`open_client`], for callers that only read. If this process opens the volume, it opens it read-only and shares it
/// with other readers. A client of a server may still write, because that costs nothing.
///
/// # Errors
/// As [`open_client`].
pub fn open_reader(path: &Path) -> Result<Client> {
    let config = VolumeConfig::read(path)?;
    match find(&config, OpenOptions::default())? {
        Some(client) => Ok(client),
        None => open_client_with(path, OpenOptions::READ_ONLY),
    }
}

/// As [`open_client`]; if this process opens the volume, it uses `options`.
///
/// # Errors
/// As [`open_client`].
pub fn open_client_hosted(path: &Path, options: HostOptions) -> Result<Client> {
    if std::fs::metadata(path).is_ok_and(|status| status.file_type().is_socket()) {
        return connect(path, options.open);
    }
    let config = VolumeConfig::read(path)?;
    if let Some(client) = find(&config, options.open)? {
        return Ok(client);
    }
    let opened = VolumeHost::open(config.clone(), options.clone());
    match opened {
        Ok(host) => Ok(host.client()),
        // A server may just have started.
        Err(error) if error.kind() == ErrorKind::Locked => {
            find(&config, options.open)?.ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Connects to the server that listens for local clients at `socket`.
///
/// # Errors
/// `Io` if there is no server, or this process may not connect.
pub fn connect(socket: &Path, options: OpenOptions) -> Result<Client> {
    match tantalum_local::connect(socket, options.read_only, Patience::default())? {
        Some(connection) => client(connection, None, options),
        None => {
            let context = format!("{}: no server serves a volume there", socket.display());
            Err(Error::new(ErrorKind::Io, context))
        }
    }
}

/// The identity of the volume's file, for servers of the volume.
pub fn volume_file(config: &VolumeConfig) -> Option<FileId> {
    Origin::of(config).map(|origin| origin.file())
}

/// A client of the server of the volume of `config`; `None` if nobody serves it.
fn find(config: &VolumeConfig, options: OpenOptions) -> Result<Option<Client>> {
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
    client(connection, origin, options).map(Some)
}

fn client(connection: Connection, origin: Option<Origin>, options: OpenOptions) -> Result<Client> {
    if std::env::var_os(RECORD_VARIABLE).is_some_and(|file| !file.is_empty()) {
        let context = format!(
            "{RECORD_VARIABLE} is set, and the volume is served by another process, which alone can record \
             (tantalum serve --record)"
        );
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let read_only = options.read_only || connection.welcome().read_only;
    Ok(Client::served(connection).opened_at(origin, read_only))
}
