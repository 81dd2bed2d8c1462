//! The packing of a file, recognized by its first bytes: compressions that can be read, and others and archives that
//! cannot.
//!
//! If the user names the format of a trace, its content is not checked for the format. Then only these bytes keep
//! packed data from being counted as records.
use std::path::Path;
use tantalum_base::{Error, ErrorKind};

/// Enough bytes to recognize all packings.
pub(crate) const MAGIC_BYTES: usize = 512;

/// The packing of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Packing {
    /// Gzip, of one member or of several.
    Gzip,
    /// Zstandard, of one or several frames; the first may be a skippable one, as written by pzstd.
    Zstd,
    /// A packing that cannot be read.
    Other(&'static Unread),
}

/// A packing that cannot be read.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Unread {
    /// Its common name.
    name: &'static str,
    /// The command that unpacks a file of it to the standard output.
    unpack: &'static str,
}

const BZIP2: Unread = Unread { name: "compressed with bzip2", unpack: "bzip2 -dc" };
const XZ: Unread = Unread { name: "compressed with xz", unpack: "xz -dc" };
const LZ4: Unread = Unread { name: "compressed with lz4", unpack: "lz4 -dc" };
const LZIP: Unread = Unread { name: "compressed with lzip", unpack: "lzip -dc" };
const ZIP: Unread = Unread { name: "a compressed zip archive", unpack: "unzip -p" };
const SEVEN_ZIP: Unread = Unread { name: "a compressed 7z archive", unpack: "7z x -so" };
const TAR: Unread = Unread { name: "a tar archive", unpack: "tar -xOf" };

/// The offset of a tar archive's magic.
const TAR_AT: usize = 257;

impl Packing {
    /// The packing that `head`, the first bytes of a file, shows; `None` if the file is not packed.
    pub(crate) fn of(head: &[u8]) -> Option<Packing> {
        let other = |unread| Some(Packing::Other(unread));
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Some(Packing::Zstd)
            }
            // A block begins with digits of pi; the end of a file without blocks has digits of pi's square root.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => {
                other(&BZIP2)
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => other(&XZ),
            // A frame has version 1; the older kind of file states no version.
            [0x04, 0x22, 0x4d, 0x18, 0x40..=0x7f, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => other(&LZ4),
            [b'L', b'Z', b'I', b'P', 0..=1, ..] => other(&LZIP),
            [b'P', b'K', 3, 4, ..] => other(&ZIP),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => other(&SEVEN_ZIP),
            _ => head.get(TAR_AT..)?.starts_with(b"ustar").then_some(Packing::Other(&TAR)),
        }
    }

    /// The error for the file at `path` with this packing, which cannot be read; `is_inner` if the file was inside
    /// another packing.
    pub(crate) fn refuse(self, path: &Path, is_inner: bool) -> Error {
        let (name, unpack) = match self {
            Packing::Gzip => ("compressed with gzip", "gzip -dc"),
            Packing::Zstd => ("compressed with zstd", "zstd -dc"),
            Packing::Other(Unread { name, unpack }) => (*name, *unpack),
        };
        let path = path.display();
        let context = if is_inner {
            format!(
                "inside its compression, {path} is {name}: only one layer is undone; unpack both, \
                 the inner one with `{unpack}`"
            )
        } else {
            format!(
                "{path} is {name}, which cannot be read (only gzip and zstd can): unpack it, for example with `{unpack} {path} > TRACE`"
            )
        };
        Error::new(ErrorKind::Unsupported, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_by_its_first_bytes_and_text_is_none() {
        let other = |unread| Some(Packing::Other(unread));
        let mut tar = vec![b'a'; 512];
        tar[TAR_AT..TAR_AT + 5].copy_from_slice(b"ustar");
        let of = Packing::of;
        assert_eq!(of(&[0x1f, 0x8b, 8, 0]), Some(Packing::Gzip));
        assert_eq!(of(&[0x28, 0xb5, 0x2f, 0xfd]), Some(Packing::Zstd));
        assert_eq!(of(&[0x5f, 0x2a, 0x4d, 0x18, 4, 0, 0, 0]), Some(Packing::Zstd));
        assert_eq!(of(b"BZh91AY&SY..."), other(&BZIP2));
        assert_eq!(of(b"BZh9\x17\x72\x45\x38\x50\x90"), other(&BZIP2));
        assert_eq!(of(b"\xfd7zXZ\0\0"), other(&XZ));
        assert_eq!(of(&[0x04, 0x22, 0x4d, 0x18, 0x64, 0x40]), other(&LZ4));
        assert_eq!(of(&tar), other(&TAR));
        for plain in
            [&b"BZh9,7\n"[..], b"", b"op,page\n", b"PK\n", b"tantalum pages 1", &[0x04; 300]]
        {
            assert_eq!(of(plain), None, "{plain:?}");
        }
    }
}
