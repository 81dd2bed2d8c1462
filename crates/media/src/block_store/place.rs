//! The identity of the file behind a path. A file may have several names, because of links.
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};

/// Whether anything exists at `path`.
///
/// # Errors
/// `Io` if the path cannot be examined now: a file may exist there, and must not be considered lost.
pub fn is_there(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|error| {
        let context = format!(
            "cannot tell whether {} exists: {error}; nothing was changed, and this may pass: try again",
            path.display()
        );
        Error::new(ErrorKind::Io, context)
    })
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A block device, by its number.
    Device(u64),
    /// Any other existing file.
    File {
        /// The device of its file system.
        device: u64,
        /// Its inode number on that device.
        inode: u64,
    },
    /// Nothing exists yet: a name in a folder.
    New(PathBuf),
}

impl Place {
    /// The target of `path`.
    pub fn of(path: &Path) -> Place {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.file_type().is_block_device() => {
                Place::Device(metadata.rdev())
            }
            Ok(metadata) => Place::File { device: metadata.dev(), inode: metadata.ino() },
            Err(_) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default();
                Place::New(folder.join(path.file_name().unwrap_or_default()))
            }
        }
    }

    /// Whether it is a block device.
    pub fn is_device(&self) -> bool {
        matches!(self, Place::Device(_))
    }
}
