//! `tantalum sqlite export VOLUME.toml FILE.db`.
use super::{Size, copy, error_of_volume, on_volume};
use anyhow::{Context, bail};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tantalum::Volume;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_console::whole_file::{folder_of, no_folder};
use tantalum_media::block_store::PRIVATE_MODE;
use tantalum_report::number;
use tantalum_volume::{VolumeConfig, new_file_mode};

/// Copy a database from a volume to a plain file, which any SQLite can open
///
/// Nothing is written to the volume. The file appears when it is complete and durable.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    #[arg(value_name = "VOLUME.toml")]
    volume: PathBuf,
    /// The file, which must not exist
    #[arg(value_name = "FILE.db")]
    file: PathBuf,
}

const AFTER_HELP: &str = "Examples:
  tantalum sqlite export app/VOLUME.toml app.db";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let (path, file) = (&args.volume, &args.file);
    if file.symlink_metadata().is_ok() {
        bail!("{} exists already: name a new file, or move it away", file.display());
    }
    let from = on_volume(path, Volume::open_read_only(path)?)?;
    let size = Size::of(&from)?;
    if size.pages == 0 {
        bail!(
            "{} holds no database yet: `tantalum sqlite import` or SQLite makes one",
            path.display()
        );
    }
    let mode = VolumeConfig::read(path).map_or(PRIVATE_MODE, |config| new_file_mode(&config));
    write(&from, file, mode).with_context(|| format!("exporting to {}", file.display()))?;
    print_line(&format!(
        "{}: {} from {} ({} pages of {} bytes)",
        file.display(),
        human_bytes(size.bytes()),
        path.display(),
        number::thousands(size.pages),
        number::thousands(size.page_bytes),
    ))?;
    Ok(Verdict::Good)
}

/// Prefix of the names of incomplete files.
const UNFINISHED: &str = ".exporting-";

/// Removes files in `folder` that killed exports left behind. A running export holds a lock on its file.
fn remove_left_behind(folder: &Path) {
    // A file that cannot be read or removed does not prevent the export.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if is_ours
            && let Ok(file) = std::fs::File::open(entry.path())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            // An empty file may be new, and not yet locked.
            && file.metadata().is_ok_and(|about| about.len() > 0)
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes the database to a new file with the permissions of the volume. It gets its name when it is complete.
fn write(from: &Connection, file: &Path, mode: u32) -> anyhow::Result<()> {
    if let Some(why) = no_folder(file) {
        bail!(why);
    }
    let folder = folder_of(file);
    let permissions = std::fs::Permissions::from_mode(mode);
    remove_left_behind(folder);
    let mut builder = tempfile::Builder::new();
    let unfinished = builder.prefix(UNFINISHED).permissions(permissions).tempfile_in(folder)?;
    // Held until the end of this process; a kill releases it.
    flock(unfinished.as_file(), FlockOperation::LockExclusive)?;
    let mut to = Connection::open(unfinished.path())?;
    // The copy needs no journal: no other program can find the file before it is complete.
    to.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")?;
    if let Err(error) = copy(from, &mut to) {
        return match error_of_volume(from) {
            Some(why) => {
                Err(error.context(format!("{why} (`tantalum check` lists all that is damaged)")))
            }
            None => Err(error),
        };
    }
    to.close().map_err(|(_, error)| error)?;
    unfinished.as_file().sync_all()?;
    unfinished.persist_noclobber(file)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}
