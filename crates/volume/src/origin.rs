//! Which file a volume was opened from, to tell whether its name still stands for it.
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::{MediaType, VolumeConfig};

/// A volume's file, as it was when the volume was opened.
pub(crate) struct Origin {
    path: PathBuf,
    file: FileId,
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
        let file = FileId::of(&path)?;
        Some(Origin { path, file })
    }

    /// Whether there is another file now, or none.
    pub(crate) fn has_moved(&self) -> bool {
        FileId::of(&self.path).as_ref() != Some(&self.file)
    }
}
