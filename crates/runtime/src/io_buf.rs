//! A buffer aligned for direct I/O.
use std::ops::{Deref, DerefMut};

/// Alignment of every [`IoBuf`]: enough for direct I/O on any common device.
pub const IO_ALIGN: usize = 4096;

#[derive(Clone)]
#[repr(align(4096))]
struct Block(#[expect(dead_code, reason = "read through the slice of bytes")] [u8; IO_ALIGN]);

/// An owned, zero-initialised buffer whose start is aligned to [`IO_ALIGN`].
pub struct IoBuf {
    blocks: Vec<Block>,
    len: usize,
}

impl IoBuf {
    /// A buffer of `len` bytes, all zero.
    pub fn zeroed(len: usize) -> Self {
        IoBuf { blocks: vec![Block([0; IO_ALIGN]); len.div_ceil(IO_ALIGN)], len }
    }

    /// Changes the length, up to the capacity. The content stays.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "an IoBuf does not grow");
        self.len = len;
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.blocks.len() * IO_ALIGN
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `Block` is a plain array of bytes without padding; `len` is within them.
        #[expect(unsafe_code, reason = "a slice of aligned blocks is a slice of bytes")]
        unsafe {
            std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.len)
        }
    }
}

impl DerefMut for IoBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the access exclusive.
        #[expect(unsafe_code, reason = "a slice of aligned blocks is a slice of bytes")]
        unsafe {
            std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.len)
        }
    }
}
