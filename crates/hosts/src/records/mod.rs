//! The content of an engine's device as records: a tree node, a header, a document.
//!
//! ```text
//! mod         a record, its place, the conversion of records into pages and back
//! draft       records laid out in consecutive pages, before they are written
//! device      a device that is read and written by records
//! bytes       records as bytes, framed and with a checksum: for live devices      input  reading their content
//! remembered  records as stamps, remembered beside the device: for virtual time
//! ```
//!
//! An engine that is written against records runs in both times: its reads are checked to return what was written, and its
//! sizes are the same, whether a page has bytes or is a stamp of 16.
//!
//! A page begins with a mark. The mark is the kind of records in the page, and whether the first of them began in the page
//! before. The rest is records one after the other, at any offset; a record may continue in the next page:
//!
//! ```text
//! page     | mark 1 | PAGE_ROOM bytes ...................................... |
//! record   | CRC-32C 4 | length 4 | content: length bytes |
//! ```
mod bytes;
mod device;
mod draft;
mod input;
mod remembered;

use std::fmt;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageNo, PageRange, Payload};

pub use bytes::ByteCodec;
pub(crate) use device::corrupt;
pub use device::{RecordCounts, RecordDevice};
pub use draft::Draft;
pub(crate) use input::Input;
pub use remembered::Remembered;

/// Bytes of a page that hold records: all but its mark.
pub const PAGE_ROOM: usize = PAGE_BYTES - 1;

/// Bytes in front of each record's content: its checksum and its length.
pub const FRAME_BYTES: usize = 8;

/// A unit that an engine writes and reads as a whole.
pub trait Record: Clone + PartialEq + fmt::Debug + 'static {
    /// Size of its content in bytes.
    fn content_bytes(&self) -> usize;

    /// The mark of the pages that hold it, 1 to 127. A record is only accepted as the kind that its page is marked for, so that
    /// no value of a user can pass for a header.
    fn mark(&self) -> u8;
}

/// A record that can be encoded as bytes.
pub trait ByteRecord: Record {
    /// Appends the content, [`content_bytes`](Record::content_bytes) bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// The record with this content; `None` if the content is not valid.
    fn decode(content: &[u8]) -> Option<Self>;
}

/// Size of `record` with its frame, in bytes.
pub fn framed_bytes<T: Record>(record: &T) -> usize {
    FRAME_BYTES + record.content_bytes()
}

/// The place of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The page in which it begins.
    pub page: PageNo,
    /// The offset of its beginning in that page's room, in bytes.
    pub offset: u16,
    /// Its length in bytes, with its frame; for a place that may hold records of different sizes, the maximum.
    pub bytes: u32,
}

impl Place {
    /// All room of `pages` pages from `page` on.
    pub fn of_pages(page: PageNo, pages: u64) -> Place {
        Place { page, offset: 0, bytes: (pages * PAGE_ROOM as u64) as u32 }
    }

    /// The pages that it covers.
    pub fn range(&self) -> PageRange {
        let bytes = u64::from(self.offset) + u64::from(self.bytes);
        PageRange::new(self.page, bytes.div_ceil(PAGE_ROOM as u64))
    }
}

/// Converts records into the pages of a device and back.
///
/// The methods from `written` on report the fate of pages. They are for a codec that remembers outside the device what the
/// pages stand for; a codec that writes everything needs none of them.
pub trait Codec: 'static {
    /// Content of a device page.
    type Page: Payload;
    /// The type of its records.
    type Record: Record;

    /// Encodes `records`, one after the other, into the pages from `first` on. All have the same mark.
    fn encode(&self, first: PageNo, records: &[Rc<Self::Record>]) -> Vec<Self::Page>;

    /// The record at `offset` in the room of the first of `pages`, if it is complete and whole.
    fn decode(&self, offset: u16, pages: &[Self::Page]) -> Option<Rc<Self::Record>>;

    /// A write of these pages, as they were last encoded, has completed.
    fn written(&self, _range: PageRange) {}

    /// A trim is about to be issued.
    fn trimming(&self, _range: PageRange) {}

    /// A share is about to be issued.
    fn sharing(&self, _pairs: &[(PageNo, PageNo)]) -> Settled {
        Settled::default()
    }

    /// A flush is about to be issued.
    fn flushing(&self) -> Settled {
        Settled::default()
    }

    /// The contents that [`sharing`](Self::sharing) or [`flushing`](Self::flushing) returned are durable.
    fn settle(&self, _settled: Settled) {}

    /// The device was opened again, perhaps after a power cut.
    fn reopened(&self) {}
}

/// Contents that are durable once a command has completed, so that older ones of the same pages are gone for good.
#[derive(Debug, Default)]
pub struct Settled(Vec<(PageNo, u64)>);
