//! What a path leads to, whatever it is called: a file may have several names, by links.
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};

/// Whether there is anything at `path`.
///
/// # Errors
/// `Io` where the path does not answer now: there may be something, which is not to be taken for lost.
pub fn is_there(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|error| {
        let context = format!(
            "looking whether {} is there: {error}; nothing was changed, and this may pass: try again",
            path.display()
        );
        Error::new(ErrorKind::Io, context)
    })
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A block device, by its number.
    Device(u64),
    /// Anything else that is there.
    File {
        /// The device of its file system.
        device: u64,
        /// Its number there.
        inode: u64,
    },
    /// Nothing yet: a name in a folder.
    New(PathBuf),
}

impl Place {
    /// The one at `path`.
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
