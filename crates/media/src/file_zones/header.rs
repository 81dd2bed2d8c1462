//! The binary layout of the header page of an append (docs/format.md, "File zones").
use crate::zone::{AppendHeader, SlotKind, Spare};
use tantalum_base::checksum::crc32c;
use tantalum_base::{PAGE_BYTES, PageNo, Version};

/// Maximum pages in one append, limited by the space for spares in the header page.
pub const APPEND_PAGES_MAX: u32 = ((CHECKSUM_AT - SPARES_AT) / SPARE_BYTES) as u32;

const MAGIC: [u8; 8] = *b"TantalZA";
const FORMAT_VERSION: u16 = 1;

const SPARES_AT: usize = 128;
const SPARE_BYTES: usize = 24;
const CHECKSUM_AT: usize = PAGE_BYTES - 4;

/// Location of an append. A header that names another location was misdirected or copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) volume_id: u128,
    pub(super) zone: u32,
    /// Slot of the header page within the zone.
    pub(super) offset: u32,
}

/// Writes the header into `page`, whose old content does not matter.
pub(super) fn encode(page: &mut [u8], place: Place, header: &AppendHeader, spares: &[Spare]) {
    assert!(spares.len() <= APPEND_PAGES_MAX as usize, "too many pages for one append");
    assert_eq!(page.len(), PAGE_BYTES);
    page[..8].copy_from_slice(&MAGIC);
    put(page, 8, FORMAT_VERSION.to_le_bytes());
    put(page, 10, (spares.len() as u16).to_le_bytes());
    put(page, 12, [header.stream, 0, 0, 0]);
    put(page, 16, place.volume_id.to_le_bytes());
    put(page, 32, place.zone.to_le_bytes());
    put(page, 36, place.offset.to_le_bytes());
    put(page, 40, header.epoch.to_le_bytes());
    put(page, 48, header.durable.0.to_le_bytes());
    put(page, 56, header.batch_first.0.to_le_bytes());
    put(page, 64, header.batch_len.to_le_bytes());
    page[68..SPARES_AT].fill(0);
    let (used, rest) = page[SPARES_AT..].split_at_mut(spares.len() * SPARE_BYTES);
    for (bytes, spare) in used.chunks_exact_mut(SPARE_BYTES).zip(spares) {
        put(bytes, 0, spare.page.0.to_le_bytes());
        put(bytes, 8, spare.version.0.to_le_bytes());
        put(bytes, 16, spare.checksum.to_le_bytes());
        put(bytes, 20, [spare.kind as u8, 0, 0, 0]);
    }
    rest.fill(0);
    let checksum = crc32c(&page[..CHECKSUM_AT]);
    put(page, CHECKSUM_AT, checksum.to_le_bytes());
}

/// Quick check for a possible header in `page`.
#[inline]
pub(super) fn looks_like_header(page: &[u8]) -> bool {
    page.starts_with(&MAGIC)
}

/// The header and spares in `page`, if it is intact and belongs to `place`.
pub(super) fn decode(page: &[u8], place: Place) -> Option<(AppendHeader, Vec<Spare>)> {
    let header = decode_header(page, place)?;
    let count = u16::from_le_bytes(get(page, 10)) as usize;
    let spares = page[SPARES_AT..CHECKSUM_AT].chunks_exact(SPARE_BYTES).take(count);
    let spares: Option<Vec<Spare>> = spares.map(decode_spare).collect();
    Some((header, spares?))
}

/// Like [`decode`], without the spares.
pub(super) fn decode_header(page: &[u8], place: Place) -> Option<AppendHeader> {
    let found = Place {
        volume_id: u128::from_le_bytes(get(page, 16)),
        zone: u32::from_le_bytes(get(page, 32)),
        offset: u32::from_le_bytes(get(page, 36)),
    };
    let count = u32::from(u16::from_le_bytes(get(page, 10)));
    let whole = looks_like_header(page)
        && crc32c(&page[..CHECKSUM_AT]) == u32::from_le_bytes(get(page, CHECKSUM_AT))
        && u16::from_le_bytes(get(page, 8)) == FORMAT_VERSION;
    if !whole || found != place || !(1..=APPEND_PAGES_MAX).contains(&count) {
        return None;
    }
    Some(AppendHeader {
        epoch: u64::from_le_bytes(get(page, 40)),
        stream: page[12],
        durable: Version(u64::from_le_bytes(get(page, 48))),
        batch_first: Version(u64::from_le_bytes(get(page, 56))),
        batch_len: u32::from_le_bytes(get(page, 64)),
    })
}

/// Whether `page` was a header of the opening `epoch` at `place`, intact or not. The epoch must match, and at least
/// three of the other four fields (magic, volume, zone, offset).
pub(super) fn resembles(page: &[u8], place: Place, epoch: u64) -> bool {
    let agrees = [
        looks_like_header(page),
        page[16..32] == place.volume_id.to_le_bytes(),
        page[32..36] == place.zone.to_le_bytes(),
        page[36..40] == place.offset.to_le_bytes(),
    ];
    // The header of an older opening differs only in the epoch.
    page[40..48] == epoch.to_le_bytes() && agrees.iter().filter(|agrees| **agrees).count() >= 3
}

/// Whether all unused bytes of the intact header `page` are zero. Exception: earlier builds wrote non-zero bytes to
/// the first four after the batch.
pub(super) fn is_zero_where_unused(page: &[u8]) -> bool {
    let count = usize::from(u16::from_le_bytes(get(page, 10)));
    let (used, rest) = page[SPARES_AT..CHECKSUM_AT].split_at(count * SPARE_BYTES);
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    zero(&page[13..16])
        && zero(&page[72..SPARES_AT])
        && used.chunks_exact(SPARE_BYTES).all(|spare| zero(&spare[21..]))
        && zero(rest)
}

fn decode_spare(bytes: &[u8]) -> Option<Spare> {
    Some(Spare {
        page: PageNo(u64::from_le_bytes(get(bytes, 0))),
        version: Version(u64::from_le_bytes(get(bytes, 8))),
        checksum: u32::from_le_bytes(get(bytes, 16)),
        kind: SlotKind::from_byte(bytes[20])?,
    })
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place =
        Place { volume_id: 0x1234_5678_9abc_def0_1122_3344_5566_7788, zone: 7, offset: 40 };

    fn header() -> AppendHeader {
        AppendHeader {
            epoch: 0x0102_0304_0506_0708,
            stream: 3,
            durable: Version(1 << 40),
            batch_first: Version((1 << 40) + 1),
            batch_len: 9,
        }
    }

    fn spares(count: u32) -> Vec<Spare> {
        (0..count)
            .map(|index| Spare {
                kind: SlotKind::from_byte((index % 4) as u8 + 1).unwrap(),
                page: PageNo(u64::from(index) << 33),
                version: Version(u64::from(index) + 5),
                checksum: index.wrapping_mul(0x9e37_79b9),
            })
            .collect()
    }

    #[test]
    fn every_number_of_spares_comes_back() {
        for count in [1, 2, 100, APPEND_PAGES_MAX] {
            let mut page = vec![0xff; PAGE_BYTES];
            encode(&mut page, PLACE, &header(), &spares(count));
            assert_eq!(decode(&page, PLACE), Some((header(), spares(count))));
            assert_eq!(decode_header(&page, PLACE), Some(header()));
        }
        const { assert!(APPEND_PAGES_MAX >= 100) };
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let mut page = vec![0; PAGE_BYTES];
        encode(&mut page, PLACE, &header(), &spares(APPEND_PAGES_MAX));
        for byte in 0..PAGE_BYTES {
            page[byte] ^= 1 << (byte % 8);
            assert_eq!(decode(&page, PLACE), None, "byte {byte}");
            page[byte] ^= 1 << (byte % 8);
        }
        assert!(decode(&page, PLACE).is_some());
    }

    #[test]
    fn a_damaged_header_is_known_for_one_and_another_opening_is_not() {
        let (mut page, epoch) = (vec![0; PAGE_BYTES], header().epoch);
        encode(&mut page, PLACE, &header(), &spares(9));
        assert!(resembles(&page, PLACE, epoch) && !resembles(&page, PLACE, epoch + 1));
        for byte in (0..40).chain(48..PAGE_BYTES) {
            page[byte] ^= 1 << (byte % 8);
            assert!(resembles(&page, PLACE, epoch), "byte {byte}");
            page[byte] ^= 1 << (byte % 8);
        }
        assert!(!resembles(&[0; PAGE_BYTES], PLACE, epoch));
    }

    #[test]
    fn unused_bytes_are_zero() {
        let mut page = vec![0xff; PAGE_BYTES];
        encode(&mut page, PLACE, &header(), &spares(9));
        assert!(is_zero_where_unused(&page));
        for byte in [13, 72, SPARES_AT + 21, SPARES_AT + 9 * SPARE_BYTES, CHECKSUM_AT - 1] {
            page[byte] = 1;
            assert!(!is_zero_where_unused(&page), "byte {byte}");
            page[byte] = 0;
        }
    }

    #[test]
    fn a_header_counts_only_where_it_belongs() {
        let mut page = vec![0; PAGE_BYTES];
        encode(&mut page, PLACE, &header(), &spares(4));
        for place in [
            Place { volume_id: 1, ..PLACE },
            Place { zone: 8, ..PLACE },
            Place { offset: 41, ..PLACE },
        ] {
            assert_eq!(decode(&page, place), None);
        }
    }
}
