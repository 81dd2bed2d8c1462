//! The places of a volume's stores, whatever they are called: a file may have several names, by links.
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};

use crate::config::VolumeConfig;

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A block device, by its number.
    Device(u64),
    /// Anything else that is there.
    File { device: u64, inode: u64 },
    /// Nothing yet: a name in a folder.
    New(PathBuf),
}

fn place(path: &Path) -> Place {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_block_device() => Place::Device(metadata.rdev()),
        Ok(metadata) => Place::File { device: metadata.dev(), inode: metadata.ino() },
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default();
            Place::New(folder.join(path.file_name().unwrap_or_default()))
        }
    }
}

/// Refuses a tiered volume of which two stores are the same file: one would be written over the other.
///
/// # Errors
/// `InvalidInput` with both.
pub(crate) fn refuse_shared_places(config: &VolumeConfig) -> Result<()> {
    let Some(home) = &config.home else { return Ok(()) };
    let stores = [
        ("home", home.home_path(&config.path)),
        ("flash", config.data_path()?),
        ("journal", home.journal_path(&config.path)),
    ];
    for (at, (what, path)) in stores.iter().enumerate() {
        for (other, its) in &stores[..at] {
            if place(path) == place(its) {
                let (path, its) = (path.display(), its.display());
                let context = format!(
                    "{what} and {other} are the same file ({path}, {its}): each wants one of its own"
                );
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
    }
    Ok(())
}

/// Where the journal of another volume over the same home may be: beside the name by which it is given here, and beside the one
/// that links lead to.
pub(crate) fn journals_of_home(config: &VolumeConfig) -> Vec<PathBuf> {
    let Some(home) = &config.home else { return Vec::new() };
    let mut journals = vec![home.journal_path(&config.path)];
    if let Ok(real) = home.home_path(&config.path).canonicalize() {
        let mut name = real.into_os_string();
        name.push(".journal");
        journals.push(name.into());
    }
    journals.dedup_by(|path, other| place(path) == place(other));
    journals
}
