//! The content of a page: real bytes, or a stamp that stands for them.
//!
//! Code that moves pages is generic over [`Payload`]. The same code serves bytes to real clients and simulates a 480
//! GB device in a few GB of memory; every read is checked in both.
use crate::PageNo;
use crate::checksum::crc32c;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The mapping unit: bytes in a logical page (DuraSSD, section 3.1.2: 4 KiB page mapping).
pub const PAGE_BYTES: usize = 4096;

/// The content of one page. Cloning is cheap (a reference count or 16 bytes).
pub trait Payload: Clone + PartialEq + fmt::Debug + 'static {
    /// The content of a page that was never written or was trimmed.
    fn zero() -> Self;

    /// A checksum of the content.
    fn checksum(&self) -> u32;

    /// The content as bytes; `None` for a stamp.
    fn bytes(&self) -> Option<&[u8]>;

    /// A page with these [`PAGE_BYTES`] bytes. A stamp is decoded from the first 16.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Writes the content to `out`, [`PAGE_BYTES`] bytes long; [`from_bytes`](Self::from_bytes) is the inverse.
    fn write_to(&self, out: &mut [u8]);

    /// The content after a torn program: neither the old nor the new.
    fn torn(&self) -> Self;

    /// A number that determines the content together with `page`; a simulated medium stores only that number. `None`
    /// for real bytes.
    #[inline]
    fn token(&self, _page: PageNo) -> Option<u64> {
        None
    }

    /// The content whose [`token`](Self::token) is `token`.
    #[inline]
    fn from_token(_page: PageNo, _token: u64) -> Option<Self> {
        None
    }
}

/// A page of real bytes, shared and immutable.
#[derive(Clone, PartialEq, Eq)]
pub struct PageBuf(Arc<[u8; PAGE_BYTES]>);

impl PageBuf {
    /// Copies `bytes`.
    ///
    /// # Panics
    /// If they are not [`PAGE_BYTES`].
    #[track_caller]
    pub fn copy_from(bytes: &[u8]) -> Self {
        let shared: Arc<[u8]> = Arc::from(bytes);
        let shared: Result<Arc<[u8; PAGE_BYTES]>, _> = shared.try_into();
        assert!(shared.is_ok(), "a page has {PAGE_BYTES} bytes, and these are {}", bytes.len());
        shared.map_or_else(|_| PageBuf::zero(), PageBuf)
    }

    /// The bytes, for changes in place. They are copied first if the page is shared.
    pub fn make_mut(&mut self) -> &mut [u8; PAGE_BYTES] {
        Arc::make_mut(&mut self.0)
    }

    /// Whether this is the shared page that [`zero`](Payload::zero) returns, as for pages without content. Compares
    /// the pointer only: other pages may hold zeros as well.
    pub fn is_shared_zero(&self) -> bool {
        Arc::ptr_eq(&self.0, &shared_zero().0)
    }
}

fn shared_zero() -> &'static PageBuf {
    static ZERO: OnceLock<PageBuf> = OnceLock::new();
    ZERO.get_or_init(|| PageBuf::copy_from(&[0; PAGE_BYTES]))
}

impl Deref for PageBuf {
    type Target = [u8; PAGE_BYTES];

    #[inline]
    fn deref(&self) -> &[u8; PAGE_BYTES] {
        &self.0
    }
}

impl fmt::Debug for PageBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageBuf({:02x?}.., crc {:08x})", &self.0[..8], self.checksum())
    }
}

impl Payload for PageBuf {
    fn zero() -> Self {
        shared_zero().clone()
    }

    #[inline]
    fn checksum(&self) -> u32 {
        crc32c(&self.0[..])
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.0[..])
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        PageBuf::copy_from(bytes)
    }

    fn write_to(&self, out: &mut [u8]) {
        out.copy_from_slice(&self.0[..]);
    }

    fn torn(&self) -> Self {
        let mut torn = self.clone();
        let half = &mut torn.make_mut()[PAGE_BYTES / 2..];
        half.iter_mut().for_each(|byte| *byte = !*byte);
        torn
    }
}

/// Stands for the content of a page: the page number and the number of the write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Stamp {
    /// The page number it was written to, plus one; 0 for a page that was never written.
    pub page_plus_one: u32,
    /// The number of the write, chosen by the host.
    pub count: u64,
}

impl Stamp {
    /// The content of `page` after write number `count` of the host.
    pub fn new(page: PageNo, count: u64) -> Self {
        Stamp { page_plus_one: page.0 as u32 + 1, count }
    }
}

impl Payload for Stamp {
    fn zero() -> Self {
        Stamp::default()
    }

    #[inline]
    fn checksum(&self) -> u32 {
        let mixed = (self.count ^ (u64::from(self.page_plus_one) << 32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }

    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Stamp { page_plus_one: word(0) as u32, count: word(8) }
    }

    fn write_to(&self, out: &mut [u8]) {
        assert_eq!(out.len(), PAGE_BYTES, "a page has PAGE_BYTES bytes");
        out[..8].copy_from_slice(&u64::from(self.page_plus_one).to_le_bytes());
        out[8..16].copy_from_slice(&self.count.to_le_bytes());
        out[16..].fill(0);
    }

    fn torn(&self) -> Self {
        Stamp { page_plus_one: self.page_plus_one ^ 0x8000_0000, count: !self.count }
    }

    #[inline]
    fn token(&self, page: PageNo) -> Option<u64> {
        (u64::from(self.page_plus_one) == page.0.wrapping_add(1)).then_some(self.count)
    }

    #[inline]
    fn from_token(page: PageNo, token: u64) -> Option<Self> {
        Some(Stamp::new(page, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<P: Payload>(content: P) {
        let mut bytes = [0xa5; PAGE_BYTES];
        content.write_to(&mut bytes);
        assert_eq!(P::from_bytes(&bytes), content);
    }

    #[test]
    fn what_is_written_to_bytes_comes_back_from_them() {
        comes_back(Stamp::new(PageNo(u64::from(u32::MAX) - 1), u64::MAX));
        comes_back(Stamp::new(PageNo(7), 9).torn());
        comes_back(PageBuf::zero().torn());
        let mut bytes = [0xa5; PAGE_BYTES];
        Stamp::zero().write_to(&mut bytes);
        assert_eq!(bytes, [0; PAGE_BYTES], "zeros are zeros in either payload");
    }

    #[test]
    fn the_page_without_content_is_told_from_others_by_its_address() {
        assert!(PageBuf::zero().is_shared_zero() && PageBuf::zero().clone().is_shared_zero());
        assert!(!PageBuf::copy_from(&[0; PAGE_BYTES]).is_shared_zero());
        let mut written = PageBuf::zero();
        written.make_mut()[5] = 1;
        assert!(!written.is_shared_zero());
    }
}
