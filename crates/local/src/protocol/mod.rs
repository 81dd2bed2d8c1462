//! The bytes on the wire, as pure functions. `docs/local.md` has them as a table.
//!
//! Both sides send frames, each with a head of 16 bytes and a body. A client's frame has a number, and its answer
//! has the same number; answers arrive in any order. Integers are little-endian.
mod calls;
mod fields;
mod hello;
mod replies;

pub use calls::{decode_call, encode_call};
pub use hello::{FileId, Hello, Welcome};
pub use replies::{decode_reply, encode_reply};

use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};

/// Bytes of a frame before its body.
pub const HEAD_BYTES: usize = 16;
/// Maximum number of pages that one frame contains or requests: 8 MiB.
pub const PAGES_MAX: usize = 2048;
/// Maximum length of a body.
pub const BODY_BYTES_MAX: usize = PAGES_MAX * (PAGE_BYTES + 8) + 64;
/// Pairs of a share that fit into a body.
pub const SHARE_PAIRS_MAX: usize = BODY_BYTES_MAX / 16;
/// Maximum number of changed ranges in one answer; if there are more, everything counts as changed.
pub const RANGES_MAX: usize = 4096;

/// The kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Hello = 1,
    Read = 2,
    Write = 3,
    WriteScattered = 4,
    Flush = 5,
    Trim = 6,
    Share = 7,
    Begin = 8,
    Commit = 9,
    Abort = 10,
    Raise = 11,
    Lower = 12,
    IsReserved = 13,
    Welcome = 128,
    Done = 129,
    Refused = 130,
}

impl Kind {
    const ALL: [Kind; 16] = [
        Kind::Hello,
        Kind::Read,
        Kind::Write,
        Kind::WriteScattered,
        Kind::Flush,
        Kind::Trim,
        Kind::Share,
        Kind::Begin,
        Kind::Commit,
        Kind::Abort,
        Kind::Raise,
        Kind::Lower,
        Kind::IsReserved,
        Kind::Welcome,
        Kind::Done,
        Kind::Refused,
    ];
}

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The kind of the frame.
    pub kind: Kind,
    /// Bytes of the body.
    pub body_bytes: usize,
    /// The number of the call; an answer has the number of its call.
    pub number: u64,
}

impl Head {
    /// Decodes a head.
    ///
    /// # Errors
    /// `Format` if it is not a head.
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Head> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let body_bytes = word(0) as usize;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u32 == word(4));
        let number = u64::from(word(8)) | u64::from(word(12)) << 32;
        match kind {
            Some(kind) if body_bytes <= BODY_BYTES_MAX => Ok(Head { kind, body_bytes, number }),
            Some(_) => Err(malformed("a frame that is too long")),
            None => Err(malformed("a frame of an unknown kind")),
        }
    }

    /// Encodes the head.
    pub fn encode(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&(self.body_bytes as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

/// A complete frame, whose body is written by `body`.
pub(crate) fn frame(kind: Kind, number: u64, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    body(&mut bytes);
    let body_bytes = bytes.len() - HEAD_BYTES;
    bytes[..HEAD_BYTES].copy_from_slice(&Head { kind, body_bytes, number }.encode());
    bytes
}

/// The error for an invalid message from the other side.
pub(crate) fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Format, format!("the other side sent {what}"))
}
