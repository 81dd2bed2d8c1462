//! Recovery: which of several places of a page's content is in force.
//!
//! A page's version names its content; cleaning's copies keep it, and so do the entries for pages
//! that share a copy. So a version may be found in several places, all with the same content.
use tantalum_base::{PageNo, SlotNo, Version};
use tantalum_media::{ScannedAppend, ZoneGeometry, ZoneMedia};

use crate::fault_points::Fault;
use crate::log::OwnPage;
use crate::log::records::{self, Share};
use crate::map::remapped::origin;
use crate::map::{MapEntry, Place};
use crate::parts::Parts;
use crate::recovery::log_scan::{Change, Found, ScannedLog};
use crate::recovery::{Opening, Reader};
use crate::space::Stream;

/// Which places hold longer. Of several places of one version the latest copy holds longest: its
/// zone was opened after those of older copies were full. The others may be about to be reset.
pub(super) struct Rank<'a> {
    pub geometry: ZoneGeometry,
    pub openings: &'a [Option<Opening>],
}

impl Rank<'_> {
    /// Orders places: a copy above what hosts wrote, a later zone above an earlier one.
    pub fn of(&self, slot: SlotNo) -> Option<(bool, u64)> {
        let opening = self.openings[self.geometry.zone_of(slot).index()];
        opening.map(|opening| (opening.stream == Stream::Cleaning as u8, opening.epoch))
    }

    /// Whether what lay in `slot` when there had been `epoch` zone openings can still be there.
    fn intact(&self, slot: SlotNo, epoch: u64) -> bool {
        let opening = self.openings[self.geometry.zone_of(slot).index()];
        opening.is_some_and(|opening| opening.epoch <= epoch)
    }
}

/// An older place of content that cleaning copied.
#[derive(Clone, Copy)]
pub(super) struct Original {
    /// Whose content it is.
    pub page: PageNo,
    /// The place.
    pub slot: SlotNo,
    /// The page's entry, were it there.
    pub entry: MapEntry,
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Collects what a page says that cleaning wrote beside its copies: dead versions, or the pages
    /// that share copies of `append`, which are found in these as if they were theirs.
    pub(super) async fn collect_relocated(
        &self,
        append: &ScannedAppend,
        own: OwnPage,
        log: &mut ScannedLog,
    ) {
        // Where it cannot be read, versions are missing, or pages whose older place is gone too
        // turn out to be lost.
        let Ok(page) = own.read(self.media).await else { return };
        let zone = self.geometry.zone_of(own.slot);
        if let Some(dead) = records::decode_dead(&page) {
            log.dead.extend(dead);
            log.lists.push(zone);
            return;
        }
        for reference in records::decode_references(&page).unwrap_or_default() {
            let copy = append.spares.get(reference.index as usize).copied().flatten();
            let Some(copy) = copy.filter(|spare| spare.kind.is_page()) else { continue };
            let checksum = match M::READS_SPARES {
                true => origin(copy.page, copy.version),
                false => copy.checksum,
            };
            log.found.push(Found {
                version: reference.version,
                batch_last: reference.version,
                slot: self.geometry.slot(zone, append.first_offset + reference.index),
                change: Change::Data { page: reference.page, remapped: true, checksum },
                counts: !reference.by_share,
            });
        }
    }
}

impl Parts {
    /// `page` was found as `entry` says: puts it in force where that is newer than what is known,
    /// or the same in a place that holds longer.
    pub(super) fn adopt(
        &mut self,
        page: PageNo,
        entry: MapEntry,
        rank: &Rank<'_>,
        originals: &mut Vec<Original>,
    ) {
        let known = self.map.get(page);
        if known.version != entry.version {
            self.apply(page, entry);
            return;
        }
        match (known.place, entry.place) {
            (Place::At(here), Place::At(found)) if here != found => {
                let newer = rank.of(found) > rank.of(here) && !Fault::NoCopyRank.is_planted();
                let (slot, older) = if newer { (here, known) } else { (found, entry) };
                originals.push(Original { page, slot, entry: older });
                if newer {
                    self.replace(page, entry);
                }
            }
            (Place::Lost, Place::At(_)) => self.replace(page, entry),
            _ => {}
        }
    }

    /// The share of `version` was found. Its left page is where its right page is, if that still
    /// has what it had then: the place that the record names may be a copy that was not durable.
    /// Otherwise it is in that place, as long as its zone was not opened again; and else in a copy
    /// that cleaning made of it, which is found too, or the page is lost.
    pub(super) fn adopt_share(
        &mut self,
        share: &Share,
        version: Version,
        rank: &Rank<'_>,
        originals: &mut Vec<Original>,
    ) {
        let right = self.map.get(share.right);
        let at_right = match right.place {
            Place::At(slot) if right.version == share.right_version => Some(slot),
            _ => None,
        };
        let recorded = rank.intact(share.slot, share.epoch).then_some(share.slot);
        let place = at_right.or(recorded).map_or(Place::Lost, Place::At);
        let as_recorded = MapEntry { version, place, remapped: true, checksum: share.checksum };
        // Of a copy another spare tells than of the place that the record names.
        let checksum = match at_right {
            Some(_) => self.map.checksum_when_shared(share.right, &right),
            None => share.checksum,
        };
        let entry = MapEntry { checksum, ..as_recorded };
        self.adopt(share.left, entry, rank, originals);
        // Where cleaning began to copy it, it may go back.
        let left = self.map.get(share.left);
        if let (Some(recorded), Place::At(now)) = (recorded, left.place)
            && left.version == version
            && rank.of(recorded) < rank.of(now)
        {
            let (page, slot) = (share.left, recorded);
            originals.push(Original { page, slot, entry: as_recorded });
        }
    }
}
