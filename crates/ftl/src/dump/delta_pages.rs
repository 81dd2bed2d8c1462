//! Changes of the mapping as bytes: the entries of delta pages, and of dumps.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Result, Version};

use crate::log::own_page::{FieldReader, FieldWriter};
use crate::map::encoding::{self, ENTRY_BYTES_MAX, Encoder, Kind, Line, Order, Style};
use crate::map::{MapEntry, Mapping};

const MAGIC: u64 = 0x746c_6544_746e_6154; // "TantDelt"
const HEADER_BYTES: usize = 32;
/// Entries that go into a page at the least.
pub const ENTRIES_MIN: usize = (PAGE_BYTES - HEADER_BYTES) / ENTRY_BYTES_MAX;

/// A trimmed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// The pages that hold nothing any more.
    pub range: PageRange,
    /// The version of the trim.
    pub version: Version,
}

/// What changed: pages, whose entries the map has, and trims.
#[derive(Default)]
pub struct Changes {
    pub pages: Vec<u32>,
    pub trims: Vec<Trim>,
}

impl Changes {
    /// Entries that they take.
    pub fn len(&self) -> u32 {
        (self.pages.len() + self.trims.len()) as u32
    }

    /// Nothing changed.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.trims.clear();
    }
}

/// How changes are kept.
fn style(checksums: bool) -> Style {
    Style { order: Order::Time, checksums }
}

/// Entries that are looked up together: their loads overlap, far apart in the map as they are.
const LOOKED_UP_AT_ONCE: usize = 128;

/// Puts changes into pages, numbered from `number` on.
pub struct PageWriter {
    style: Style,
    era: u64,
    number: u64,
    encoder: Encoder,
    bodies: Vec<PageBuf>,
}

impl PageWriter {
    /// For the delta pages from `number` on, caught in `era`.
    pub fn new(checksums: bool, era: u64, number: u64) -> Self {
        let style = style(checksums);
        let encoder = Encoder::new(style, HEADER_BYTES, 0);
        PageWriter { style, era, number, encoder, bodies: Vec::new() }
    }

    /// Adds changed pages, with the entries that the map has now, and trims.
    pub fn add(&mut self, map: &Mapping, changes: &Changes) {
        let mut group = Vec::with_capacity(LOOKED_UP_AT_ONCE);
        for pages in changes.pages.chunks(LOOKED_UP_AT_ONCE) {
            group.clear();
            group.extend(pages.iter().map(|page| {
                let page = PageNo(u64::from(*page));
                (page, map.get(page))
            }));
            group.iter().for_each(|(page, entry)| self.push(&entry.to_line(*page)));
        }
        for trim in &changes.trims {
            self.push(&Line {
                kind: Kind::Trim,
                page: trim.range.first.0 as u32,
                version: trim.version.0,
                place: trim.range.pages as u32,
                checksum: 0,
            });
        }
    }

    /// Adds one entry.
    pub fn push(&mut self, line: &Line) {
        if !self.encoder.push(line) {
            self.end_page();
            let fits = self.encoder.push(line);
            debug_assert!(fits, "an entry fits in an empty page");
        }
    }

    fn end_page(&mut self) {
        let empty = Encoder::new(self.style, HEADER_BYTES, 0);
        let encoder = std::mem::replace(&mut self.encoder, empty);
        let number = self.number + self.bodies.len() as u64;
        let header = header(self.era, number, encoder.count());
        self.bodies.push(encoder.finish(&header));
    }

    /// The pages.
    pub fn finish(mut self) -> Vec<PageBuf> {
        if self.encoder.count() > 0 {
            self.end_page();
        }
        self.bodies
    }
}

/// The head of a delta page.
fn header(era: u64, number: u64, entries: u32) -> [u8; HEADER_BYTES] {
    let mut writer = FieldWriter::new();
    writer.u64(MAGIC).u64(era).u64(number).u32(entries);
    writer.head()
}

/// One change read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The page's entry.
    Page(PageNo, MapEntry),
    /// A trim.
    Trim(Trim),
}

/// The changes that a delta page holds, with their `checksums` or without.
///
/// # Errors
/// `Corrupt` where it is none.
pub fn decode(page: &PageBuf, checksums: bool) -> Result<Vec<Delta>> {
    let corrupt = |context| Error::new(ErrorKind::Corrupt, context);
    if page[..8] != MAGIC.to_le_bytes() {
        return Err(corrupt("delta page without its magic number"));
    }
    let count = FieldReader::new(page, 24).u32();
    let delta = |line: &Line| match MapEntry::from_line(line) {
        Some(entry) => Delta::Page(PageNo(u64::from(line.page)), entry),
        None => {
            let first = PageNo(u64::from(line.page));
            let range = PageRange::new(first, u64::from(line.place));
            Delta::Trim(Trim { range, version: Version(line.version) })
        }
    };
    let each = |line: &Line| Some(delta(line));
    encoding::decode(page, style(checksums), HEADER_BYTES, 0, count, each)
        .ok_or_else(|| corrupt("delta page whose entries are none"))
}
