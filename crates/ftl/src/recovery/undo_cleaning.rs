//! Recovery: undoes an interrupted cleaning if zones are short.
use tantalum_base::{Payload, Result, SlotNo, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::map::{MapEntry, Occupant, Place};
use crate::recovery::log_scan::ScannedLog;
use crate::recovery::places::Original;
use crate::recovery::{Opening, Recovery};
use crate::space::Stream;

impl<M: ZoneMedia> Recovery<'_, M> {
    /// If zones are short, undoes the copies of an interrupted cleaning: its open zone can only be
    /// closed now, and each power cut would cost another zone. Nothing is undone if the zone also
    /// holds copies from a zone that was emptied already: that zone is free now.
    pub(super) async fn undo_cleaning(
        &mut self,
        openings: &[Option<Opening>],
        log: &ScannedLog,
    ) -> Result<()> {
        let Some(moves) = self.moves_to_undo(openings, log) else { return Ok(()) };
        for Original { page, slot, entry } in &moves {
            let (mut content, mut spare) = ([M::Page::zero()], [None]);
            let read = self.reader.media.read_with_spares(&[*slot], &mut content, &mut spare).await;
            let ([content], [spare]) = (content, spare);
            if read.is_err() || !entry.holds(*page, &content, spare.as_ref()) {
                return Ok(());
            }
        }
        for Original { page, slot, entry } in moves {
            self.parts.replace(page, MapEntry { place: Place::At(slot), ..entry });
        }
        Ok(())
    }

    /// The original places of all pages in the zone of the interrupted cleaning; `None` if zones
    /// are not short, or if a page has no original in a zone that still holds live content.
    fn moves_to_undo(
        &self,
        openings: &[Option<Opening>],
        log: &ScannedLog,
    ) -> Option<Vec<Original>> {
        let (parts, geometry) = (&self.parts, &self.reader.geometry);
        let is_copies = |(_, opening): &(usize, &Option<Opening>)| {
            opening.is_some_and(|opening| opening.stream == Stream::Cleaning as u8)
        };
        let newest = openings.iter().enumerate().filter(is_copies).max_by_key(|(_, it)| **it);
        let copies = ZoneNo(newest?.0 as u32);
        if parts.space.unused_count() >= parts.kept_zones()
            || parts.space.get(copies).live_slots == 0
        {
            return None;
        }
        let emptied_in_part = |slot: &SlotNo| {
            let zone = geometry.zone_of(*slot);
            zone != copies && parts.space.get(zone).live_slots > 0
        };
        let mut moves = Vec::new();
        let mut slots = 0;
        for offset in 0..geometry.slots_per_zone {
            let slot = geometry.slot(copies, offset);
            slots += u32::from(parts.map.pages_of(slot).next().is_some());
            for page in parts.map.pages_of(slot) {
                let version = parts.map.get(page).version;
                let mut places = log.originals.iter().filter(|original| {
                    (original.page, original.entry.version) == (page, version)
                        && emptied_in_part(&original.slot)
                        && parts.map.occupant(original.slot) == Occupant::Dead
                });
                moves.push(*places.next_back()?);
            }
        }
        (slots == parts.space.get(copies).live_slots).then_some(moves)
    }
}
