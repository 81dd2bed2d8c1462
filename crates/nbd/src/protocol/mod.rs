//! The bytes on the wire: pure functions, big-endian throughout. Source: the NBD project's
//! protocol description (`doc/proto.md` of NetworkBlockDevice/nbd).
pub(crate) mod error_code;
pub(crate) mod handshake;
pub(crate) mod meta_context;
pub(crate) mod structured;
pub(crate) mod transmission;

/// Reads a big-endian integer at a fixed offset of a message whose length is known.
macro_rules! be {
    ($int:ty, $bytes:expr, $at:expr) => {{
        let mut word = [0; size_of::<$int>()];
        word.copy_from_slice(&$bytes[$at..$at + size_of::<$int>()]);
        <$int>::from_be_bytes(word)
    }};
}
pub(crate) use be;
