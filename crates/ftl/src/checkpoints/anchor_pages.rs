//! The content of anchors as bytes, and which anchors are in force (docs/format.md, "Anchors").
use std::collections::BTreeMap;
use tantalum_base::{SlotNo, ZoneNo};
use tantalum_media::file_zones::ANCHOR_BYTES_MAX;

pub(crate) const HEAD_BYTES: usize = 40;
pub(crate) const EXTENT_BYTES: usize = 8;
pub(crate) const ZONE_BYTES: usize = 16;
pub(crate) const CLEAN: u32 = 1;
pub(crate) const ANY_ZONE: u32 = 2;
/// Numbers of eras are below this: an anchor with a higher number is invalid.
const ERAS_END: u64 = 1 << 62;

/// Consecutive pages of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub first: SlotNo,
    pub pages: u32,
}

/// A zone that was opened since the checkpoint was begun, or may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotedZone {
    pub zone: ZoneNo,
    /// The number of its opening; 0 if it had not been opened yet.
    pub epoch: u64,
    pub stream: u8,
    /// Slots that recovery need not scan.
    pub covered_slots: u32,
}

/// The combined content of an era's anchors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Era {
    /// The checkpoint in force.
    pub checkpoint: u64,
    /// The slots of its pages, in order.
    pub extents: Vec<Extent>,
    pub zones: Vec<NotedZone>,
    /// The checkpoint covers every change.
    pub clean: bool,
    /// Zones may have been opened that are not among `zones`.
    pub any_zone: bool,
}

/// The header of every anchor.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    /// Number of the era.
    pub era: u64,
    pub checkpoint: u64,
    pub flags: u32,
    /// Number of anchors that begin the era: it is in force when all of them are there.
    pub starts: u32,
    /// Index of this anchor in its era.
    pub index: u32,
}

/// The content of one anchor.
pub(crate) struct Anchor<'a> {
    pub head: Head,
    pub extents: &'a [Extent],
    pub zones: &'a [NotedZone],
}

impl Anchor<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ANCHOR_BYTES_MAX);
        let Head { era, checkpoint, flags, starts, index } = self.head;
        bytes.extend(era.to_le_bytes());
        bytes.extend(checkpoint.to_le_bytes());
        let (extents, zones) = (self.extents.len() as u32, self.zones.len() as u32);
        let words = [flags, starts, index, extents, zones, 0];
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        for extent in self.extents {
            bytes.extend(extent.first.0.to_le_bytes());
            bytes.extend(extent.pages.to_le_bytes());
        }
        for noted in self.zones {
            bytes.extend(noted.zone.0.to_le_bytes());
            bytes.extend(noted.covered_slots.to_le_bytes());
            bytes.extend((noted.epoch | u64::from(noted.stream) << 56).to_le_bytes());
        }
        bytes
    }
}

/// An anchor that was read.
pub(crate) struct Read {
    pub head: Head,
    pub extents: Vec<Extent>,
    pub zones: Vec<NotedZone>,
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Read> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (extents, zones) = (word(28)? as usize, word(32)? as usize);
    let zones_at = HEAD_BYTES.checked_add(extents.checked_mul(EXTENT_BYTES)?)?;
    let extent = |at: usize| Some(Extent { first: SlotNo(word(at)?), pages: word(at + 4)? });
    let noted = |at: usize| {
        let opening = long(at + 8)?;
        Some(NotedZone {
            zone: ZoneNo(word(at)?),
            covered_slots: word(at + 4)?,
            epoch: opening & ((1 << 56) - 1),
            stream: (opening >> 56) as u8,
        })
    };
    Some(Read {
        head: Head {
            era: long(0)?,
            checkpoint: long(8)?,
            flags: word(16)?,
            starts: word(20)?,
            index: word(24)?,
        },
        extents: (0..extents)
            .map(|index| extent(HEAD_BYTES + index * EXTENT_BYTES))
            .collect::<Option<_>>()?,
        zones: (0..zones)
            .map(|index| noted(zones_at + index * ZONE_BYTES))
            .collect::<Option<_>>()?,
    })
    .filter(|read| read.head.era < ERAS_END)
}

/// The anchors of the era in force, in order. This is the latest era that was begun completely.
/// `None` if some of its anchors are missing.
pub(crate) fn in_force(anchors: &BTreeMap<u64, Read>) -> Option<Vec<(u64, &Read)>> {
    let mut eras: BTreeMap<u64, Vec<(u64, &Read)>> = BTreeMap::new();
    for (number, read) in anchors {
        eras.entry(read.head.era).or_default().push((*number, read));
    }
    for (_, era) in eras.into_iter().rev() {
        let (_, last) = era.last()?;
        if last.head.index < last.head.starts.saturating_sub(1) {
            // Its beginning was interrupted: the previous era is in force.
            continue;
        }
        let whole = (0..).zip(&era).all(|(index, (_, read))| read.head.index == index);
        return whole.then_some(era);
    }
    None
}

impl Era {
    pub(crate) fn new(anchors: &[(u64, &Read)]) -> Self {
        let mut era = Era::default();
        for (_, read) in anchors {
            era.checkpoint = read.head.checkpoint;
            era.extents.extend_from_slice(&read.extents);
            era.zones.extend_from_slice(&read.zones);
            era.clean = read.head.flags & CLEAN != 0;
            era.any_zone = read.head.flags & ANY_ZONE != 0;
        }
        era
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(era: u64, starts: u32, index: u32, zone: u32) -> Read {
        let zones = [NotedZone { zone: ZoneNo(zone), epoch: 9, stream: 2, covered_slots: 7 }];
        let extents = [Extent { first: SlotNo(5), pages: 3 }];
        let (zones, extents) = (&zones[..], &extents[..]);
        let head = Head { era, checkpoint: era + 40, flags: 0, starts, index };
        decode(&Anchor { head, extents, zones }.encode()).unwrap()
    }

    fn zones(anchors: &BTreeMap<u64, Read>) -> Option<Vec<u32>> {
        let era = Era::new(&in_force(anchors)?);
        Some(era.zones.iter().map(|noted| noted.zone.0).collect())
    }

    #[test]
    fn an_era_is_in_force_when_all_of_its_beginning_is_there() {
        let mut anchors = BTreeMap::new();
        assert_eq!(zones(&anchors), None);
        for (number, index) in (4..).zip(0..3) {
            anchors.insert(number, anchor(1, 2, index, number as u32));
        }
        assert_eq!(zones(&anchors), Some(vec![4, 5, 6]));
        anchors.insert(7, anchor(2, 2, 0, 70));
        assert_eq!(zones(&anchors), Some(vec![4, 5, 6]), "the next has begun by half");
        anchors.insert(8, anchor(1, 2, 3, 8));
        assert_eq!(zones(&anchors), Some(vec![4, 5, 6, 8]), "and never comes to be");
        anchors.insert(9, anchor(3, 2, 0, 90));
        anchors.insert(10, anchor(3, 2, 1, 100));
        assert_eq!(zones(&anchors), Some(vec![90, 100]));
        assert_eq!(Era::new(&in_force(&anchors).unwrap()).checkpoint, 43);
        anchors.insert(12, anchor(3, 2, 3, 120));
        assert_eq!(zones(&anchors), None, "one is missing");
    }
}
