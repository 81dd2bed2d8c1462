//! The file from which a volume was opened, to check whether its path still names it.
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use tantalum_local::FileId;

use crate::config::{MediaType, VolumeConfig};

/// A volume's file, as it was when the volume was opened.
pub struct Origin {
    path: PathBuf,
    file: FileId,
    /// Opened only to examine the file: it does not hold the lock.
    descriptor: OwnedFd,
}

/// The identity of the file. The system does not reuse it for another file while this one is open.
fn file_id(status: &Statx) -> FileId {
    FileId { device: (status.stx_dev_major, status.stx_dev_minor), inode: status.stx_ino }
}

/// The identity and the link count of `path` in `folder`, and no other status. If the file's times were
/// requested, Linux (since 6.13) would give the next write a new timestamp, and a durable write would also
/// have to write the inode: a transaction of SQLite would then take a quarter longer.
fn status(folder: impl AsFd, path: &Path) -> Option<Statx> {
    let wanted = StatxFlags::INO | StatxFlags::NLINK;
    rustix::fs::statx(folder, path, AtFlags::EMPTY_PATH, wanted).ok()
}

impl Origin {
    /// The file of the volume of `config`, which is open; `None` if it has no file.
    pub fn of(config: &VolumeConfig) -> Option<Origin> {
        if config.media.media_type != MediaType::File {
            return None;
        }
        let path = config.data_path().ok()?;
        let descriptor =
            rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let file = file_id(&status(&descriptor, Path::new(""))?);
        Some(Origin { path, file, descriptor })
    }

    /// The file.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// Whether the file has no name any more. Takes a third of the time of [`has_moved`](Self::has_moved).
    pub fn is_deleted(&self) -> bool {
        status(&self.descriptor, Path::new("")).is_some_and(|status| status.stx_nlink == 0)
    }

    /// Whether its path now names another file, or none.
    pub fn has_moved(&self) -> bool {
        status(CWD, &self.path).map(|status| file_id(&status)).as_ref() != Some(&self.file)
    }
}
