//! A file that is open with direct I/O, opened a second time through the system's page cache.
use super::file::FileStoreOptions;
use super::opening::io;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Live;
use tantalum_runtime::live::{LiveFile, ParentOnly};

/// File systems on which a direct write removes the old content from the page cache before it returns: ext2 to ext4,
/// XFS, btrfs, F2FS, and overlays of these. The numbers are the magic numbers that `statfs` reports.
const COHERENT: [rustix::fs::FsWord; 5] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x794c_7630];

/// A second descriptor of the file, which goes through the page cache.
pub(super) struct Cached {
    // Must be dropped before the descriptor is closed.
    _parent_only: ParentOnly,
    pub(super) file: LiveFile,
}

impl Cached {
    /// Opens a second descriptor of the file at `path`, which is open as `file` with `options`.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, or is another file now.
    pub(super) fn open(
        live: &Live,
        file: &File,
        path: &Path,
        options: FileStoreOptions,
    ) -> Result<Self> {
        let metadata = file.metadata().map_err(|error| io(path, "looking at", error))?;
        let cached = OpenOptions::new().read(true).write(!options.read_only).open(path);
        let cached = cached.map_err(|error| io(path, "opening", error))?;
        let again = cached.metadata().map_err(|error| io(path, "looking at", error))?;
        if (again.dev(), again.ino()) != (metadata.dev(), metadata.ino()) {
            let context = format!("{} was replaced while it was opened", path.display());
            return Err(Error::new(ErrorKind::Io, context));
        }
        let parent_only = ParentOnly::new(cached.as_fd())?;
        Ok(Cached { _parent_only: parent_only, file: LiveFile::new(live, cached) })
    }

    /// Opens `path` for reads through the page cache, if the file system keeps the page cache consistent with direct
    /// writes. Returns `None` otherwise.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn for_reads(
        live: &Live,
        file: &File,
        path: &Path,
        options: FileStoreOptions,
    ) -> Result<Option<Self>> {
        let is_coherent = || {
            let file_system = rustix::fs::fstatfs(file).map(|it| it.f_type);
            file_system.is_ok_and(|magic| COHERENT.contains(&magic))
        };
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if !options.cached_reads || !options.direct || !is_file || !is_coherent() {
            return Ok(None);
        }
        Self::open(live, file, path, FileStoreOptions { read_only: true, ..options }).map(Some)
    }
}
