//! What a client negotiated.

use crate::part::Part;

/// How requests of a session are taken and answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    /// Required alignment of offsets and lengths.
    pub(crate) block_bytes: u32,
    /// Reads and errors are answered in chunks.
    pub(crate) structured: bool,
    /// The client may ask which bytes are allocated.
    pub(crate) allocation: bool,
    /// What of the device it asked for.
    pub(crate) part: Part,
}

impl Default for Terms {
    /// Those of a client that negotiated nothing: it was not told of block sizes.
    fn default() -> Self {
        Terms { block_bytes: 1, structured: false, allocation: false, part: Part::default() }
    }
}
