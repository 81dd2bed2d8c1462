//! Structured replies: chunks, of which the last is flagged as such.
use super::error_code::ErrorCode;

/// Magic number before every chunk.
pub(crate) const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// Bytes of a chunk without its payload.
pub(crate) const CHUNK_BYTES: usize = 20;
/// Payload of a data chunk before the data.
pub(crate) const DATA_HEADER_BYTES: usize = 8;
/// Payload of a hole chunk.
pub(crate) const HOLE_BYTES: usize = 12;
/// Bytes of a descriptor, after a context's number.
pub(crate) const DESCRIPTOR_BYTES: usize = 8;
/// Maximum bytes of an error's message that are sent; the protocol allows 4096.
pub(crate) const WORDS_BYTES_MAX: usize = 1024;

/// Flag of the last chunk of a reply.
const FLAG_DONE: u16 = 1;

/// Chunk types.
const TYPE_NONE: u16 = 0;
const TYPE_OFFSET_DATA: u16 = 1;
const TYPE_OFFSET_HOLE: u16 = 2;
const TYPE_BLOCK_STATUS: u16 = 5;
const TYPE_ERROR: u16 = (1 << 15) + 1;

/// Flags of a descriptor in `base:allocation`.
pub(crate) const STATE_HOLE: u32 = 1;
pub(crate) const STATE_ZERO: u32 = 1 << 1;

/// The status of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Descriptor {
    pub(crate) bytes: u32,
    pub(crate) flags: u32,
}

/// Begins a chunk with `length` bytes of payload.
fn chunk(out: &mut Vec<u8>, cookie: u64, kind: u16, is_last: bool, length: usize) {
    let mut header = [0; CHUNK_BYTES];
    header[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&(if is_last { FLAG_DONE } else { 0 }).to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..].copy_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(&header);
}

/// A whole reply without content.
pub(crate) fn none(out: &mut Vec<u8>, cookie: u64) {
    chunk(out, cookie, TYPE_NONE, true, 0);
}

/// Begins a chunk of `bytes` bytes of data, which the caller appends.
pub(crate) fn data(out: &mut Vec<u8>, cookie: u64, is_last: bool, offset: u64, bytes: usize) {
    chunk(out, cookie, TYPE_OFFSET_DATA, is_last, DATA_HEADER_BYTES + bytes);
    out.extend_from_slice(&offset.to_be_bytes());
}

/// A chunk that stands for `bytes` zeros, at least one.
pub(crate) fn hole(out: &mut Vec<u8>, cookie: u64, is_last: bool, offset: u64, bytes: u32) {
    chunk(out, cookie, TYPE_OFFSET_HOLE, is_last, HOLE_BYTES);
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&bytes.to_be_bytes());
}

/// A whole reply with the status of consecutive bytes, at least one, in one metadata context.
pub(crate) fn status(out: &mut Vec<u8>, cookie: u64, context: u32, extents: &[Descriptor]) {
    chunk(out, cookie, TYPE_BLOCK_STATUS, true, 4 + DESCRIPTOR_BYTES * extents.len());
    out.extend_from_slice(&context.to_be_bytes());
    for extent in extents {
        out.extend_from_slice(&extent.bytes.to_be_bytes());
        out.extend_from_slice(&extent.flags.to_be_bytes());
    }
}

/// A whole reply with an error and its message, which is cut if it is long.
pub(crate) fn error(out: &mut Vec<u8>, cookie: u64, error: ErrorCode, words: &str) {
    let mut ends = (0..=words.len().min(WORDS_BYTES_MAX)).rev();
    let end = ends.find(|at| words.is_char_boundary(*at)).unwrap_or(0);
    let words = &words[..end];
    chunk(out, cookie, TYPE_ERROR, true, 6 + words.len());
    out.extend_from_slice(&(error as u32).to_be_bytes());
    out.extend_from_slice(&(words.len() as u16).to_be_bytes());
    out.extend_from_slice(words.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = u64::from_be_bytes(*b"abcdefgh");

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn chunks_byte_for_byte() {
        assert_eq!(bytes(|out| none(out, COOKIE)), b"\x66\x8e\x33\xef\0\x01\0\0abcdefgh\0\0\0\0");
        assert_eq!(
            bytes(|out| data(out, COOKIE, false, 0x1000, 0x200)),
            b"\x66\x8e\x33\xef\0\0\0\x01abcdefgh\0\0\x02\x08\0\0\0\0\0\0\x10\0"
        );
        assert_eq!(
            bytes(|out| hole(out, COOKIE, true, 0x1000, 0x200)),
            b"\x66\x8e\x33\xef\0\x01\0\x02abcdefgh\0\0\0\x0c\0\0\0\0\0\0\x10\0\0\0\x02\0"
        );
        let extents = [
            Descriptor { bytes: 0x1000, flags: 0 },
            Descriptor { bytes: 0x200, flags: STATE_HOLE | STATE_ZERO },
        ];
        assert_eq!(
            bytes(|out| status(out, COOKIE, 7, &extents)),
            b"\x66\x8e\x33\xef\0\x01\0\x05abcdefgh\0\0\0\x14\0\0\0\x07\
              \0\0\x10\0\0\0\0\0\0\0\x02\0\0\0\0\x03"
        );
        assert_eq!(
            bytes(|out| error(out, COOKIE, ErrorCode::NoSpc, "full")),
            b"\x66\x8e\x33\xef\0\x01\x80\x01abcdefgh\0\0\0\x0a\0\0\0\x1c\0\x04full"
        );
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let words = "x".to_owned() + &"ß".repeat(WORDS_BYTES_MAX);
        let chunk = bytes(|out| error(out, COOKIE, ErrorCode::Io, &words));
        let sent = std::str::from_utf8(&chunk[CHUNK_BYTES + 6..]).unwrap();
        assert_eq!(sent.len(), WORDS_BYTES_MAX - 1);
        assert!(words.starts_with(sent));
        assert_eq!(chunk[16..20], (6 + sent.len() as u32).to_be_bytes());
        assert_eq!(chunk[24..26], (sent.len() as u16).to_be_bytes());
    }
}
