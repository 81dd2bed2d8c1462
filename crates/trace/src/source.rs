//! The source of a trace's bytes: plain, gzip or zstd, recognized by content, not by name.
use crate::compression::{MAGIC_BYTES, Packing};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use tantalum_base::{Error, Result};

use crate::generate::NAMES;

/// Bytes of a trace.
pub type Source = Box<dyn Read + Send>;

/// Opens the file at `path` without decompression; `-` is the standard input.
pub fn open(path: &Path) -> Result<Source> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(|error| cannot_open(path, error))?;
    Ok(Box::new(file))
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
