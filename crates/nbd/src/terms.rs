//! The outcome of a negotiation.

use crate::part::Part;

/// The rules for the requests and replies of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    /// Required alignment of offsets and lengths.
    pub(crate) block_bytes: u32,
    /// Reads and errors are answered in chunks.
    pub(crate) structured: bool,
    /// The client may query which bytes are allocated.
    pub(crate) allocation: bool,
    /// The part of the device that it requested.
    pub(crate) part: Part,
}

impl Default for Terms {
    /// The terms of a client that negotiated nothing. It did not get the block sizes.
    fn default() -> Self {
        Terms { block_bytes: 1, structured: false, allocation: false, part: Part::default() }
    }
}
