//! An error about lack of room, as a user reads it.
use std::path::Path;
use tantalum_base::size::human_bytes;
use tantalum_base::{Error, ErrorKind};

use crate::space::{Holder, holder_of};

/// Turns an error about lack of room into one that names `path` instead of the file's temporary name, the `bytes` needed there
/// and the bytes free.
pub(crate) fn told_as_no_room(error: Error, path: &Path, bytes: u64) -> Error {
    if error.kind() != ErrorKind::OutOfSpace {
        return error;
    }
    let free = match holder_of(path) {
        Ok(Holder::FileSystem { mounted_at, free_bytes: Some(free_bytes), .. }) => {
            let free = human_bytes(free_bytes);
            format!(", and the file system at {} has {free} free", mounted_at.display())
        }
        _ => String::new(),
    };
    // The cause may also be a quota, or the maximum size of a file.
    let told = error.to_string();
    let why = told.strip_prefix(error.context()).unwrap_or_default();
    let context = format!("no room for {} at {}{free}{why}", human_bytes(bytes), path.display());
    Error::new(ErrorKind::OutOfSpace, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_that_failed_is_told_by_the_path_that_was_asked_for() {
        let full = std::io::Error::from_raw_os_error(28);
        let error = Error::with_source(ErrorKind::OutOfSpace, "17 bytes at v.creating", full);
        let folder = tempfile::tempdir().unwrap();
        let told = told_as_no_room(error, &folder.path().join("v"), 3 << 20).to_string();
        assert!(told.starts_with("no room for 3.0 MiB at /"), "{told}");
        assert!(told.contains(" free: No space left on device"), "{told}");
        assert!(!told.contains("creating"), "{told}");
        let other = Error::new(ErrorKind::Io, "kept");
        assert_eq!(told_as_no_room(other, folder.path(), 1).to_string(), "kept");
    }
}
