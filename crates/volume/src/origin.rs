//! Which file a volume was opened from, to tell whether its name still stands for it.
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::{MediaType, VolumeConfig};

/// A volume's file, as it was when the volume was opened.
pub(crate) struct Origin {
    path: PathBuf,
    file: FileId,
    /// To look at the file alone: a lock is not held by it.
    descriptor: OwnedFd,
}

/// A file, whatever it is called. It is not given to another file while this one is open.
#[derive(PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> Option<FileId> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(FileId { device: metadata.dev(), inode: metadata.ino() })
    }
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
        let status = rustix::fs::fstat(&descriptor).ok()?;
        let file = FileId { device: status.st_dev, inode: status.st_ino };
        Some(Origin { path, file, descriptor })
    }

    /// Whether the file has no name any more. A third of what [`has_moved`](Self::has_moved) costs.
    pub(crate) fn is_deleted(&self) -> bool {
        rustix::fs::fstat(&self.descriptor).is_ok_and(|status| status.st_nlink == 0)
    }

    /// Whether there is another file at its place now, or none.
    pub(crate) fn has_moved(&self) -> bool {
        FileId::of(&self.path).as_ref() != Some(&self.file)
    }
}
