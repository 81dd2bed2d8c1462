//! The mapping's entry of one page.
use tantalum_base::{PageNo, Payload, SlotNo, Version};
use tantalum_media::Spare;

use crate::map::encoding::{Kind, Line};
use crate::map::remapped::origin;

/// The mapping's entry of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MapEntry {
    /// Version of the last change: of the content, or of the trim that removed it.
    pub version: Version,
    /// The place of the content.
    pub place: Place,
    /// A share remapped the page: its content was written for another page, which the slot names
    /// with its version.
    pub remapped: bool,
    /// The page's home durably has the content too: it may be evicted. Only in a cache.
    pub clean: bool,
    /// Checksum of the content. If the medium keeps that in the slot: for a remapped page the
    /// [`origin`] that its slot names; otherwise 0.
    pub checksum: u32,
}

impl MapEntry {
    /// A page that was trimmed by the change `version`.
    pub fn trimmed(version: Version) -> MapEntry {
        MapEntry { version, place: Place::Unmapped, ..MapEntry::default() }
    }

    /// A page whose content of `version` is at home, and not here.
    pub fn at_home(version: Version) -> MapEntry {
        MapEntry { version, place: Place::Home, ..MapEntry::default() }
    }

    /// Whether `content` is that of `page`, according to this entry. The `spare` that was read with
    /// it must name the page and version expected in the slot; on media without spares the checksum
    /// must match.
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
    /// Encodes the entry of `page` as a line.
    pub fn to_line(self, page: PageNo) -> Line {
        let (kind, place) = match self.place {
            Place::At(slot) if self.remapped && self.clean => (Kind::CleanRemapped, slot.0),
            Place::At(slot) if self.remapped => (Kind::Remapped, slot.0),
            Place::At(slot) if self.clean => (Kind::Clean, slot.0),
            Place::At(slot) => (Kind::Own, slot.0),
            Place::Unmapped => (Kind::Unmapped, 0),
            Place::Lost => (Kind::Lost, 0),
            Place::Home => (Kind::Home, 0),
        };
        let (version, checksum) = (self.version.0, self.checksum);
        Line { kind, page: page.0 as u32, version, place, checksum }
    }

    /// Decodes a line; `None` if it is a trim.
    pub fn from_line(line: &Line) -> Option<MapEntry> {
        let slot = Place::At(SlotNo(line.place));
        let place = match line.kind {
            Kind::Own | Kind::Remapped | Kind::Clean | Kind::CleanRemapped => slot,
            Kind::Unmapped => Place::Unmapped,
            Kind::Lost => Place::Lost,
            Kind::Home => Place::Home,
            Kind::Trim => return None,
        };
        let remapped = matches!(line.kind, Kind::Remapped | Kind::CleanRemapped);
        let clean = matches!(line.kind, Kind::Clean | Kind::CleanRemapped);
        let (version, checksum) = (Version(line.version), line.checksum);
        Some(MapEntry { version, place, remapped, clean, checksum })
    }
}

/// The place of a page's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// There is no content: never written, or trimmed.
    #[default]
    Unmapped,
    /// In this slot.
    At(SlotNo),
    /// The medium lost it; reading is an error until it is written or trimmed.
    Lost,
    /// In the page's home, and not here. Only in a cache.
    Home,
}

const UNMAPPED: u32 = u32::MAX;
const LOST: u32 = u32::MAX - 1;
/// Slots have numbers below this.
pub const HOME: u32 = u32::MAX - 2;

impl Place {
    /// Encodes the place as 32 bits, as in memory and in checkpoints.
    pub fn to_bits(self) -> u32 {
        match self {
            Place::Unmapped => UNMAPPED,
            Place::Lost => LOST,
            Place::Home => HOME,
            Place::At(slot) => slot.0,
        }
    }

    /// The slot, if the place is one.
    pub fn slot(self) -> Option<SlotNo> {
        match self {
            Place::At(slot) => Some(slot),
            Place::Unmapped | Place::Lost | Place::Home => None,
        }
    }

    /// Decodes the place.
    pub fn from_bits(bits: u32) -> Self {
        match bits {
            UNMAPPED => Place::Unmapped,
            LOST => Place::Lost,
            HOME => Place::Home,
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
        let own = MapEntry { version, place, ..MapEntry::default() };
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
