//! Recovery: decides which of several places of a page's content is in force.
//!
//! A page's version identifies its content; cleaning's copies keep it, and so do references to a
//! shared copy. So one version may be found in several places, all with the same content.
use tantalum_base::{PageNo, Result, SlotNo, Version};
use tantalum_media::{ScannedAppend, ZoneGeometry, ZoneMedia};

use crate::fault_points::Fault;
use crate::log::OwnPage;
use crate::log::records::{self, Share};
use crate::map::remapped::origin;
use crate::map::{MapEntry, Place};
use crate::parts::Parts;
use crate::read::is_damage;
use crate::recovery::log_scan::{Change, Found, ScannedLog};
use crate::recovery::{Opening, Reader};
use crate::space::Stream;

/// Ranks places by how long they stay valid. Among several places of one version the latest copy
/// ranks highest: its zone was opened after the zones of older copies were full, and those may be
/// about to be reset.
pub(super) struct Rank<'a> {
    pub geometry: ZoneGeometry,
    pub openings: &'a [Option<Opening>],
}

impl Rank<'_> {
    /// The rank of a slot: a copy above a host's write, a later zone above an earlier one.
    pub fn of(&self, slot: SlotNo) -> Option<(bool, u64)> {
        let opening = self.openings[self.geometry.zone_of(slot).index()];
        opening.map(|opening| (opening.stream == Stream::Cleaning as u8, opening.epoch))
    }

    /// Whether the content that `slot` had at zone opening `epoch` can still be there.
    pub fn intact(&self, slot: SlotNo, epoch: u64) -> bool {
        let opening = self.openings[self.geometry.zone_of(slot).index()];
        opening.is_some_and(|opening| opening.epoch <= epoch)
    }
}

/// The original of content that cleaning copied.
#[derive(Clone, Copy)]
pub(super) struct Original {
    /// The page of the content.
    pub page: PageNo,
    /// Its slot.
    pub slot: SlotNo,
    /// The entry that the page has if its content is in that slot.
    pub entry: MapEntry,
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Collects the content of a metadata page in the cleaning stream: dead versions, or references
    /// to copies of `append`, which count as copies of the referring pages.
    pub(super) async fn collect_relocated(
        &self,
        append: &ScannedAppend,
        own: OwnPage,
        log: &mut ScannedLog,
    ) -> Result<()> {
        let page = match own.read(self.media).await {
            Ok(page) => page,
            // The metadata page is damaged. Then versions are missing, or pages are lost if their
            // original is gone too.
            Err(error) if is_damage(error.kind()) => return Ok(()),
            Err(error) => return Err(error),
        };
        let zone = self.geometry.zone_of(own.slot);
        let is_sound = |checked| self.is_sound(checked, || self.name_record(own.slot));
        if let Some(dead) = records::decode_dead(&page) {
            if is_sound(dead.iter().try_for_each(|range| self.limits.dead(range)))? {
                log.dead.extend(dead);
                log.lists.push(zone);
            }
            return Ok(());
        }
        if let Some(gone) = records::decode_gone(&page) {
            let mut each = gone.iter();
            if !is_sound(each.try_for_each(|(page, version)| self.limits.gone(*page, *version)))? {
                return Ok(());
            }
            log.lists.push(zone);
            log.found.extend(gone.into_iter().map(|(page, version)| Found {
                version,
                batch_last: version,
                slot: own.slot,
                change: Change::Gone { page },
                // It is listed as dead too, if no checkpoint covers it.
                counts: false,
            }));
            return Ok(());
        }
        let references = records::decode_references(&page).unwrap_or_default();
        if !is_sound(references.iter().try_for_each(|it| self.limits.reference(it)))? {
            return Ok(());
        }
        for reference in references {
            let copy = append.spares.get(reference.index as usize).copied().flatten();
            let Some(copy) = copy.filter(|spare| spare.kind.is_page()) else { continue };
            let checksum = match self.media.reads_spares() {
                true => origin(copy.page, copy.version),
                false => copy.checksum,
            };
            log.found.push(Found {
                version: reference.version,
                batch_last: reference.version,
                slot: self.geometry.slot(zone, append.first_offset + reference.index),
                change: Change::Data {
                    page: reference.page,
                    remapped: true,
                    clean: false,
                    checksum,
                },
                counts: !reference.by_share,
            });
        }
        Ok(())
    }
}

impl Parts {
    /// Puts `entry` of `page` in force if it is newer than the present one, or the same in a place
    /// that stays valid longer.
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
            // Cleaning evicted it.
            (Place::Home, _) => {}
            (_, Place::Home) => self.replace(page, entry),
            (Place::At(here), Place::At(found)) if here != found => {
                let newer = rank.of(found) > rank.of(here) && !Fault::NoCopyRank.is_planted();
                let (slot, older) = if newer { (here, known) } else { (found, entry) };
                originals.push(Original { page, slot, entry: older });
                // A page that was clean under this version stays clean.
                let clean = known.clean || entry.clean;
                if newer {
                    self.replace(page, MapEntry { clean, ..entry });
                } else if clean != known.clean {
                    self.replace(page, MapEntry { clean, ..known });
                }
            }
            (Place::Lost, Place::At(_)) => self.replace(page, entry),
            _ => {}
        }
    }

    /// Applies the share of `version`. Its left page is in the right page's place, if that still
    /// has the shared version: the recorded slot may be a copy that was not durable. Otherwise it
    /// is in the recorded slot, if that slot's zone was not opened again. Otherwise it is in
    /// cleaning's copy, which is found too, or the page is lost.
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
        let (remapped, checksum) = (true, share.checksum);
        let as_recorded = MapEntry { version, place, remapped, checksum, clean: false };
        // A copy's spare differs from that of the recorded slot.
        let checksum = match at_right {
            Some(_) => self.map.checksum_when_shared(share.right, &right),
            None => share.checksum,
        };
        let entry = MapEntry { checksum, ..as_recorded };
        self.adopt(share.left, entry, rank, originals);
        // If cleaning had begun to copy it, that copy can be undone.
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
