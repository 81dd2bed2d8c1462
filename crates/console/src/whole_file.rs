//! Output files that get their names only when they are complete. Until then, an older file of that name stays. So
//! neither a failure nor a kill leaves an incomplete file that looks complete.
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Beginning and end of the names of incomplete files.
const UNFINISHED: (&str, &str) = (".tantalum-", ".part");

/// A file that is being written. It is removed if it is dropped before it is complete.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl WholeFile {
    /// Begins the file that will be at `path`. If `path` is a link, the file that it leads to will be replaced. A
    /// replaced file keeps its permissions.
    ///
    /// # Errors
    /// If no file can be made in the folder; `NotFound` names a folder that does not exist.
    pub fn begin(path: &Path) -> Result<WholeFile> {
        let there = path.metadata().ok();
        let path = if there.is_some() { path.canonicalize()? } else { path.to_owned() };
        let mode = there.as_ref().map_or(0o666, Metadata::mode);
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED.0).suffix(UNFINISHED.1);
        builder.permissions(PermissionsExt::from_mode(mode & 0o666));
        let file =
            builder.tempfile_in(folder_of(&path)).map_err(|error| without_name(&error, &path))?;
        if there.is_some() {
            // The mask of the process applies only to new files.
            file.as_file().set_permissions(PermissionsExt::from_mode(mode & 0o777))?;
        }
        Ok(WholeFile { path, file })
    }

    /// The file, to write to.
    ///
    /// # Errors
    /// If the process may not have another open file.
    pub fn sink(&self) -> Result<File> {
        self.file.as_file().try_clone()
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// If its content cannot be made durable, or it cannot get its name. Then the older file of that name stays.
    pub fn complete(self) -> Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// The folder of the file at `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether both paths lead to the same file. If neither exists, whether they name the same new file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => {
            let folders = (folder_of(one).canonicalize(), folder_of(other).canonicalize());
            let is_same_folder = matches!(folders, (Ok(one), Ok(other)) if one == other);
            is_same_folder && one.file_name() == other.file_name()
        }
        _ => false,
    }
}

/// Why there can be no file at `path`, if what should be its folder is none; `None` if it is one.
pub fn no_folder(path: &Path) -> Option<String> {
    let folder = folder_of(path);
    let shown = folder.display();
    match folder.metadata() {
        Ok(there) if there.is_dir() => None,
        Ok(_) => Some(format!("{shown} is not a folder: name another place")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Some(format!("the folder {shown} does not exist: make it, or name another place"))
        }
        // Whoever makes the file gets the reason.
        Err(_) => None,
    }
}

/// The `error` of making the file at `path`, without the temporary name of the incomplete file, which the user does not
/// know.
fn without_name(error: &Error, path: &Path) -> Error {
    match no_folder(path) {
        Some(why) => Error::new(error.kind(), why),
        None => error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_appears_when_it_is_complete_and_else_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let read = || std::fs::read_to_string(&path).ok();
        for (before, after) in [(None, "one"), (Some("one"), "two")] {
            let given_up = WholeFile::begin(&path).unwrap();
            given_up.sink().unwrap().write_all(b"part").unwrap();
            drop(given_up);
            let file = WholeFile::begin(&path).unwrap();
            file.sink().unwrap().write_all(after.as_bytes()).unwrap();
            assert_eq!(read().as_deref(), before);
            file.complete().unwrap();
            assert_eq!(read().as_deref(), Some(after));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = WholeFile::begin(&folder.path().join("none/out")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let missing = format!("the folder {} does not exist", folder.path().join("none").display());
        assert!(error.to_string().starts_with(&missing), "{error}");
        let error = WholeFile::begin(&path.join("out")).unwrap_err();
        assert!(error.to_string().contains("out is not a folder"), "{error}");
    }

    #[test]
    fn files_are_told_by_what_they_are_and_not_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "").unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        std::fs::write(at("b"), "").unwrap();
        assert!(is_same_file(&at("a"), &at("hard")) && !is_same_file(&at("a"), &at("b")));
        assert!(is_same_file(&at("new"), &at("./new")) && !is_same_file(&at("new"), &at("newer")));
        assert!(!is_same_file(&at("a"), &at("new")));
    }
}
