//! The encoding of changes of the mapping, in delta pages and in dumps.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Result, Version};

use crate::log::own_page::{FieldReader, FieldWriter};
use crate::map::encoding::{self, ENTRY_BYTES_MAX, Encoder, Kind, Line, Order, Style};
use crate::map::{MapEntry, Mapping};

const MAGIC: u64 = 0x746c_6544_746e_6154; // "TantDelt"
const HEADER_BYTES: usize = 32;
/// Least number of entries in a full page.
pub const ENTRIES_MIN: usize = (PAGE_BYTES - HEADER_BYTES) / ENTRY_BYTES_MAX;

/// A trimmed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// The pages whose content was removed.
    pub range: PageRange,
    /// The version of the trim.
    pub version: Version,
}

/// Changed pages, whose entries are in the map, and trims.
#[derive(Default)]
pub struct Changes {
    pub pages: Vec<u32>,
    pub trims: Vec<Trim>,
}

impl Changes {
    /// Number of entries that encode the changes.
    pub fn len(&self) -> u32 {
        (self.pages.len() + self.trims.len()) as u32
    }

    /// Removes all changes.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.trims.clear();
    }
}

/// The encoding of changes.
fn style(checksums: bool) -> Style {
    Style { order: Order::Time, checksums }
}

/// Entries that are looked up together, so that their loads from the map overlap.
const LOOKED_UP_AT_ONCE: usize = 128;

/// Encodes changes in pages, numbered from `number` on.
pub struct PageWriter {
    style: Style,
    era: u64,
    number: u64,
    encoder: Encoder,
    bodies: Vec<PageBuf>,
}

impl PageWriter {
    /// Encodes delta pages from `number` on, in `era`.
    pub fn new(checksums: bool, era: u64, number: u64) -> Self {
        let style = style(checksums);
        let encoder = Encoder::new(style, HEADER_BYTES, 0);
        PageWriter { style, era, number, encoder, bodies: Vec::new() }
    }

    /// Adds changed pages, with their present entries in the map, and trims.
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

    /// Returns the pages.
    pub fn finish(mut self) -> Vec<PageBuf> {
        if self.encoder.count() > 0 {
            self.end_page();
        }
        self.bodies
    }
}

/// The header of a delta page.
fn header(era: u64, number: u64, entries: u32) -> [u8; HEADER_BYTES] {
    let mut writer = FieldWriter::new();
    writer.u64(MAGIC).u64(era).u64(number).u32(entries);
    writer.head()
}

/// A decoded change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The page's entry.
    Page(PageNo, MapEntry),
    /// A trim.
    Trim(Trim),
}

/// Decodes a delta page, with or without `checksums`.
///
/// # Errors
/// `Corrupt` if the page is no delta page.
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
        .ok_or_else(|| corrupt("delta page with invalid entries"))
}
