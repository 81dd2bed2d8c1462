//! The folder that a file is in.
use std::fs::File;
use std::io::Result;
use std::path::Path;

/// Makes durable that the file at `path` has this name: that it was created, or renamed to it. Without
/// it a power cut may take the name, and with it all that is in the file, synced or not.
pub(crate) fn sync_name(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}
