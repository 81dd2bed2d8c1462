//! The structures of a flash: superblocks, anchors, appends, and the device's own pages.
use super::entries::{Order, Packed};
use super::{CHECKSUM_AT, Entries, Field, Limits, Means, Sealed, Structure};
use super::{fields, is_sealed, number};
use tantalum_base::PAGE_BYTES;
use tantalum_base::checksum::crc32c;

type Layout = &'static [(&'static str, usize, usize, Means)];

pub(crate) const SPARES_AT: usize = 128;
pub(crate) const SPARE_BYTES: usize = 24;
const RECORD: u64 = 3;
const CHECKPOINT: u64 = 4;
const DELTA: u64 = 5;
const DUMP: u64 = 6;

const SUPERBLOCK: Layout = &[
    ("kind", 12, 4, Means::State),
    ("volume id", 16, 8, Means::Identity),
    ("page bytes", 32, 4, Means::Size),
    ("zones", 36, 4, Means::Zone),
    ("slots in a zone", 40, 4, Means::Offset),
    ("staged", 44, 4, Means::State),
    ("pages", 48, 8, Means::Emptied),
    ("first zone", 56, 8, Means::Size),
    ("growths", 64, 4, Means::Count),
    ("pages before", 72, 8, Means::Emptied),
];
const ANCHOR: Layout = &[
    ("volume id", 8, 8, Means::Identity),
    ("number", 24, 8, Means::Sequence),
    ("length", 32, 4, Means::Size),
    ("era", 40, 8, Means::Sequence),
    ("checkpoint", 48, 8, Means::Sequence),
    ("flags", 56, 4, Means::State),
    ("starts", 60, 4, Means::Count),
    ("index", 64, 4, Means::Count),
    ("extents", 68, 4, Means::Count),
    ("zones", 72, 4, Means::Count),
];
const EXTENT: Layout = &[("first slot", 0, 4, Means::Slot), ("slots", 4, 4, Means::Slot)];
const NOTED_ZONE: Layout = &[
    ("noted zone", 0, 4, Means::Zone),
    ("covered slots", 4, 4, Means::Offset),
    ("epoch", 8, 8, Means::Epoch),
    ("stream", 15, 1, Means::Stream),
];
const HEADER: Layout = &[
    ("pages", 10, 2, Means::Count),
    ("stream", 12, 1, Means::Stream),
    ("volume id", 16, 8, Means::Identity),
    ("zone", 32, 4, Means::Zone),
    ("slot", 36, 4, Means::Offset),
    ("epoch", 40, 8, Means::Epoch),
    ("durable", 48, 8, Means::Version),
    ("batch first", 56, 8, Means::Version),
    ("batch length", 64, 4, Means::Count),
];
const SPARE: Layout = &[
    ("spare page", 0, 8, Means::Page),
    ("spare version", 8, 8, Means::Version),
    ("spare checksum", 16, 4, Means::Checksum),
    ("spare kind", 20, 1, Means::Kind),
];
const LISTED: Layout = &[("magic", 0, 4, Means::Kind), ("entries", 4, 4, Means::Count)];
const TRIM: Layout = &[
    ("kind", 0, 8, Means::State),
    ("first", 8, 8, Means::Emptied),
    ("pages", 16, 8, Means::EmptiedPages),
];
const SHARE: Layout = &[
    ("left", 0, 4, Means::Page),
    ("right", 4, 4, Means::Page),
    ("right version", 8, 8, Means::Version),
    ("slot", 16, 4, Means::Slot),
    ("checksum", 20, 4, Means::Checksum),
];
const REFERENCE: Layout = &[
    ("page", 0, 4, Means::Page),
    ("index", 4, 4, Means::Which),
    ("version", 8, 8, Means::Version),
];
const DEAD: Layout = &[("first", 0, 8, Means::Version), ("versions", 8, 4, Means::Count)];
const GONE: Layout = &[("page", 0, 4, Means::Emptied), ("version", 4, 8, Means::Version)];
const PIECE: Layout =
    &[("id", 8, 8, Means::Sequence), ("kind", 16, 4, Means::Kind), ("epoch", 24, 8, Means::Epoch)];
const TABLE: Layout = &[("index", 20, 4, Means::Count)];
const CHUNK: Layout = &[("first page", 20, 4, Means::Page), ("entries", 32, 4, Means::Count)];
const ZONE: Layout = &[
    ("zone epoch", 0, 8, Means::Epoch),
    ("covered slots", 8, 4, Means::Offset),
    ("resets", 12, 4, Means::Count),
    ("stream", 16, 4, Means::Stream),
];
const FOOTER: Layout = &[
    ("covered", 40, 8, Means::Version),
    ("durable", 48, 8, Means::Version),
    ("next version", 56, 8, Means::Version),
    ("pages", 64, 8, Means::Emptied),
    ("pieces", 72, 4, Means::Count),
    ("void mappings", 80, 8, Means::Epoch),
    ("void dumps", 88, 8, Means::Epoch),
];
const DELTAS: Layout = &[
    ("checkpoint", 8, 8, Means::Sequence),
    ("number", 16, 8, Means::Sequence),
    ("entries", 24, 4, Means::Count),
];
const DUMP_END: Layout = &[
    ("number", 8, 8, Means::Epoch),
    ("checkpoint", 16, 8, Means::Sequence),
    ("deltas up to", 24, 8, Means::Sequence),
    ("next version", 32, 8, Means::Version),
    ("delta pages", 40, 8, Means::Count),
    ("entry pages", 48, 4, Means::Count),
    ("frames", 52, 4, Means::Count),
];

/// The structures in the image of a flash.
pub(super) fn structures(flash: &[u8], limits: &Limits) -> Vec<Structure> {
    let mut found = Vec::new();
    for at in (0..flash.len()).step_by(PAGE_BYTES) {
        if !is_sealed(flash, at) {
            continue;
        }
        match &flash[at..at + 8] {
            b"TANTALUM" => found.push(plain("superblock", at, fields(at, SUPERBLOCK))),
            b"TantAnch" => found.push(anchor(flash, at)),
            b"TantalZA" if at >= limits.zones_byte => append(flash, at, limits, &mut found),
            _ => {}
        }
    }
    found
}

fn plain(name: &'static str, at: usize, fields: Vec<Field>) -> Structure {
    let (entries, packed) = (None, None);
    let sealed = Sealed::Page;
    Structure { name, store: 0, page: at, age: 0, sealed, fields, entries, packed }
}

fn anchor(flash: &[u8], at: usize) -> Structure {
    let mut all = fields(at, ANCHOR);
    let extents = number(flash, at + 68, 4) as usize;
    let zones = number(flash, at + 72, 4) as usize;
    let zones_at = at + 80 + extents * 8;
    (0..extents).for_each(|index| all.extend(fields(at + 80 + index * 8, EXTENT)));
    (0..zones).for_each(|index| all.extend(fields(zones_at + index * 16, NOTED_ZONE)));
    let entries = Some(Entries { first: zones_at, bytes: 16, count: zones });
    Structure { age: number(flash, at + 24, 8), entries, ..plain("anchor", at, all) }
}

/// The header at `at`, and those of its pages that the device wrote for itself.
fn append(flash: &[u8], at: usize, limits: &Limits, found: &mut Vec<Structure>) {
    let zone_bytes = limits.image_slots * PAGE_BYTES;
    let is_placed = number(flash, at + 32, 4) == ((at - limits.zones_byte) / zone_bytes) as u64
        && number(flash, at + 36, 4) == ((at - limits.zones_byte) % zone_bytes / PAGE_BYTES) as u64;
    if !is_placed {
        return;
    }
    let count = number(flash, at + 10, 2) as usize;
    let name = match flash[at + 12] {
        0 => "header of hosts",
        1 => "header of cleaning",
        2 => "header of checkpoints",
        _ => "header of dumps",
    };
    let spares_at = at + SPARES_AT;
    let mut all = fields(at, HEADER);
    (0..count).for_each(|index| all.extend(fields(spares_at + index * SPARE_BYTES, SPARE)));
    let entries = Some(Entries { first: spares_at, bytes: SPARE_BYTES, count });
    let age = number(flash, at + 40, 8) << 16 | number(flash, at + 36, 4);
    found.push(Structure { age, entries, ..plain(name, at, all) });
    for index in 0..count {
        let (spare, page) = (spares_at + index * SPARE_BYTES, at + (1 + index) * PAGE_BYTES);
        let Some(content) = flash.get(page..page + PAGE_BYTES) else { return };
        if number(flash, spare + 16, 4) != u64::from(crc32c(content)) {
            continue;
        }
        let kind = u64::from(flash[spare + 20]);
        if let Some(own) = own_page(kind, content, page) {
            let sealed = Sealed::Spare { spare, header: at };
            found.push(Structure { page, age: age + index as u64, sealed, ..own });
        }
    }
}

/// A page of `kind` that the device wrote for itself, with content at byte `page`.
fn own_page(kind: u64, content: &[u8], page: usize) -> Option<Structure> {
    match kind {
        RECORD => record(content, page),
        CHECKPOINT => Some(piece(content, page)),
        DELTA => Some(deltas("delta page", page)),
        DUMP if content.starts_with(b"TantDump") => {
            Some(plain("header of a dump", page, fields(page, DUMP_END)))
        }
        DUMP if content.starts_with(b"TantDumE") => {
            Some(plain("footer of a dump", page, fields(page, DUMP_END)))
        }
        DUMP if content.starts_with(b"TantDelt") => Some(deltas("entries in a dump", page)),
        _ => None,
    }
}

fn record(content: &[u8], page: usize) -> Option<Structure> {
    let (name, first, entry): (_, _, Layout) = match number(content, 0, 4) {
        0x5461_5243 => ("trims", 8, TRIM),
        0x5461_5348 => ("shares", 16, SHARE),
        0x5461_5352 => ("references", 8, REFERENCE),
        0x5461_4456 => ("dead versions", 8, DEAD),
        0x5461_474f => ("pages let go", 8, GONE),
        _ => return None,
    };
    let count = number(content, 4, 4) as usize;
    // A record without entries only carries a watermark.
    if count == 0 {
        return None;
    }
    let bytes = entry.iter().map(|(_, at, width, _)| at + width).max().unwrap_or(0);
    let mut all = fields(page, LISTED);
    if name == "shares" {
        all.extend(fields(page, &[("epoch", 8, 8, Means::Epoch)]));
    }
    (0..count).for_each(|index| all.extend(fields(page + first + index * bytes, entry)));
    let entries = Some(Entries { first: page + first, bytes, count });
    Some(Structure { entries, ..plain(name, page, all) })
}

fn piece(content: &[u8], page: usize) -> Structure {
    let mut all = fields(page, PIECE);
    let (mut entries, mut packed) = (None, None);
    let name = match number(content, 16, 4) {
        1 => {
            all.extend(fields(page, TABLE));
            let count = (PAGE_BYTES - 40) / 24;
            let zone = |index: &usize| content[40 + index * 24..][..24] != [0; 24];
            let used = (0..count).filter(zone);
            used.for_each(|index| all.extend(fields(page + 40 + index * 24, ZONE)));
            entries = Some(Entries { first: page + 40, bytes: 24, count });
            "zone table"
        }
        2 => {
            all.extend(fields(page, CHUNK));
            packed = Some(Packed { first: 40, count_at: 32, order: Order::Pages });
            "chunk of the map"
        }
        _ => {
            all.extend(fields(page, FOOTER));
            "footer of a checkpoint"
        }
    };
    Structure { entries, packed, ..plain(name, page, all) }
}

fn deltas(name: &'static str, page: usize) -> Structure {
    let packed = Some(Packed { first: 32, count_at: 24, order: Order::Time });
    Structure { packed, ..plain(name, page, fields(page, DELTAS)) }
}

/// Corrects the checksum of the page at `at`, which is its last four bytes.
pub(crate) fn repair_page(bytes: &mut [u8], at: usize) {
    let checksum = crc32c(&bytes[at..at + CHECKSUM_AT]);
    super::put(bytes, at + CHECKSUM_AT, 4, u64::from(checksum));
}

/// Corrects the checksums of one of the device's own pages: the one inside a checkpoint's page, and the one in its spare.
pub(super) fn repair_own_page(bytes: &mut [u8], at: usize, spare: usize) {
    const SEAL_AT: usize = 36;
    if bytes[at..].starts_with(b"TantCkpt") {
        super::put(bytes, at + SEAL_AT, 4, 0);
        let seal = crc32c(&bytes[at..at + PAGE_BYTES]);
        super::put(bytes, at + SEAL_AT, 4, u64::from(seal));
    }
    let checksum = crc32c(&bytes[at..at + PAGE_BYTES]);
    super::put(bytes, spare + 16, 4, u64::from(checksum));
}
