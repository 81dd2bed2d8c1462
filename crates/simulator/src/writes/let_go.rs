//! Pages that a cache evicted: their content is only at home, and a record says so (`docs/format.md`).
use tantalum_base::{PageBuf, PageNo, Version};
use tantalum_media::Spare;

use super::Writes;

/// The first bytes of a record of such pages, and the offset of its entries.
const MAGIC: [u8; 4] = 0x5461_474f_u32.to_le_bytes();
const ENTRIES_AT: usize = 8;
const ENTRY_BYTES: usize = 12;

/// A content of a zone that was reset.
pub(super) struct GivenUp<P> {
    pub(super) at: u64,
    pub(super) spare: Spare,
    pub(super) content: P,
}

impl<P: Clone> Writes<P> {
    /// Contents in zones that were reset since `begun`, of pages that `record`, which was appended then, lists as evicted.
    /// Without the record nothing says that the home has them.
    pub(super) fn let_go(&self, record: &PageBuf, begun: u64) -> Vec<P> {
        let named = named(record);
        let since = || self.given_up.iter().filter(|one| one.at > begun);
        let is_named = |one: &&GivenUp<P>| named.contains(&(one.spare.page, one.spare.version));
        // A page that a commit remapped has its content in a slot with another page's name.
        let is_found = |named: &(PageNo, Version)| {
            since().any(|one| (one.spare.page, one.spare.version) == *named)
        };
        let all = !named.iter().all(is_found);
        since().filter(|one| all || is_named(one)).map(|one| one.content.clone()).collect()
    }
}

/// The pages that `record` names, with their versions; none if it is another kind of record.
fn named(record: &PageBuf) -> Vec<(PageNo, Version)> {
    let word = |at: usize| record[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if record[..4] != MAGIC {
        return Vec::new();
    }
    let entries = record[ENTRIES_AT..].chunks_exact(ENTRY_BYTES).len().min(word(4) as usize);
    let at = (0..entries).map(|entry| ENTRIES_AT + entry * ENTRY_BYTES);
    at.map(|at| (PageNo(u64::from(word(at))), Version(long(at + 4)))).collect()
}

#[cfg(test)]
mod tests {
    use crate::writes::{CLEANING, Writes};
    use tantalum_base::{PageBuf, PageNo, Payload, Version, ZoneNo};
    use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneGeometry};

    const FLASH: ZoneGeometry = ZoneGeometry {
        zones: 4,
        slots_per_zone: 16,
        append_unit_slots: 1,
        append_overhead_slots: 0,
        append_pages_max: 8,
    };

    fn record(named: &[(u32, u64)]) -> PageBuf {
        let mut page = PageBuf::zero();
        let bytes = page.make_mut();
        bytes[..4].copy_from_slice(b"OGaT");
        bytes[4..8].copy_from_slice(&(named.len() as u32).to_le_bytes());
        for (entry, (page, version)) in bytes[8..].chunks_exact_mut(12).zip(named) {
            entry[..4].copy_from_slice(&page.to_le_bytes());
            entry[4..].copy_from_slice(&version.to_le_bytes());
        }
        page
    }

    /// The contents lost with a record that names these pages, after the zone with contents 11 (of page 1 under version 1) and
    /// 12 was reset.
    fn lost_with(named: &[(u32, u64)]) -> Vec<u64> {
        let mut writes = Writes::new(FLASH);
        let mut append = |zone: u32, stream, kind, version, body| {
            let header = AppendHeader { stream, ..AppendHeader::default() };
            let page = PageNo(version);
            let spare = Spare { kind, page, version: Version(version), checksum: 0 };
            let begun = writes.begin(ZoneNo(zone), &header, &[spare], &[body], 0);
            let first = FLASH.slot(ZoneNo(zone), version as u32);
            writes.returned(begun, first, true);
            first
        };
        append(0, 0, SlotKind::Data, 1, Body::Data(11));
        append(0, 0, SlotKind::Data, 2, Body::Data(12));
        let slot = append(1, CLEANING, SlotKind::Record, 0, Body::Meta(record(named)));
        writes.lose(slot, super::super::ALL);
        assert_eq!(writes.lost(), Vec::<u64>::new(), "they are still there");
        writes.reset_begins(ZoneNo(0));
        writes.lost()
    }

    #[test]
    fn with_a_record_goes_what_it_let_go() {
        assert_eq!(lost_with(&[(1, 1)]), [11]);
        assert_eq!(lost_with(&[(1, 1), (2, 2)]), [11, 12]);
        assert_eq!(lost_with(&[(7, 9)]), [11, 12], "it may be either of them");
        assert_eq!(lost_with(&[]), Vec::<u64>::new());
    }
}
