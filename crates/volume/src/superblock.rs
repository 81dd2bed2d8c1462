//! The superblock: read and checked before anything else in a store is trusted.
//!
//! Two copies, at bytes 0 and 4096; [`Copies`](crate::Copies) decides between them. Little endian:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic `TANTALUM` |
//! | 8 | 4 | format version |
//! | 12 | 4 | kind: 1 flash, 2 tiered: a cache of a home elsewhere |
//! | 16 | 16 | identity of the volume |
//! | 32 | 4 | bytes in a page |
//! | 36 | 4 | zones |
//! | 40 | 4 | slots in a zone |
//! | 44 | 4 | 1 if there are pages for large transactions behind the logical ones: the same number, for kind 2 as many as there are slots; 0: none, as in older volumes |
//! | 48 | 8 | logical pages |
//! | 56 | 8 | first byte of the first zone |
//! | 64 | 4 | number of times the volume has grown |
//! | 72 | 8 | logical pages before the last growth; 0 if it never grew |
//! | 4092 | 4 | CRC-32C of the 4092 bytes before |
use tantalum_base::checksum::crc32c;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};
use tantalum_media::ZoneGeometry;
use tantalum_media::file_zones::ANCHOR_MAGIC;

use crate::refusals::{NO_VOLUME, OTHER_VERSION};

const MAGIC: &[u8; 8] = b"TANTALUM";
/// Version of everything on media; `docs/format.md` describes it.
pub const FORMAT_VERSION: u32 = 3;
/// Bytes of one copy.
pub const SUPERBLOCK_BYTES: usize = 4096;
/// Number of copies, one behind the other.
pub const COPIES: usize = 2;
/// Start of the anchors, behind the superblocks.
pub const FIRST_ANCHOR_BYTE: u64 = 2 * SUPERBLOCK_BYTES as u64;
/// Anchors in each of their two copies.
pub const ANCHORS: u32 = 120;
/// Start of the zones: behind the anchors, aligned for any device.
pub const FIRST_ZONE_BYTE: u64 = 1 << 20;
const CRC_AT: usize = SUPERBLOCK_BYTES - 4;
/// Page numbers have 32 bits.
const PAGES_MAX: u64 = u32::MAX as u64;
const KIND_FLASH: u32 = 1;
const KIND_TIERED: u32 = 2;

/// The content of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of the volume, chosen at random when it was created.
    pub volume_id: u128,
    /// Number of zones.
    pub zones: u32,
    /// Slots in a zone.
    pub slots_per_zone: u32,
    /// Logical pages.
    pub pages: u64,
    /// Whether the volume is a cache, and the pages have a home elsewhere.
    pub is_cache: bool,
    /// Whether there are pages behind the logical ones for staging large transactions.
    pub is_staged: bool,
    /// Number of times the volume has grown.
    pub growths: u32,
    /// Logical pages before the last growth; 0 if it never grew.
    pub pages_before: u64,
}

impl Superblock {
    /// Encodes one copy.
    pub fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &FORMAT_VERSION.to_le_bytes());
        let kind = if self.is_cache { KIND_TIERED } else { KIND_FLASH };
        put(12, &kind.to_le_bytes());
        put(16, &self.volume_id.to_le_bytes());
        put(32, &(PAGE_BYTES as u32).to_le_bytes());
        put(36, &self.zones.to_le_bytes());
        put(40, &self.slots_per_zone.to_le_bytes());
        put(44, &u32::from(self.is_staged).to_le_bytes());
        put(48, &self.pages.to_le_bytes());
        put(56, &FIRST_ZONE_BYTE.to_le_bytes());
        put(64, &self.growths.to_le_bytes());
        put(72, &self.pages_before.to_le_bytes());
        let crc = crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes one copy.
    ///
    /// # Errors
    /// `Format` if it is no volume or has another version; `Checksum` if it is damaged; `Corrupt` if its fields are invalid.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let field = |at: usize, len: usize| bytes.get(at..at + len).unwrap_or(&[]);
        let word = |at: usize| field(at, 4).try_into().map(u32::from_le_bytes).unwrap_or(0);
        let long = |at: usize| field(at, 8).try_into().map(u64::from_le_bytes).unwrap_or(0);
        let format = |context: String| Err(Error::new(ErrorKind::Format, context));
        if field(0, 8) != MAGIC {
            let context = format!(
                "{NO_VOLUME} (no magic number): it was overwritten, or media.path names another file or device: put the volume's back"
            );
            return Err(NO_VOLUME.error(ErrorKind::Format, context));
        }
        let version = word(8);
        if version != FORMAT_VERSION {
            let context = format!(
                "{OTHER_VERSION} {version}; this program reads version {FORMAT_VERSION}: use a program of the volume's version"
            );
            return Err(OTHER_VERSION.error(ErrorKind::Format, context));
        }
        if bytes.len() < SUPERBLOCK_BYTES || crc32c(&bytes[..CRC_AT]) != word(CRC_AT) {
            return Err(Error::new(ErrorKind::Checksum, "the superblock is damaged"));
        }
        if ![KIND_FLASH, KIND_TIERED].contains(&word(12)) {
            return format(format!("the volume is of unknown kind {}", word(12)));
        }
        if word(32) != PAGE_BYTES as u32 || long(56) != FIRST_ZONE_BYTE {
            return format(format!(
                "the volume has pages of {} bytes and zones from byte {}; this program uses {PAGE_BYTES} and {FIRST_ZONE_BYTE}",
                word(32),
                long(56)
            ));
        }
        if word(44) > 1 {
            return format(format!(
                "the superblock has unknown kind {} of staging pages",
                word(44)
            ));
        }
        let (zones, slots_per_zone, pages) = (word(36), word(40), long(48));
        let has_slots = zones.checked_mul(slots_per_zone).is_some_and(|slots| slots > 0);
        if !has_slots || !(1..=PAGES_MAX).contains(&pages) || long(72) > pages {
            let context = format!(
                "the superblock says {pages} pages, {} before the volume grew, and {zones} zones \
                 of {slots_per_zone} slots, which no volume has. Its checksum is correct, so a \
                 faulty program or a person wrote it like this. Nothing was changed; restore a \
                 copy of it (the volume's other superblock, at byte 0 or 4096, may be whole)",
                long(72)
            );
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        let mut volume_id = [0; 16];
        volume_id.copy_from_slice(field(16, 16));
        Ok(Superblock {
            volume_id: u128::from_le_bytes(volume_id),
            zones,
            slots_per_zone,
            pages,
            is_cache: word(12) == KIND_TIERED,
            is_staged: word(44) == 1,
            growths: word(64),
            pages_before: long(72),
        })
    }

    /// Whether this is the successor of `before` after one growth.
    pub fn is_grown_from(&self, before: &Superblock) -> bool {
        let grown = Superblock {
            zones: self.zones,
            pages: self.pages,
            growths: before.growths.wrapping_add(1),
            pages_before: before.pages,
            ..*before
        };
        *self == grown && self.pages >= before.pages && self.zones >= before.zones
    }

    /// Number of staging pages behind the logical ones.
    pub fn staging_pages(&self) -> u64 {
        match self.is_cache && self.is_staged {
            // Staged pages are in the flash, so there are as many as slots.
            true => u64::from(self.zones) * u64::from(self.slots_per_zone),
            false => staging_pages(self.pages, self.is_staged),
        }
    }

    /// The shape of the zones.
    pub fn geometry(&self) -> ZoneGeometry {
        ZoneGeometry {
            zones: self.zones,
            slots_per_zone: self.slots_per_zone,
            append_unit_slots: 1,
            append_overhead_slots: 1,
            append_pages_max: tantalum_media::file_zones::APPEND_PAGES_MAX,
        }
    }

    /// Bytes that the store needs.
    pub fn store_bytes(&self) -> u64 {
        FIRST_ZONE_BYTE + u64::from(self.zones) * u64::from(self.slots_per_zone) * PAGE_BYTES as u64
    }
}

/// Number of staging pages of a volume without a home that has `pages` logical pages: as many, so that one transaction may write
/// them all.
pub(crate) fn staging_pages(pages: u64, is_staged: bool) -> u64 {
    if is_staged { pages } else { 0 }
}

/// Whether the copy is as it was written, in any version.
pub(crate) fn is_intact(copy: &[u8]) -> bool {
    let crc = copy.get(CRC_AT..SUPERBLOCK_BYTES).and_then(|crc| crc.try_into().ok());
    copy.starts_with(MAGIC) && crc.map(u32::from_le_bytes) == Some(crc32c(&copy[..CRC_AT]))
}

/// Whether the unused bytes of an intact `copy` are zero.
pub(crate) fn is_zero_where_unused(copy: &[u8]) -> bool {
    let unused = [68..72, 80..CRC_AT].map(|at| copy.get(at).unwrap_or(&[]));
    unused.into_iter().flatten().all(|byte| *byte == 0)
}

/// Whether one of the copies at the start of `bytes` begins with the magic of a superblock, in any version and however damaged.
pub fn has_magic(bytes: &[u8]) -> bool {
    bytes.chunks(SUPERBLOCK_BYTES).take(COPIES).any(|copy| copy.starts_with(MAGIC))
}

/// Whether a store with this start is blank, or held a volume that was given up: its superblocks are blank, and behind them are
/// only anchors.
pub fn is_left_behind(start: &[u8]) -> bool {
    let is_blank = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    let (superblocks, anchors) = start.split_at(start.len().min(FIRST_ANCHOR_BYTE as usize));
    let is_anchor = |page: &[u8]| is_blank(page) || page.starts_with(&ANCHOR_MAGIC);
    is_blank(superblocks) && anchors.chunks(PAGE_BYTES).all(is_anchor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPERBLOCK: Superblock = Superblock {
        volume_id: 0x1234_5678_9abc_def0,
        zones: 7,
        slots_per_zone: 256,
        pages: 1000,
        is_cache: false,
        is_staged: true,
        growths: 3,
        pages_before: 500,
    };

    #[test]
    fn it_comes_back_and_damage_is_found() {
        let mut bytes = SUPERBLOCK.encode();
        assert_eq!(Superblock::decode(&bytes).unwrap(), SUPERBLOCK);
        for at in [12, 20, 36, 50, 100, CRC_AT] {
            bytes[at] ^= 1;
            assert_eq!(Superblock::decode(&bytes).unwrap_err().kind(), ErrorKind::Checksum);
            bytes[at] ^= 1;
        }
        bytes[8] = 9;
        let error = Superblock::decode(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains("version 9"), "{error}");
    }
}
