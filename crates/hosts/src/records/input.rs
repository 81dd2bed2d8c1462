//! Reading a record's content.

/// The rest of a content.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]: [u8; 1]| byte)
    }

    pub(crate) fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
