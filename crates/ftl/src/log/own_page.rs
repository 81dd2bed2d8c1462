//! Metadata pages: their fields as consecutive little-endian numbers.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, Payload, Result, SlotNo};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;

/// The slot of a metadata page, and the checksum of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnPage {
    pub slot: SlotNo,
    pub checksum: u32,
}

impl OwnPage {
    /// Reads the page from `media` and checks it, even if a scan found it intact: it may decay
    /// before it is read, and cleaning's copy of it gets a new checksum.
    pub async fn read<M: ZoneMedia>(self, media: &M) -> Result<PageBuf> {
        let OwnPage { slot, checksum } = self;
        let bytes = media.read_meta(slot).await?;
        let found = bytes.checksum();
        if found != checksum && !Fault::OwnPagesUnchecked.is_planted() {
            let context = format!(
                "slot {slot}: a metadata page has checksum {found:08x}, but was written with {checksum:08x}"
            );
            return Err(Error::new(ErrorKind::Checksum, context));
        }
        Ok(bytes)
    }
}

/// Writes fields into a page; the rest is zero.
pub(crate) struct FieldWriter {
    bytes: [u8; PAGE_BYTES],
    at: usize,
}

impl FieldWriter {
    pub fn new() -> Self {
        FieldWriter { bytes: [0; PAGE_BYTES], at: 0 }
    }

    #[inline]
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes[self.at..self.at + 4].copy_from_slice(&value.to_le_bytes());
        self.skip(4)
    }

    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes[self.at..self.at + 8].copy_from_slice(&value.to_le_bytes());
        self.skip(8)
    }

    #[inline]
    pub fn skip(&mut self, bytes: usize) -> &mut Self {
        self.at += bytes;
        self
    }

    /// The first bytes of the page.
    pub fn head<const BYTES: usize>(&self) -> [u8; BYTES] {
        std::array::from_fn(|at| self.bytes[at])
    }

    pub fn finish(&self) -> PageBuf {
        PageBuf::copy_from(&self.bytes)
    }
}

/// Reads fields from a page.
pub(crate) struct FieldReader<'a> {
    page: &'a [u8; PAGE_BYTES],
    at: usize,
}

impl<'a> FieldReader<'a> {
    /// Starts at byte `at`.
    pub fn new(page: &'a [u8; PAGE_BYTES], at: usize) -> Self {
        FieldReader { page, at }
    }

    fn bytes<const BYTES: usize>(&mut self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&self.page[self.at..self.at + BYTES]);
        self.at += BYTES;
        bytes
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }
}
