//! Recovery: applies a checkpoint and the log after it.
use tantalum_base::{Result, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::checkpoints::pages::Footer;
use crate::fault_points::Fault;
use crate::log::OwnPage;
use crate::log::records::Record;
use crate::log::uncovered::VersionRange;
use crate::map::{MapEntry, Occupant, Place};
use crate::parts::Parts;
use crate::recovery::find_checkpoint::Checkpoint;
use crate::recovery::limits::{Checked, senseless};
use crate::recovery::log_scan::{Change, Found, ScannedLog};
use crate::recovery::places::{Original, Rank};
use crate::recovery::survey::Survey;
use crate::recovery::{Opening, Recovery, SKIPPED_EPOCHS, SKIPPED_VERSIONS};
use crate::space::{Stream, ZoneState};

impl<M: ZoneMedia> Recovery<'_, M> {
    /// Recovers the mapping from the newest checkpoint and the log since. Returns the version up to which no version
    /// may be used again, if anything was found.
    pub(super) async fn replay_log(&mut self, survey: &mut Survey) -> Result<Option<Version>> {
        let mut log = match survey.log.take() {
            Some(log) => log,
            None => self.reader.scan_log(survey).await?,
        };
        let Survey { newest, openings, .. } = &*survey;
        let footer = newest.footer;
        (self.report.checkpoint, self.report.zones_scanned) = (newest.id, log.zones_scanned);
        self.report.pages_given_up = self.load(newest, openings, &mut log.dead)?;
        log.found.sort_by_key(|found| (found.version, found.slot));
        self.report.changes_given_up =
            log.account(footer.covered, self.reader.options.accept_loss)?;
        let accepted = log.accepted();
        let seen = self.replay(&footer, openings, &mut log, accepted)?;
        self.mark_damaged(&mut log, accepted);
        self.undo_cleaning(openings, &log).await?;
        self.close_zones(openings, &log, footer.covered, accepted);
        self.parts.log.go_on(accepted, footer.next_version.max(accepted.next()));
        // If a reset leaves headers in place, the first append of a zone may have been lost under an old header while a
        // later one was written. Then a whole opening is unseen, and its versions and epochs would be reused. A
        // checkpoint in a new zone prevents that.
        let unseen = self.reader.geometry.append_overhead_slots > 0;
        let seen = seen.or(unseen.then_some(footer.next_version));
        Ok(seen.map(|seen| {
            let highest = seen.max(footer.next_version);
            if Fault::NoVersionSkip.is_planted() {
                accepted
            } else {
                Version(highest.0 + SKIPPED_VERSIONS)
            }
        }))
    }

    /// Puts the checkpoint's map in force. A page in a zone that was opened again later is at home if it was clean;
    /// otherwise it is marked lost until its copy is found. Adds the versions in the map that were not durable when the
    /// checkpoint was begun to `known`. Returns how many pages are given up.
    pub(super) fn load(
        &mut self,
        checkpoint: &Checkpoint,
        openings: &[Option<Opening>],
        known: &mut Vec<VersionRange>,
    ) -> Result<u64> {
        let parts = &mut self.parts;
        parts.map.expect(checkpoint.entries());
        for chunk in self.reader.map_of(checkpoint) {
            let (header, entries) = chunk?;
            parts.map.fetch_slots(entries.iter().filter_map(|(_, entry)| entry.place.slot()));
            for (page, mut entry) in entries {
                if let Place::At(slot) = entry.place {
                    let zone = self.reader.geometry.zone_of(slot);
                    let intact = match openings[zone.index()] {
                        Some(opening) => opening.epoch <= header.epoch,
                        // In a retired zone the slot's spare cannot be read; of a reset zone a copy is found.
                        None => parts.space.get(zone).state != ZoneState::Retired,
                    };
                    if !intact || !parts.map.fits(page, &entry, slot) {
                        entry = match entry.clean {
                            true => MapEntry::at_home(entry.version),
                            false => MapEntry { place: Place::Lost, ..entry },
                        };
                    }
                }
                if entry.version > checkpoint.footer.covered {
                    known.push(VersionRange { first: entry.version, last: entry.version });
                }
                parts.load(page, entry);
            }
            parts.keep_to_limit();
        }
        let mut given_up = 0;
        for range in &checkpoint.damaged_map {
            for page in range.iter() {
                let (version, place) = (checkpoint.footer.covered, Place::Lost);
                parts.replace(page, MapEntry { version, place, ..MapEntry::default() });
            }
            given_up += range.pages;
        }
        parts.take_checkpoint(checkpoint);
        Ok(given_up)
    }

    /// Applies the log up to `accepted`. Returns the highest version that was found, if any.
    fn replay(
        &mut self,
        footer: &Footer,
        openings: &[Option<Opening>],
        log: &mut ScannedLog,
        accepted: Version,
    ) -> Result<Option<Version>> {
        let rank = Rank { geometry: self.reader.geometry, openings };
        let mut seen = log.anything.then_some(footer.next_version);
        for found in &log.found {
            seen = seen.max(Some(found.version));
            if found.version > accepted {
                self.report.dropped += 1;
                continue;
            }
            self.report.replayed += u64::from(found.version > footer.covered);
            if self.is_forgotten(found, footer.covered) {
                continue;
            }
            let checked = self.parts.check_slots(found, &rank);
            checked.map_err(|why| senseless(self.reader.name_record(found.slot), &why))?;
            self.parts.replay(found, &rank, &mut log.originals);
        }
        Ok(seen)
    }

    /// Whether `found` is a copy of a page that went home later. The checkpoint of a cache has no entry for such a
    /// page; its entries for other pages have the versions of their newest content.
    fn is_forgotten(&self, found: &Found, covered: Version) -> bool {
        let page = match found.change {
            Change::Data { page, .. } | Change::Gone { page } => page,
            Change::Records { .. } => return false,
        };
        self.parts.clean.is_some()
            && found.version <= covered
            && self.parts.map.get(page).version != found.version
            && !Fault::ForgottenPagesTaken.is_planted()
    }

    /// Marks pages as lost whose newest content, up to `accepted`, is damaged. A page whose damaged content was clean
    /// is at home.
    fn mark_damaged(&mut self, log: &mut ScannedLog, accepted: Version) {
        if Fault::DamageTakenForEnd.is_planted() {
            return;
        }
        log.damaged.sort_unstable_by_key(|(_, spare)| spare.version);
        for (_, spare) in log.damaged.iter().filter(|(_, spare)| spare.kind.is_page()) {
            if spare.version <= accepted {
                let place = if spare.kind.is_clean() { Place::Home } else { Place::Lost };
                let entry = MapEntry { version: spare.version, place, ..MapEntry::default() };
                self.parts.apply(spare.page, entry);
            }
        }
    }

    /// Closes every zone with content and frees the others.
    pub(super) fn close_zones(
        &mut self,
        openings: &[Option<Opening>],
        log: &ScannedLog,
        covered: Version,
        accepted: Version,
    ) {
        let geometry = self.reader.geometry;
        let dump_in_force = self.parts.dump.as_ref().and_then(|dump| dump.in_force);
        let space = &mut self.parts.space;
        // Until the result is durable, the next recovery needs these versions again.
        let mut counted = vec![false; geometry.zones as usize];
        for found in &log.found {
            if found.version > log.durable && found.version <= accepted {
                counted[geometry.zone_of(found.slot).index()] = true;
            }
        }
        let needed_next = log.needed_next(space, covered);
        for (zone, opening) in openings.iter().enumerate() {
            let number = ZoneNo(zone as u32);
            let unseen = Opening { epoch: 0, stream: Stream::Host as u8 };
            let Opening { epoch, stream } = opening.unwrap_or(unseen);
            let is_dump = stream == Stream::Dump as u8;
            let state = if is_dump && dump_in_force == Some(epoch) {
                ZoneState::Dump
            } else if space.get(number).live_slots == 0 && !counted[number.index()] {
                ZoneState::Free
            } else {
                ZoneState::Full
            };
            space.found(number, state, Stream::from_byte(stream), epoch);
        }
        let newest = openings.iter().flatten().map(|opening| opening.epoch).max().unwrap_or(0);
        // If only later appends of an opening were written, recovery may not see that opening.
        space.continue_epochs(newest + SKIPPED_EPOCHS);
        space.rebuild_free();
        space.keep_for_last(|zone| needed_next[zone.index()]);
    }
}

impl Parts {
    /// Takes over the checkpoint's content besides its map, and keeps its pages live.
    pub(super) fn take_checkpoint(&mut self, checkpoint: &Checkpoint) {
        for (zone, entry) in checkpoint.zones.iter().enumerate() {
            self.space.was_reset(ZoneNo(zone as u32), entry.resets);
        }
        for slot in &checkpoint.places {
            self.space.add_live(*slot);
        }
        let places = checkpoint.places.clone();
        self.checkpoints.put_in_force(checkpoint.id, &checkpoint.footer, places);
    }

    /// Checks that the records in `found` agree with the mapping on slots: no page has its content in the slot of a
    /// record.
    fn check_slots(&self, found: &Found, rank: &Rank<'_>) -> Checked {
        let Change::Records { changes, .. } = &found.change else { return Ok(()) };
        if let Some(page) = self.map.pages_of(found.slot).next() {
            return Err(format!("page {page} is mapped to the slot of this record"));
        }
        let shares = changes.iter().filter_map(|change| match change {
            Record::Share(share) => Some(share),
            Record::Trim(_) => None,
        });
        for share in shares.filter(|share| rank.intact(share.slot, share.epoch)) {
            if self.map.occupant(share.slot) == Occupant::Record || share.slot == found.slot {
                return Err(format!(
                    "it maps page {} to a record in slot {}",
                    share.left, share.slot
                ));
            }
        }
        Ok(())
    }

    /// Puts a change of the log in force, unless a newer one is in force.
    fn replay(&mut self, found: &Found, rank: &Rank<'_>, originals: &mut Vec<Original>) {
        let (version, slot) = (found.version, found.slot);
        match &found.change {
            Change::Data { page, remapped, clean, checksum } => {
                let (remapped, clean, checksum) = (*remapped, *clean, *checksum);
                let entry = MapEntry { version, place: Place::At(slot), remapped, clean, checksum };
                self.adopt(*page, entry, rank, originals);
            }
            Change::Gone { page } => {
                self.adopt(*page, MapEntry::at_home(version), rank, originals);
            }
            Change::Records { changes, checksum } => {
                // As for data, the latest copy is in force.
                let known = self.log.records.get(version).map(|record| record.slot);
                let latest = known.filter(|known| rank.of(*known) > rank.of(slot)).unwrap_or(slot);
                self.put_record(version, OwnPage { slot: latest, checksum: *checksum });
                self.apply_trims(changes, version);
                for change in changes {
                    let Record::Share(share) = change else { continue };
                    self.adopt_share(share, version, rank, originals);
                }
            }
        }
    }
}
