//! The places of a volume's stores, under any name, and checks that they are available.
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tantalum_base::{ErrorKind, Result, ResultExt};
use tantalum_media::block_store::{FileStore, FileStoreOptions, Place, is_there};
use tantalum_runtime::Live;

use crate::config::VolumeConfig;
use crate::fault_points::Fault;
use crate::refusals::{AMONG_DEVICES, NO_FOLDER, SAME_FILE};

/// The folder of the machine's device nodes.
const DEVICES: &str = "/dev";

/// The magic numbers of file systems in memory: tmpfs, ramfs.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// The stores of a volume on files or devices, with their names.
fn stores(config: &VolumeConfig) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut stores = Vec::new();
    if let Some(home) = &config.home {
        stores.push(("home", home.home_path(&config.path)));
        stores.push(("journal", home.journal_path(&config.path)));
    }
    let data = if config.home.is_some() { "flash" } else { "volume" };
    stores.push((data, config.data_path()?));
    Ok(stores)
}

/// Refuses to create a volume if one of its stores is not available: if two stores are the same file, a file would be lost at a
/// restart, or a store is in use. All stores are checked before anything is written, even if their content may be given up.
///
/// # Errors
/// `InvalidInput` with the path and advice; as [`FileStore::open`].
pub(crate) fn refuse_places(live: &Live, config: &VolumeConfig) -> Result<()> {
    refuse_shared_places(config)?;
    for (store, path) in stores(config)? {
        if is_file_among_devices(&path) {
            let context = not_a_device(store, &path);
            return Err(AMONG_DEVICES.error(ErrorKind::InvalidInput, context));
        }
    }
    if Fault::StoresNotAskedFirst.is_planted() {
        return Ok(());
    }
    for (store, path) in stores(config)? {
        if is_there(&path)? {
            FileStore::open(live, &path, FileStoreOptions::default())
                .context(|| format!("the {store}"))?;
        }
    }
    Ok(())
}

/// Refuses a tiered volume if the folder of its flash or journal does not exist. The configuration's folder is exempt: it is
/// created with the configuration.
///
/// # Errors
/// `Io` with the path.
pub(crate) fn refuse_missing_folders(config: &VolumeConfig) -> Result<()> {
    if config.home.is_none() {
        return Ok(());
    }
    let is_made = config.path.parent().map(std::path::absolute).and_then(|folder| folder.ok());
    for (store, path) in stores(config)? {
        let absolute = std::path::absolute(&path).context(|| store)?;
        let Some(folder) = absolute.parent().filter(|_| store != "home") else { continue };
        if is_made.as_deref() != Some(folder) && !is_there(folder)? {
            let context = format!(
                "the {store} {}: {NO_FOLDER} {}: make it, or name another place",
                path.display(),
                folder.display()
            );
            return Err(NO_FOLDER.error(ErrorKind::Io, context));
        }
    }
    Ok(())
}

fn not_a_device(store: &str, path: &Path) -> String {
    let is_there = path.exists();
    let path = path.display();
    let what = format!("the {store} would be the file {path}, {AMONG_DEVICES}");
    match store {
        "journal" => format!(
            "{what}: name one on storage that stays, with --journal PATH, or as home.journal in the configuration"
        ),
        _ if is_there => {
            format!("{what}: that is not a block device: name one, or a file elsewhere")
        }
        _ => format!("{what}: there is no device of that name"),
    }
}

/// Refuses a tiered volume if two of its stores are the same file: one would overwrite the other.
fn refuse_shared_places(config: &VolumeConfig) -> Result<()> {
    let stores = stores(config)?;
    for (at, (what, path)) in stores.iter().enumerate() {
        for (other, its) in &stores[..at] {
            if Place::of(path) == Place::of(its) {
                let (path, its) = (path.display(), its.display());
                let context = format!(
                    "{what} and {other} {SAME_FILE} ({path}, {its}): each needs one of its own"
                );
                return Err(SAME_FILE.error(ErrorKind::InvalidInput, context));
            }
        }
    }
    Ok(())
}

/// The device number of the file system that holds a file at `path`, or would hold it, if that file system is in memory.
pub(crate) fn file_system_in_memory(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let there = if path.exists() { path } else { folder.unwrap_or(Path::new(".")) };
    let kind = rustix::fs::statfs(there).ok()?.f_type as u32;
    let number = std::fs::metadata(there).ok()?.dev();
    IN_MEMORY.contains(&kind).then_some(number)
}

/// Whether a file at `path` is, or would be, a regular file among the device nodes.
fn is_file_among_devices(path: &Path) -> bool {
    let devices = file_system_in_memory(Path::new(DEVICES));
    !Place::of(path).is_device() && devices.is_some() && file_system_in_memory(path) == devices
}

/// The journal of a tiered volume, if it is in memory: a restart of the machine would lose it.
pub fn journal_in_memory(config: &VolumeConfig) -> Option<PathBuf> {
    let journal = config.home.as_ref()?.journal_path(&config.path);
    let is_lost = !Place::of(&journal).is_device() && file_system_in_memory(&journal).is_some();
    is_lost.then_some(journal)
}

/// Possible paths of another volume's journal for the same home: beside the home's path in this configuration, and beside the
/// path to which its links lead.
pub(crate) fn journals_of_home(config: &VolumeConfig) -> Vec<PathBuf> {
    let Some(home) = &config.home else { return Vec::new() };
    let mut journals = vec![home.journal_path(&config.path)];
    if let Ok(real) = home.home_path(&config.path).canonicalize() {
        let mut name = real.into_os_string();
        name.push(".journal");
        journals.push(name.into());
    }
    journals.dedup_by(|path, other| Place::of(path) == Place::of(other));
    journals
}
