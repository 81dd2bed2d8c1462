//! Opens a path that a user gave, if it leads to a file or a block device.
//!
//! Opening a pipe may block until its other end is opened. Opening a device may already have an effect, such as
//! rewinding a tape. So other kinds of files are not opened.
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, FileType, OpenOptions, metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use tantalum_base::file_kind::words_for;

/// The target of a path.
#[derive(Debug)]
pub enum Named {
    /// A file or a block device, open.
    Usable(File),
    /// Anything else, in words, such as "a pipe".
    Other(&'static str),
}

/// Opens `path` with `options` and `flags`, without blocking.
///
/// # Errors
/// Those of the system.
pub fn open_named(path: &Path, options: &OpenOptions, flags: OFlags) -> io::Result<Named> {
    // If the path cannot be examined, or does not exist yet, the attempt to open it reports that.
    if let Ok(there) = metadata(path)
        && !is_usable(there.file_type())
    {
        return Ok(Named::Other(words_for(there.file_type())));
    }
    let flags = flags | OFlags::NONBLOCK;
    let file = options.clone().custom_flags(flags.bits().cast_signed()).open(path)?;
    // The file may have been replaced since it was examined.
    let kind = file.metadata()?.file_type();
    if !is_usable(kind) {
        return Ok(Named::Other(words_for(kind)));
    }
    // With this flag, reads and writes that would block fail instead.
    fcntl_setfl(&file, fcntl_getfl(&file)? & !OFlags::NONBLOCK)?;
    Ok(Named::Usable(file))
}

fn is_usable(kind: FileType) -> bool {
    kind.is_file() || kind.is_block_device()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::net::UnixListener;

    #[test]
    fn nothing_but_files_is_opened_and_nobody_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, socket, file] = ["pipe", "socket", "file"].map(|name| folder.path().join(name));
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        let (mut reads, mut writes) = (OpenOptions::new(), OpenOptions::new());
        reads.read(true);
        writes.write(true).create(true);
        for options in [&reads, &writes] {
            for (path, kind) in [
                (&*pipe, "a pipe"),
                (&socket, "a socket"),
                (folder.path(), "a folder"),
                (Path::new("/dev/null"), "a device without blocks"),
            ] {
                let opened = open_named(path, options, OFlags::empty()).unwrap();
                assert!(matches!(opened, Named::Other(told) if told == kind), "{opened:?}");
            }
        }
        assert!(open_named(&file, &reads, OFlags::empty()).is_err());
        let Named::Usable(file) = open_named(&file, &writes, OFlags::empty()).unwrap() else {
            panic!("a new file")
        };
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
    }
}
