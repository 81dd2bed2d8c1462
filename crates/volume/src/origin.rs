//! Which file a volume was opened from, to tell whether its name still stands for it.
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use tantalum_local::FileId;

use crate::config::{MediaType, VolumeConfig};

/// A volume's file, as it was when the volume was opened.
pub(crate) struct Origin {
    path: PathBuf,
    file: FileId,
    /// To look at the file alone: a lock is not held by it.
    descriptor: OwnedFd,
}

/// Which file that is. It is not given to another file while this one is open.
fn file_id(status: &Statx) -> FileId {
    FileId { device: (status.stx_dev_major, status.stx_dev_minor), inode: status.stx_ino }
}

/// Which file it is and how many names it has, and nothing else of `path` in `folder`. Were its times asked
/// for, Linux (since 6.13) would give the next write a time of its own, and a durable write would have to
/// write the inode as well: a transaction of SQLite then takes a quarter longer.
fn status(folder: impl AsFd, path: &Path) -> Option<Statx> {
    let wanted = StatxFlags::INO | StatxFlags::NLINK;
    rustix::fs::statx(folder, path, AtFlags::EMPTY_PATH, wanted).ok()
}

impl Origin {
    /// Where the volume of `config`, which is open, has its file; `None` where it has none.
    pub(crate) fn of(config: &VolumeConfig) -> Option<Origin> {
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
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Whether the file has no name any more. A third of what [`has_moved`](Self::has_moved) costs.
    pub(crate) fn is_deleted(&self) -> bool {
        status(&self.descriptor, Path::new("")).is_some_and(|status| status.stx_nlink == 0)
    }

    /// Whether there is another file at its place now, or none.
    pub(crate) fn has_moved(&self) -> bool {
        status(CWD, &self.path).map(|status| file_id(&status)).as_ref() != Some(&self.file)
    }
}
