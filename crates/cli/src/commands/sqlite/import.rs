//! `tantalum sqlite import FILE.db VOLUME.toml`.
use super::{Size, copy, error_of_volume, on_volume, said_once};
use crate::commands::room::tell_room;
use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use tantalum::Volume;
use tantalum_base::ErrorKind;
use tantalum_base::file_kind::words_for;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::{discard_unfinished, print_line};
use tantalum_report::number;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{Kind, NewConfig, NewSettings};
use tantalum_volume::superblock::Superblock;
use tantalum_volume::{VolumeConfig, config, create_volume};

/// The smallest volume that is made, and the unit that its size is rounded up to.
const MIB: u64 = 1 << 20;
const CAPACITY_MIN_MIB: u64 = 64;

/// Copy a database from a file to a volume, which is made if it does not exist
///
/// A new volume is twice as large as the database: the database grows, and VACUUM needs room for a second copy. The
/// copy is one transaction: after a failure or a kill the volume holds no part of it.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The file of the database
    #[arg(value_name = "FILE.db")]
    file: PathBuf,
    /// The volume's configuration; it is written if it does not exist
    #[arg(value_name = "VOLUME.toml")]
    volume: PathBuf,
    /// Capacity of a new volume; by default twice the size of the database
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Replace a database on the volume
    #[arg(long)]
    force: bool,
}

/// The extension, beside the program or in the path of the system's loader.
const EXTENSION: &str = "libtantalum_sqlite.so";

const AFTER_HELP: &str = "Examples:
  tantalum sqlite import app.db app/VOLUME.toml
  tantalum sqlite import app.db app/VOLUME.toml --capacity 20GB
  tantalum sqlite import app.db app/VOLUME.toml --force";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let (file, path) = (&args.file, &args.volume);
    // SQLite would only report that it cannot be opened.
    let metadata = std::fs::metadata(file).with_context(|| {
        format!("{} cannot be opened: name the database's file", file.display())
    })?;
    if metadata.is_dir() {
        bail!("{} is a folder: name the database's file in it", file.display());
    }
    if !metadata.is_file() {
        // SQLite would wait for the other end of a pipe.
        let kind = words_for(metadata.file_type());
        bail!("{} is {kind}: name the database's file", file.display());
    }
    let from = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(said_once)
        .with_context(|| format!("opening {}", file.display()))?;
    let size = Size::of(&from)
        .map_err(said_once)
        .with_context(|| format!("{} is not a database of SQLite", file.display()))?;
    let new = NewConfig::at(path);
    let made = make_where_missing(path, args.capacity.as_deref(), &size)?;
    let imported = fill(args, &from);
    if let (Err(_), Some((config, _))) = (&imported, &made) {
        // An incomplete volume could be mistaken for the database.
        discard_unfinished(&config.data_path()?);
        new.discard();
    }
    imported?;
    if let Some((config, superblock)) = made {
        tell_room(&config, superblock.store_bytes())?;
    }
    print_line(&format!(
        "{}: {} from {} ({} pages of {} bytes)",
        path.display(),
        human_bytes(size.bytes()),
        file.display(),
        number::thousands(size.pages),
        number::thousands(size.page_bytes),
    ))?;
    print_line(&how_to_open(path)?)?;
    Ok(Verdict::Good)
}

/// Instructions for opening the database on the volume at `path`.
fn how_to_open(path: &Path) -> anyhow::Result<String> {
    let extension = std::env::current_exe()?.with_file_name(EXTENSION);
    let extension = if extension.exists() { extension } else { EXTENSION.into() };
    let uri = uri_of(&std::path::absolute(path)?);
    Ok(format!(
        "open it: sqlite3 -cmd \".load '{}'\" -cmd \".open '{uri}'\" (from Python and others: docs/sqlite.md)",
        extension.with_extension("").display()
    ))
}

/// The database's name for SQLite. Characters that a URI or the shell's quotes would interpret are escaped.
fn uri_of(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?vfs=tantalum"
}

/// A new volume for a database of this size, if there is none at `path`.
fn make_where_missing(
    path: &Path,
    capacity: Option<&str>,
    size: &Size,
) -> anyhow::Result<Option<(VolumeConfig, Superblock)>> {
    if !path.exists() {
        let mib = (2 * size.bytes()).div_ceil(MIB).max(CAPACITY_MIN_MIB);
        let capacity = capacity.map_or_else(|| format!("{mib}MiB"), str::to_owned);
        let config = config::write_new(path, &capacity, &NewSettings::default())?;
        return make(config).map(Some);
    }
    let config = VolumeConfig::read(path)?;
    if let Some(asked) = capacity
        && asked != config.device.capacity
    {
        bail!(
            "{} exists already, with a capacity of {}: leave --capacity out, or run `tantalum \
             resize {0} {asked}` first",
            path.display(),
            config.device.capacity,
        );
    }
    // A configuration without data: left behind by an import that was killed early.
    let is_made = config.kind != Kind::Flash || config.data_path()?.exists();
    if is_made { Ok(None) } else { make(config).map(Some) }
}

/// Makes the volume of `config`, or leaves nothing behind.
fn make(config: VolumeConfig) -> anyhow::Result<(VolumeConfig, Superblock)> {
    let live = Live::new(LiveOptions::default())?;
    let (handle, new) = (live.clone(), config.clone());
    let created = live.run(async move { create_volume(&handle, &new, false).await });
    let superblock = match created.inspect_err(|_| discard_unfinished(&config.path)) {
        Err(error) if error.kind() == ErrorKind::OutOfSpace => {
            return Err(error).context(
                "there is no room for the volume: make room, name another place, or choose a \
                 smaller --capacity (by default it is twice as large as the database)",
            );
        }
        created => created?,
    };
    Ok((config, superblock))
}

/// Advice if an import cannot replace the content of a volume.
fn anew(path: &Path) -> String {
    format!(
        " (to give up all that the volume holds: `tantalum create {} --force`, then import again)",
        path.display()
    )
}

fn fill(args: &Args, from: &Connection) -> anyhow::Result<()> {
    let path = &args.volume;
    let to = on_volume(path, Volume::open(path)?);
    let mut to = to.with_context(|| format!("importing {}{}", args.file.display(), anew(path)))?;
    if Size::of(&to)?.pages > 0 && !args.force {
        bail!("{} holds a database already (--force replaces it)", path.display());
    }
    if let Err(error) = copy(from, &mut to) {
        let why = error_of_volume(&to);
        // A new database takes pages of the old one, and the cache reads them first.
        let is_lost = why.as_ref().is_some_and(|why| why.contains("lost by the medium"));
        let advice = if is_lost { anew(path) } else { String::new() };
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        bail!("importing {}{advice}: {error:#}{why}", args.file.display());
    }
    to.close().map_err(|(_, error)| error).context("closing the database")
}
