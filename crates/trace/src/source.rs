//! Where the bytes of a trace come from: plain, gzip or zstd, told by content and not by name.
use crate::compression::{MAGIC_BYTES, Packing};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use tantalum_base::{Error, Result};

use crate::generate::NAMES;

/// Bytes of a trace.
pub type Source = Box<dyn Read + Send>;

/// Opens the file at `path`, as it stands; `-` is the standard input.
pub fn open(path: &Path) -> Result<Source> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(|error| cannot_open(path, error))?;
    Ok(Box::new(file))
}

/// Where nothing is there, the name of a generator may have been meant.
fn cannot_open(path: &Path, error: std::io::Error) -> Error {
    let mut context = format!("cannot open {}", path.display());
    let name = path.to_str().and_then(|text| text.split_once(':')).map(|(name, _)| name);
    if let Some(name) = name.filter(|_| error.kind() == std::io::ErrorKind::NotFound) {
        context.push_str(&format!(" (and {name:?} is no generator: {})", NAMES.join(", ")));
    }
    Error::io(context, error)
}

/// Decompresses `raw` where its first bytes say that it is compressed; `path` is for messages.
///
/// # Errors
/// `Unsupported` for a compression that is not read, and for an archive.
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
