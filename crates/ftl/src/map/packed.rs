//! A mapping entry in ten bytes.
use tantalum_base::Version;

use crate::map::{MapEntry, Place};

/// Versions stay below this: 2^46 changes of 4 KiB are 288 exabytes.
pub const VERSION_END: u64 = 1 << 46;
/// In the upper part of a version: the page is remapped to another page's content.
pub const REMAPPED: u16 = 1 << 15;
/// In the upper part of a version: the page's home has the content too.
pub const CLEAN: u16 = 1 << 14;

/// Version and place of a page in 10 bytes: the inverted bits of the place, the version, and in the top
/// bits whether the page is remapped, and clean. A page that was never written is all zero, so the table of
/// a large device takes memory only for the parts that are used.
pub type Packed = [u16; 5];

#[inline]
pub fn pack(entry: &MapEntry) -> Packed {
    let version = entry.version.0;
    assert!(version < VERSION_END, "version {version} is beyond what the map can hold");
    let remapped = if entry.remapped { REMAPPED } else { 0 };
    let clean = if entry.clean { CLEAN } else { 0 };
    let place = !entry.place.to_bits();
    [
        place as u16,
        (place >> 16) as u16,
        version as u16,
        (version >> 16) as u16,
        (version >> 32) as u16 | remapped | clean,
    ]
}

/// The place, as [`Place::to_bits`] encodes it.
#[inline]
pub fn place_of(packed: &Packed) -> u32 {
    !(u32::from(packed[0]) | u32::from(packed[1]) << 16)
}

#[inline]
pub fn is_remapped(packed: &Packed) -> bool {
    packed[4] & REMAPPED != 0
}

#[inline]
pub fn unpack(packed: &Packed, checksum: u32) -> MapEntry {
    let high = u64::from(packed[4] & !(REMAPPED | CLEAN));
    let low = u64::from(packed[2]) | u64::from(packed[3]) << 16;
    MapEntry {
        version: Version(high << 32 | low),
        place: Place::from_bits(place_of(packed)),
        remapped: is_remapped(packed),
        clean: packed[4] & CLEAN != 0,
        checksum,
    }
}
