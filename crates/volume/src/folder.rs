//! Makes names in a file's folder durable.
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
