//! The source of a trace's bytes: plain, gzip or zstd, recognized by content, not by name.
use crate::compression::{MAGIC_BYTES, Packing};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, FileType, metadata};
use std::io::{BufReader, Cursor, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use tantalum_base::file_kind::words_for;
use tantalum_base::{Error, ErrorKind, Result};

use crate::generate::NAMES;

/// Bytes of a trace.
pub type Source = Box<dyn Read + Send>;

/// Opens the file or the pipe at `path` without decompression; `-` is the standard input.
///
/// # Errors
/// If there is something else, or a pipe to which no program writes.
pub fn open(path: &Path) -> Result<Source> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    // To open a pipe would wait for a program that writes to it, perhaps for ever.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = metadata(path).and_then(|there| {
        refuse_other(there.file_type())?;
        let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
        let kind = file.metadata()?.file_type();
        refuse_other(kind)?;
        Ok((kind, file))
    });
    let (kind, file) = opened.map_err(|error| cannot_open(path, error))?;
    let first = if kind.is_fifo() { begin_pipe(path, &file)? } else { Vec::new() };
    let waits = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags & !OFlags::NONBLOCK));
    waits.map_err(|error| cannot_open(path, error.into()))?;
    Ok(Box::new(Cursor::new(first).chain(file)))
}

/// Refuses everything except a file and a pipe.
fn refuse_other(kind: FileType) -> std::io::Result<()> {
    if kind.is_file() || kind.is_fifo() {
        return Ok(());
    }
    let words = format!("it is {}: a file is needed, or - for the standard input", words_for(kind));
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, words))
}

/// The byte that the pipe at `path` has ready, if there is one.
///
/// # Errors
/// `InvalidInput` if no program writes to the pipe.
fn begin_pipe(path: &Path, mut pipe: &File) -> Result<Vec<u8>> {
    let mut first = [0];
    match pipe.read(&mut first) {
        Ok(0) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "{} is a pipe, and no program writes to it: start that program first, or name a file",
                path.display()
            ),
        )),
        Ok(_) => Ok(first.to_vec()),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(Vec::new()),
        Err(error) => Err(cannot_open(path, error)),
    }
}

/// The error if `path` cannot be opened. If it does not exist, the user may have meant a generator.
fn cannot_open(path: &Path, error: std::io::Error) -> Error {
    let mut context = format!("cannot open {}", path.display());
    let name = path.to_str().and_then(|text| text.split_once(':')).map(|(name, _)| name);
    if let Some(name) = name.filter(|_| error.kind() == std::io::ErrorKind::NotFound) {
        context.push_str(&format!(" (and {name:?} is not a generator: {})", NAMES.join(", ")));
    }
    Error::io(context, error)
}

/// Decompresses `raw` if its first bytes show a compression; `path` is for messages.
///
/// # Errors
/// `Unsupported` for a compression that cannot be read, and for an archive.
pub fn decompress(path: &Path, mut raw: Source) -> Result<Source> {
    let failed = |error| Error::io(format!("cannot read {}", path.display()), error);
    let mut head = Vec::new();
    raw.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    let packing = Packing::of(&head);
    let whole = Cursor::new(head).chain(raw);
    Ok(match packing {
        None => Box::new(whole),
        Some(Packing::Gzip) => {
            Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole)))
        }
        Some(Packing::Zstd) => Box::new(zstd::Decoder::new(whole).map_err(failed)?),
        Some(other @ Packing::Other(_)) => return Err(other.refuse(path, false)),
    })
}
