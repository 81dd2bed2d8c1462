//! What the mapping says of one page.
use tantalum_base::{PageNo, Payload, SlotNo, Version};
use tantalum_media::Spare;

use crate::map::encoding::{Kind, Line};
use crate::map::remapped::origin;

/// What the FTL knows of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MapEntry {
    /// Version of the last change: of the content, or of the trim that removed it.
    pub version: Version,
    /// Where the content is.
    pub place: Place,
    /// The page was remapped by a share: its content was written for another page, which the slot names
    /// with its version.
    pub remapped: bool,
    /// Checksum of the content. Where the medium keeps that in the slot, the [`origin`] that the
    /// slot of a remapped page names; otherwise 0.
    pub checksum: u32,
}

impl MapEntry {
    /// Nothing, since the change `version`.
    pub fn trimmed(version: Version) -> MapEntry {
        MapEntry { version, place: Place::Unmapped, ..MapEntry::default() }
    }

    /// Whether `content` is what `page` holds, as this entry says. The `spare` that was read with it
    /// names what it was written for, and must name what is known of the slot; where the medium has
    /// none, the checksum must tell.
    pub fn holds<P: Payload>(&self, page: PageNo, content: &P, spare: Option<&Spare>) -> bool {
        let Some(spare) = spare else { return content.checksum() == self.checksum };
        let named = match self.remapped {
            true => origin(spare.page, spare.version) == self.checksum,
            false => (spare.page, spare.version) == (page, self.version),
        };
        spare.kind.is_page() && named && content.checksum() == spare.checksum
    }
}

impl MapEntry {
    /// The entry of `page`, to be written down.
    pub fn to_line(self, page: PageNo) -> Line {
        let (kind, place) = match self.place {
            Place::At(slot) if self.remapped => (Kind::Remapped, slot.0),
            Place::At(slot) => (Kind::Own, slot.0),
            Place::Unmapped => (Kind::Unmapped, 0),
            Place::Lost => (Kind::Lost, 0),
        };
        let (version, checksum) = (self.version.0, self.checksum);
        Line { kind, page: page.0 as u32, version, place, checksum }
    }

    /// What was written down; `None` where that is a trim.
    pub fn from_line(line: &Line) -> Option<MapEntry> {
        let slot = Place::At(SlotNo(line.place));
        let (place, remapped) = match line.kind {
            Kind::Own => (slot, false),
            Kind::Remapped => (slot, true),
            Kind::Unmapped => (Place::Unmapped, false),
            Kind::Lost => (Place::Lost, false),
            Kind::Trim => return None,
        };
        Some(MapEntry { version: Version(line.version), place, remapped, checksum: line.checksum })
    }
}

/// Where a page's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// Nowhere: never written, or trimmed.
    #[default]
    Unmapped,
    /// In this slot.
    At(SlotNo),
    /// The medium lost it; reading is an error until it is written or trimmed.
    Lost,
}

const UNMAPPED: u32 = u32::MAX;
pub const LOST: u32 = u32::MAX - 1;

impl Place {
    /// The place as 32 bits, as kept in memory and in checkpoints.
    pub fn to_bits(self) -> u32 {
        match self {
            Place::Unmapped => UNMAPPED,
            Place::Lost => LOST,
            Place::At(slot) => slot.0,
        }
    }

    /// The slot, where it is in one.
    pub fn slot(self) -> Option<SlotNo> {
        match self {
            Place::At(slot) => Some(slot),
            Place::Unmapped | Place::Lost => None,
        }
    }

    /// The place that `bits` stand for.
    pub fn from_bits(bits: u32) -> Self {
        match bits {
            UNMAPPED => Place::Unmapped,
            LOST => Place::Lost,
            slot => Place::At(SlotNo(slot)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Stamp;
    use tantalum_media::SlotKind;

    #[test]
    fn content_is_checked_against_spare_or_checksum() {
        let (page, version) = (PageNo(5), Version(9));
        let content = Stamp::new(page, 2);
        let checksum = content.checksum();
        let place = Place::At(SlotNo(1));
        let own = MapEntry { version, place, remapped: false, checksum: 0 };
        let remapped = MapEntry { remapped: true, checksum: origin(PageNo(6), version), ..own };
        let spare = Spare { kind: SlotKind::Data, page, version, checksum };
        assert!(own.holds(page, &content, Some(&spare)));
        assert!(!own.holds(page, &content.torn(), Some(&spare)), "damaged");
        let old = Spare { version: Version(8), ..spare };
        let other = Spare { page: PageNo(6), ..spare };
        let meta = Spare { kind: SlotKind::Record, ..spare };
        for (wrong, what) in [(old, "version"), (other, "page"), (meta, "kind")] {
            assert!(!own.holds(page, &content, Some(&wrong)), "another {what}");
        }
        assert!(remapped.holds(page, &content, Some(&other)));
        assert!(!remapped.holds(page, &content.torn(), Some(&other)), "damaged");
        assert!(!remapped.holds(page, &content, Some(&Spare { kind: SlotKind::Record, ..other })));
        let old = Spare { version: Version(8), ..other };
        for (wrong, what) in [(old, "version"), (spare, "page")] {
            assert!(!remapped.holds(page, &content, Some(&wrong)), "another {what}");
        }
        assert!(MapEntry { checksum, ..own }.holds(page, &content, None));
        assert!(!own.holds(page, &content, None), "another checksum");
    }
}
