//! Records: changes of the mapping alone, written to the log in metadata pages.
//!
//! Every record page starts with a magic number `u32` and its number of entries `u32` (all little
//! endian); the rest after the entries is zero. The page's checksum is in its spare.
//!
//! - Trims, 24 bytes each from byte 8: kind `u64` (1), first page `u64`, pages `u64`. A page
//!   without entries only carries the watermark of its append.
//! - Shares, 24 bytes each from byte 16, after the number of zone openings so far (`u64`): left page `u32`,
//!   right page `u32`, version of the right page's content `u64`, its slot `u32`, its checksum `u32`. SHARE,
//!   section 4.2.2, calls it a delta; the former entry is in the mapping.
//! - References, 16 bytes each from byte 8, for copies of the same append in the cleaning stream: page `u32`,
//!   index in the append of the page that holds its content `u32` (with the top bit set if the version is that
//!   of a share), version of the page `u64`.
//! - Evicted pages, 12 bytes each from byte 8, in the cleaning stream of a cache: page `u32`, the version that
//!   its home has `u64`.
//! - Dead versions, 12 bytes per range from byte 8, in the cleaning stream: first version `u64`, number of
//!   versions `u32`.
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Result, SlotNo, Version,
};

use crate::log::own_page::{FieldReader, FieldWriter};
use crate::log::uncovered::VersionRange;

const MAGIC_TRIMS: u32 = 0x5461_5243; // "TaRC"
const MAGIC_SHARES: u32 = 0x5461_5348; // "TaSH"
const MAGIC_REFERENCES: u32 = 0x5461_5352; // "TaSR"
const MAGIC_DEAD: u32 = 0x5461_4456; // "TaDV"
const MAGIC_GONE: u32 = 0x5461_474f; // "TaGO"
const TRIM_BYTES: usize = 24;
const SHARE_BYTES: usize = 24;
const REFERENCE_BYTES: usize = 16;
const DEAD_BYTES: usize = 12;
const GONE_BYTES: usize = 12;
/// In a reference's index: its version is that of a share.
const BY_SHARE: u32 = 1 << 31;
/// Trims that fit in a record page.
pub const TRIMS_MAX: usize = (PAGE_BYTES - 8) / TRIM_BYTES;
/// Shares that fit in a record page.
pub const SHARES_MAX: usize = (PAGE_BYTES - 16) / SHARE_BYTES;
/// References that fit in a record page.
pub const REFERENCES_MAX: usize = (PAGE_BYTES - 8) / REFERENCE_BYTES;
/// Ranges of dead versions that fit in a record page.
pub const DEAD_RANGES_MAX: usize = (PAGE_BYTES - 8) / DEAD_BYTES;
/// Evicted pages that fit in a record page.
pub const GONE_MAX: usize = (PAGE_BYTES - 8) / GONE_BYTES;

/// One change of the mapping alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The range no longer has content.
    Trim(PageRange),
    /// A page is remapped to the content of another one.
    Share(Share),
}

/// A page that is remapped to the content of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The page that is remapped.
    pub left: PageNo,
    /// The page whose content it gets.
    pub right: PageNo,
    /// The right page's version at the share.
    pub right_version: Version,
    /// The right page's slot at the share.
    pub slot: SlotNo,
    /// Zone openings until the share: the content is still there unless the zone was opened later.
    pub epoch: u64,
    /// The content's checksum.
    pub checksum: u32,
}

/// Another page of a slot that cleaning copied: its content is in the same copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The page.
    pub page: PageNo,
    /// The version of its last change.
    pub version: Version,
    /// Whether that change was a share.
    pub by_share: bool,
    /// Index of the page in the append that holds its content.
    pub index: u32,
}

/// A page that begins with a header for `entries` entries.
fn begin(magic: u32, entries: usize) -> FieldWriter {
    let mut writer = FieldWriter::new();
    writer.u32(magic).u32(entries as u32);
    writer
}

/// A record page of `trims` (at most [`TRIMS_MAX`]).
pub fn encode_trims(trims: &[PageRange]) -> PageBuf {
    assert!(trims.len() <= TRIMS_MAX);
    let mut writer = begin(MAGIC_TRIMS, trims.len());
    for range in trims {
        writer.u64(1).u64(range.first.0).u64(range.pages);
    }
    writer.finish()
}

/// A record page of `shares` (at most [`SHARES_MAX`]), all with the zone opening `epoch`.
pub fn encode_shares(epoch: u64, shares: &[Share]) -> PageBuf {
    assert!(shares.len() <= SHARES_MAX);
    let mut writer = begin(MAGIC_SHARES, shares.len());
    writer.u64(epoch);
    for share in shares {
        writer.u32(share.left.0 as u32).u32(share.right.0 as u32).u64(share.right_version.0);
        writer.u32(share.slot.0).u32(share.checksum);
    }
    writer.finish()
}

/// A page of `references` (at most [`REFERENCES_MAX`]).
pub fn encode_references(references: &[Reference]) -> PageBuf {
    assert!(references.len() <= REFERENCES_MAX);
    let mut writer = begin(MAGIC_REFERENCES, references.len());
    for reference in references {
        writer.u32(reference.page.0 as u32);
        writer.u32(reference.index | if reference.by_share { BY_SHARE } else { 0 });
        writer.u64(reference.version.0);
    }
    writer.finish()
}

/// A page of ranges of `dead` versions (at most [`DEAD_RANGES_MAX`]), which nothing in force needs
/// and recovery need not find.
pub(crate) fn encode_dead(dead: &[VersionRange]) -> PageBuf {
    assert!(dead.len() <= DEAD_RANGES_MAX);
    let mut writer = begin(MAGIC_DEAD, dead.len());
    for range in dead {
        writer.u64(range.first.0).u32(range.count() as u32);
    }
    writer.finish()
}

/// A page that lists pages evicted from a cache (at most [`GONE_MAX`]), each with the version that its home
/// has.
pub(crate) fn encode_gone(gone: &[(PageNo, Version)]) -> PageBuf {
    assert!(gone.len() <= GONE_MAX);
    let mut writer = begin(MAGIC_GONE, gone.len());
    for (page, version) in gone {
        writer.u32(page.0 as u32).u64(version.0);
    }
    writer.finish()
}

fn corrupt(context: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, context)
}

/// The records of a record page of the log.
pub fn decode(page: &PageBuf) -> Result<Vec<Record>> {
    let mut reader = FieldReader::new(page, 0);
    let (magic, count) = (reader.u32(), reader.u32() as usize);
    match magic {
        MAGIC_TRIMS if count <= TRIMS_MAX => (0..count)
            .map(|_| match reader.u64() {
                1 => Ok(Record::Trim(PageRange::new(PageNo(reader.u64()), reader.u64()))),
                kind => Err(corrupt(format!("record of unknown kind {kind}"))),
            })
            .collect(),
        MAGIC_SHARES if count <= SHARES_MAX => {
            let epoch = reader.u64();
            let share = |_| {
                Ok(Record::Share(Share {
                    epoch,
                    left: PageNo(u64::from(reader.u32())),
                    right: PageNo(u64::from(reader.u32())),
                    right_version: Version(reader.u64()),
                    slot: SlotNo(reader.u32()),
                    checksum: reader.u32(),
                }))
            };
            (0..count).map(share).collect()
        }
        _ => Err(corrupt("record page without its magic number")),
    }
}

/// The references in a page; `None` if it has none.
pub fn decode_references(page: &PageBuf) -> Option<Vec<Reference>> {
    let mut reader = FieldReader::new(page, 0);
    let (magic, count) = (reader.u32(), reader.u32() as usize);
    let reference = |_| {
        let (page, index) = (PageNo(u64::from(reader.u32())), reader.u32());
        let by_share = index & BY_SHARE != 0;
        Reference { page, index: index & !BY_SHARE, version: Version(reader.u64()), by_share }
    };
    (magic == MAGIC_REFERENCES && count <= REFERENCES_MAX)
        .then(|| (0..count).map(reference).collect())
}

/// The dead versions in a page; `None` if it lists none.
pub(crate) fn decode_dead(page: &PageBuf) -> Option<Vec<VersionRange>> {
    let mut reader = FieldReader::new(page, 0);
    let (magic, count) = (reader.u32(), reader.u32() as usize);
    let range = |_| {
        let (first, count) = (reader.u64(), u64::from(reader.u32()));
        VersionRange {
            first: Version(first),
            last: Version(first.saturating_add(count).saturating_sub(1)),
        }
    };
    (magic == MAGIC_DEAD && count <= DEAD_RANGES_MAX).then(|| (0..count).map(range).collect())
}

/// The evicted pages in a page; `None` if it lists none.
pub(crate) fn decode_gone(page: &PageBuf) -> Option<Vec<(PageNo, Version)>> {
    let mut reader = FieldReader::new(page, 0);
    let (magic, count) = (reader.u32(), reader.u32() as usize);
    let gone = |_| (PageNo(u64::from(reader.u32())), Version(reader.u64()));
    (magic == MAGIC_GONE && count <= GONE_MAX).then(|| (0..count).map(gone).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Payload;

    #[test]
    fn as_many_dead_versions_as_fit_come_back() {
        let range = |number: u64| VersionRange {
            first: Version(number << 40),
            last: Version((number << 40) + (number << 20)),
        };
        let dead: Vec<VersionRange> = (1..=DEAD_RANGES_MAX as u64).map(range).collect();
        let page = encode_dead(&dead);
        assert_eq!(decode_dead(&page), Some(dead));
        assert_eq!(decode_references(&page), None);
        assert_eq!(decode_dead(&encode_trims(&[])), None);
    }

    #[test]
    fn as_many_pages_let_go_as_fit_come_back() {
        let gone = |number: u64| (PageNo(number * 7), Version(number << 40));
        let gone: Vec<_> = (1..=GONE_MAX as u64).map(gone).collect();
        let page = encode_gone(&gone);
        assert_eq!(decode_gone(&page), Some(gone));
        assert_eq!((decode_dead(&page), decode_references(&page)), (None, None));
        assert_eq!(decode_gone(&encode_dead(&[])), None);
    }

    #[test]
    fn trims_come_back() {
        let trims = [PageRange::new(PageNo(7), 1 << 40), PageRange::new(PageNo(1), 1)];
        let records = trims.map(Record::Trim);
        assert_eq!(decode(&encode_trims(&trims)).unwrap(), records);
        assert_eq!(decode(&encode_trims(&[])).unwrap(), []);
        assert_eq!(decode(&PageBuf::zero()).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn as_many_shares_as_fit_come_back() {
        let share = |number: u64| Share {
            left: PageNo(number),
            right: PageNo(u64::from(u32::MAX) - number),
            right_version: Version(number << 40),
            slot: SlotNo(number as u32 + 9),
            epoch: 1 << 50,
            checksum: !(number as u32),
        };
        let shares: Vec<Share> = (0..SHARES_MAX as u64).map(share).collect();
        let records: Vec<Record> = shares.iter().copied().map(Record::Share).collect();
        let page = encode_shares(1 << 50, &shares);
        assert_eq!(decode(&page).unwrap(), records);
        assert_eq!(decode_references(&page), None);
    }

    #[test]
    fn as_many_references_as_fit_come_back() {
        let reference = |number: u64| Reference {
            page: PageNo(number),
            version: Version(number << 40),
            index: !(number as u32) & !BY_SHARE,
            by_share: number.is_multiple_of(2),
        };
        let references: Vec<Reference> = (0..REFERENCES_MAX as u64).map(reference).collect();
        let page = encode_references(&references);
        assert_eq!(decode_references(&page), Some(references));
        assert_eq!(decode(&page).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
