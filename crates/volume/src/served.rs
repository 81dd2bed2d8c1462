//! A volume for those who do not care which process has it open: this one, or one that serves it.
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_local::{Connection, FileId, Patience, socket_path};

use crate::client::Client;
use crate::config::VolumeConfig;
use crate::host::{HostOptions, RECORD_VARIABLE, VolumeHost};
use crate::open_options::OpenOptions;
use crate::origin::Origin;

/// Opens the volume of the VOLUME.toml at `path` for synchronous callers. Where it is served for local clients
/// (`tantalum serve --socket`), that server does the work. `path` may also be such a server's socket.
///
/// # Errors
/// `Locked` where another process has it open, and does not serve it; `Io` where it is served and this process may not
/// connect, or where the file cannot be opened; as [`VolumeHost::open`].
pub fn open_client(path: &Path) -> Result<Client> {
    open_client_with(path, OpenOptions::default())
}

/// As [`open_client`], as `options` say.
///
/// # Errors
/// As [`open_client`].
pub fn open_client_with(path: &Path, options: OpenOptions) -> Result<Client> {
    open_client_hosted(path, HostOptions { open: options, ..HostOptions::default() })
}

/// As [`open_client`], for one who only reads. Where this process opens the volume, it writes nothing to it and shares it
/// with others who read. A server's client may write all the same, as that costs nobody anything.
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

/// As [`open_client`]; where this process opens the volume, as `options` say.
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
        // Its server may just have begun.
        Err(error) if error.kind() == ErrorKind::Locked => {
            find(&config, options.open)?.ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Connects to the server that listens for local clients at `socket`.
///
/// # Errors
/// `Io` where nobody does, or it is not allowed.
pub fn connect(socket: &Path, options: OpenOptions) -> Result<Client> {
    match tantalum_local::connect(socket, options.read_only, Patience::default())? {
        Some(connection) => client(connection, None, options),
        None => {
            let context = format!("{}: nobody serves a volume there", socket.display());
            Err(Error::new(ErrorKind::Io, context))
        }
    }
}

/// Which file the volume of `config` is in, for those who serve it.
pub fn volume_file(config: &VolumeConfig) -> Option<FileId> {
    Origin::of(config).map(|origin| origin.file())
}

/// The client of whoever serves the volume of `config`; `None` where nobody does.
fn find(config: &VolumeConfig, options: OpenOptions) -> Result<Option<Client>> {
    if options.accept_loss {
        // That is for who opens the file.
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
