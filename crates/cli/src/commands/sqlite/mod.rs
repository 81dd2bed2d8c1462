//! `tantalum sqlite`: databases from files to volumes and back.
mod export;
mod import;

use anyhow::{Context, bail};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tantalum::Volume;
use tantalum_console::Verdict;
use tantalum_console::progress::Progress;

/// Copy SQLite databases from files to volumes and back
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Import(import::Args),
    Export(export::Args),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> anyhow::Result<Verdict> {
        match self {
            Command::Import(args) => import::run(&args),
            Command::Export(args) => export::run(&args),
        }
    }
}

/// Pages of the database copied between two updates of the progress.
const PAGES_A_STEP: i32 = 1000;

/// Memory of a copy, in pages of 4 KiB: enough for read-ahead and for writes of many pages at once. A copy needs each
/// page once, so more would not help.
const MEMORY_PAGES: u16 = 8192;

/// The number of pages of a database, and their size in bytes.
struct Size {
    pages: u64,
    page_bytes: u64,
}

impl Size {
    fn of(database: &Connection) -> rusqlite::Result<Size> {
        let ask = |pragma| database.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let (pages, page_bytes) = (ask("page_count")?, ask("page_size")?);
        Ok(Size { pages: pages.unsigned_abs(), page_bytes: page_bytes.unsigned_abs() })
    }

    fn bytes(&self) -> u64 {
        self.pages * self.page_bytes
    }
}

/// The database on the open `volume` at `path`.
fn on_volume(path: &Path, volume: Volume) -> anyhow::Result<Connection> {
    // SQLite recognizes a volume by its name.
    if path.extension().is_none_or(|extension| extension != "toml") {
        bail!("{}: the configuration of a volume for SQLite ends in .toml", path.display());
    }
    let vfs = "tantalum-copy";
    // The handle is moved out, so that closing the connection closes the volume: the registered VFS keeps nothing open.
    let volume = Mutex::new(Some(volume));
    let opener = move |path: &Path| {
        let volume = volume.lock().unwrap_or_else(PoisonError::into_inner).take();
        volume.ok_or_else(|| {
            let context = format!("{} was closed", path.display());
            tantalum_base::Error::new(tantalum_base::ErrorKind::Closed, context)
        })
    };
    let options = tantalum_sqlite::Options {
        cache_pages: MEMORY_PAGES.into(),
        memory_pages: MEMORY_PAGES.into(),
        bulk_pages: 0,
        ..tantalum_sqlite::Options::default()
    };
    tantalum_sqlite::register(vfs, opener, options)?;
    let database =
        Connection::open_with_flags_and_vfs(path, OpenFlags::SQLITE_OPEN_READ_WRITE, vfs);
    let holds = || format!("{}: the content of the volume is not a database", path.display());
    let database = database.with_context(holds)?;
    Size::of(&database).with_context(holds)?;
    Ok(database)
}

/// An error of SQLite without its code, which would repeat the message.
fn said_once(error: rusqlite::Error) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}

/// The reason that the volume gave for the last error of a database on it. SQLite only reports that the disk is full, or
/// that it failed.
fn error_of_volume(database: &Connection) -> Option<String> {
    let told = database.query_row("PRAGMA tantalum_error", [], |row| row.get::<_, String>(0));
    told.ok().filter(|told| !told.is_empty())
}

/// Copies all of `from`, in one transaction.
fn copy(from: &Connection, to: &mut Connection) -> anyhow::Result<()> {
    let progress = Progress::steps("pages");
    let backup = Backup::new(from, to)?;
    loop {
        match backup.step(PAGES_A_STEP).map_err(said_once)? {
            StepResult::Done => break,
            StepResult::More => {
                let told = backup.progress();
                progress.step((told.pagecount - told.remaining) as usize, told.pagecount as usize);
            }
            _ => bail!("the database is in use: another program is writing to it"),
        }
    }
    progress.finish();
    Ok(())
}
