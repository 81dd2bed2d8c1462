//! Makes names in a file's folder durable.
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io::Result;
use std::path::Path;

/// Makes the name of the file at `path` durable after it was created or renamed. Without this, a power
/// cut may remove the name, and with it the whole file, synced or not.
pub(crate) fn sync_name(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Renames the file `from` to `to`, unless there is one of that name.
///
/// # Errors
/// `AlreadyExists` if there is; as of the file system.
pub(crate) fn rename_new(from: &Path, to: &Path) -> Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system, such as NFS, cannot do this in one step. A second name is exclusive, too.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}
