//! Encodes and decodes integers and pages.
use super::malformed;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, PageRange, Result};

/// The unread part of a body.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("a body that is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.u32()?) | u64::from(self.u32()?) << 32)
    }

    pub(super) fn page(&mut self) -> Result<PageNo> {
        Ok(PageNo(self.u64()?))
    }

    pub(super) fn range(&mut self) -> Result<PageRange> {
        Ok(PageRange::new(self.page()?, self.u64()?))
    }

    /// The rest of the body as pairs of page numbers.
    pub(super) fn pairs(&mut self) -> Result<Vec<(PageNo, PageNo)>> {
        let mut pairs = Vec::with_capacity(self.0.len() / 16);
        while !self.0.is_empty() {
            pairs.push((self.page()?, self.page()?));
        }
        Ok(pairs)
    }

    /// The rest of the body as contents of pages.
    pub(super) fn contents(&mut self) -> Result<Vec<PageBuf>> {
        let (pages, rest) = self.0.as_chunks::<PAGE_BYTES>();
        self.0 = rest;
        self.end()?;
        Ok(pages.iter().map(|page| PageBuf::copy_from(page)).collect())
    }

    /// Checks that the whole body was read.
    pub(super) fn end(&self) -> Result<()> {
        match self.0 {
            [] => Ok(()),
            _ => Err(malformed("a body that is too long")),
        }
    }
}

/// Appends fields to a body.
pub(super) trait Put {
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    fn range(&mut self, range: PageRange);
    fn contents<'a>(&mut self, pages: impl ExactSizeIterator<Item = &'a PageBuf>);
}

impl Put for Vec<u8> {
    fn u32(&mut self, value: u32) {
        self.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend(value.to_le_bytes());
    }

    fn range(&mut self, range: PageRange) {
        self.u64(range.first.0);
        self.u64(range.pages);
    }

    fn contents<'a>(&mut self, pages: impl ExactSizeIterator<Item = &'a PageBuf>) {
        self.reserve(pages.len() * PAGE_BYTES);
        pages.for_each(|page| self.extend_from_slice(&page[..]));
    }
}
