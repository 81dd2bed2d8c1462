//! The pages of checkpoints: the mapping on the medium, written while hosts continue.
//!
//! A checkpoint is a run of pages in zones of the meta stream: the zone table, the map in chunks of as
//! many entries as fit in a page (`map::encoding`), and a footer that puts it in force. Each chunk is
//! encoded at its own moment, so it may hold changes newer than the checkpoint's start; recovery replays
//! everything after the start, and versions show which change is newer. The footer is written when
//! everything that the chunks point to is durable. `docs/format.md` has the bytes.
use tantalum_base::checksum::{crc32c, crc32c_append};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, Version};
use tantalum_media::ZoneGeometry;

use crate::checkpoints::DumpsVoid;
use crate::log::own_page::{FieldReader, FieldWriter};
use crate::map::encoding::{self, Encoder, Line, NEXT_ENTRY_BYTES_MAX, Order, Style};
use crate::map::{MapEntry, Mapping};
use crate::space::Space;

const MAGIC: u64 = 0x7470_6b43_746e_6154; // "TantCkpt"
const HEADER_BYTES: usize = 40;
const SEAL_AT: usize = 36;
const ZONE_ENTRY_BYTES: usize = 24;
/// Least number of pages in a chunk of the map, except the last.
const MAP_ENTRIES_MIN: usize = (PAGE_BYTES - HEADER_BYTES) / NEXT_ENTRY_BYTES_MAX;
/// Zones in a page of the zone table.
pub const ZONE_ENTRIES: usize = (PAGE_BYTES - HEADER_BYTES) / ZONE_ENTRY_BYTES;

/// The kind of a checkpoint's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PieceKind {
    /// Part of the zone table.
    Zones = 1,
    /// A chunk of the map.
    Map = 2,
    /// The end, which puts the checkpoint in force.
    Footer = 3,
}

/// The header of every page of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceHeader {
    /// The checkpoint's number.
    pub id: u64,
    /// The kind of the page.
    pub kind: PieceKind,
    /// Its index among pages of its kind; for a chunk of the map its first page.
    pub index: u32,
    /// Zone openings so far when the page was encoded: content that it points to is intact unless its zone
    /// was opened later.
    pub epoch: u64,
    /// Number of entries in a chunk of the map, otherwise 0.
    pub entries: u32,
}

/// A zone's entry in the zone table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ZoneEntry {
    /// Its opening at the start of the checkpoint; 0 if it was free.
    pub epoch: u64,
    /// Slots that the checkpoint covers; a scan may start after them.
    pub covered_slots: u32,
    /// Resets so far.
    pub resets: u32,
    /// The stream that filled it.
    pub stream: u8,
}

/// The content of the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Every change up to this version is in the checkpoint.
    pub covered: Version,
    /// Every change up to this version is durable.
    pub durable: Version,
    /// No version from here on has been used.
    pub next_version: Version,
    /// Pages of the checkpoint, footer included.
    pub pieces: u32,
    /// Logical pages of the device.
    pub pages: u64,
    /// All dumps up to these are void.
    pub dumps_void: DumpsVoid,
}

/// Most slots that a checkpoint of `pages` logical pages takes.
pub fn slots_max(geometry: &ZoneGeometry, pages: u64) -> u64 {
    let map = pages.div_ceil(MAP_ENTRIES_MIN as u64);
    let zones = u64::from(geometry.zones).div_ceil(ZONE_ENTRIES as u64);
    let most = u64::from(geometry.append_pages_max);
    let appends = (map + zones).div_ceil(most);
    let footer = u64::from(geometry.append_slots(1));
    appends * u64::from(geometry.append_slots(geometry.append_pages_max))
        + footer
        + u64::from(geometry.append_slots(1))
}

/// A page that begins with `header`.
fn begin(header: &PieceHeader) -> FieldWriter {
    let mut writer = FieldWriter::new();
    writer.u64(MAGIC).u64(header.id).u32(header.kind as u32).u32(header.index);
    writer.u64(header.epoch).u32(header.entries).skip(4);
    writer
}

/// The header of a checkpoint's page; `None` if it is no such page.
pub fn decode_header(page: &[u8; PAGE_BYTES]) -> Option<PieceHeader> {
    let mut reader = FieldReader::new(page, 0);
    if reader.u64() != MAGIC {
        return None;
    }
    let id = reader.u64();
    let kind = match reader.u32() {
        1 => PieceKind::Zones,
        2 => PieceKind::Map,
        3 => PieceKind::Footer,
        _ => return None,
    };
    let (index, epoch) = (reader.u32(), reader.u64());
    Some(PieceHeader { id, kind, index, epoch, entries: reader.u32() })
}

/// Writes the checksum of a checkpoint's page into its header, so that it can be checked without
/// its spare.
fn seal(mut page: PageBuf) -> PageBuf {
    let checksum = page.checksum();
    page.make_mut()[SEAL_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    page
}

/// Whether a page matches the checksum that `seal` wrote into it.
pub fn is_sealed(page: &[u8; PAGE_BYTES]) -> bool {
    // The checksum was computed while its own field was zero.
    let before = crc32c_append(crc32c(&page[..SEAL_AT]), &[0; HEADER_BYTES - SEAL_AT]);
    let checksum = crc32c_append(before, &page[HEADER_BYTES..]);
    page[SEAL_AT..HEADER_BYTES] == checksum.to_le_bytes()
}

/// The encoding of the map's entries.
fn style(checksums: bool) -> Style {
    Style { order: Order::Pages, checksums }
}

/// The entries of a chunk of the map, by page.
///
/// # Errors
/// `Corrupt` if the page is not one.
pub fn decode_map(
    header: &PieceHeader,
    page: &[u8; PAGE_BYTES],
    checksums: bool,
) -> Result<Vec<(PageNo, MapEntry)>> {
    let entry = |line: &Line| Some((PageNo(u64::from(line.page)), MapEntry::from_line(line)?));
    let (first_page, count) = (header.index, header.entries);
    let entries = encoding::decode(page, style(checksums), HEADER_BYTES, first_page, count, entry);
    entries.ok_or_else(|| {
        let context = format!("the map of checkpoint {} from page {} on", header.id, header.index);
        Error::new(ErrorKind::Corrupt, context)
    })
}

/// All entries of a page of the zone table, even those after the last zone.
pub fn decode_zones(page: &[u8; PAGE_BYTES]) -> impl Iterator<Item = ZoneEntry> + '_ {
    let mut reader = FieldReader::new(page, HEADER_BYTES);
    (0..ZONE_ENTRIES).map(move |_| {
        let (epoch, covered_slots, resets) = (reader.u64(), reader.u32(), reader.u32());
        let stream = reader.u32() as u8;
        reader.skip(ZONE_ENTRY_BYTES - 20);
        ZoneEntry { epoch, covered_slots, resets, stream }
    })
}

/// Decodes a footer.
pub fn decode_footer(page: &[u8; PAGE_BYTES]) -> Footer {
    let mut reader = FieldReader::new(page, HEADER_BYTES);
    let mut footer = Footer {
        covered: Version(reader.u64()),
        durable: Version(reader.u64()),
        next_version: Version(reader.u64()),
        pages: reader.u64(),
        pieces: reader.u32(),
        dumps_void: DumpsVoid::default(),
    };
    reader.skip(4);
    footer.dumps_void = DumpsVoid { mapping: reader.u64(), frames: reader.u64() };
    footer
}

/// Encodes the footer.
pub fn encode_footer(header: &PieceHeader, footer: &Footer) -> PageBuf {
    let mut writer = begin(header);
    writer.u64(footer.covered.0).u64(footer.durable.0).u64(footer.next_version.0);
    writer.u64(footer.pages).u32(footer.pieces).skip(4);
    writer.u64(footer.dumps_void.mapping).u64(footer.dumps_void.frames);
    seal(writer.finish())
}

/// The page of the zone table that `header` describes.
pub fn encode_zones(space: &Space, header: &PieceHeader) -> PageBuf {
    let mut writer = begin(header);
    let first = header.index as usize * ZONE_ENTRIES;
    for (_, zone) in space.iter().skip(first).take(ZONE_ENTRIES) {
        writer.u64(if zone.is_in_use() { zone.epoch } else { 0 });
        writer.u32(zone.covered_slots).u32(zone.resets).u32(zone.stream as u32);
        writer.skip(ZONE_ENTRY_BYTES - 20);
    }
    seal(writer.finish())
}

/// Encodes the longest chunk that starts with the first page from `next` on that was ever written. Returns
/// it and the page after it; `None` if there is no such page. Pages that [may be
/// forgotten](Mapping::may_be_forgotten) with versions up to `covered` are treated as if they were never
/// written.
pub fn encode_map(
    map: &Mapping,
    covered: Version,
    header: PieceHeader,
    next: u64,
) -> Option<(PageBuf, u64)> {
    let next_kept = |mut next: u64| {
        loop {
            let page = map.next_written(next)?;
            let entry = map.get(PageNo(page));
            if entry.version > covered || !map.may_be_forgotten(PageNo(page), &entry) {
                return Some(page);
            }
            next = page + 1;
        }
    };
    let first = next_kept(next)?;
    let style = style(map.has_checksums());
    let mut encoder = Encoder::new(style, HEADER_BYTES, first as u32);
    let mut behind = map.pages();
    let mut next = Some(first);
    while let Some(page) = next {
        if !encoder.push(&map.get(PageNo(page)).to_line(PageNo(page))) {
            behind = page;
            break;
        }
        next = next_kept(page + 1);
    }
    let header = PieceHeader { index: first as u32, entries: encoder.count(), ..header };
    let page = encoder.finish(&begin(&header).head::<HEADER_BYTES>());
    Some((seal(page), behind))
}
