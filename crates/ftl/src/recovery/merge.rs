//! Merges a dump into the mapping at the next power-on (DuraSSD paper, section 3.4.2).
//!
//! 1. A dump that no checkpoint makes void is in force; all of it must be there.
//! 2. Its checkpoint, the delta pages since, and the dumped entries give the mapping: no zone of the
//!    log is scanned. A new checkpoint makes the dump's mapping void.
//! 3. The caller writes the frames back, durably; another checkpoint makes all of the dump void.
//! 4. Only then is the dump area cleared.
//!
//! A power cut meanwhile dumps nothing: before 2 is done the next attempt starts from the same
//! dump, and everything it needs is kept; later it starts from the checkpoint of 2 and the log
//! since, and writes the frames back again.
use std::collections::BTreeMap;
use tantalum_base::{PageNo, Result, SlotNo, Version};
use tantalum_media::ZoneMedia;

use crate::dump::delta_pages::{Delta, Trim};
use crate::dump::header::DumpHeader;
use crate::map::{MapEntry, Place};
use crate::recovery::find_checkpoint::Checkpoint;
use crate::recovery::find_dump::FoundDump;
use crate::recovery::log_scan::ScannedLog;
use crate::recovery::survey::Survey;
use crate::recovery::{Opening, Recovery, corrupt};
use crate::space::ZoneState;

/// Pages whose trims are looked up together.
const TRIMS_LOOKED_UP_PAGES: u64 = 256;

/// Changes of the mapping since a checkpoint, the latest of each page.
#[derive(Default)]
struct Since {
    pages: BTreeMap<u64, MapEntry>,
    trims: Vec<Trim>,
}

impl Since {
    /// Adds changes that were encoded after all earlier ones.
    fn add(&mut self, deltas: Vec<Delta>) {
        for delta in deltas {
            match delta {
                Delta::Page(page, entry) => {
                    self.pages.insert(page.0, entry);
                }
                Delta::Trim(trim) => self.trims.push(trim),
            }
        }
    }

    /// The trims that overlap the pages from `first` to `end`.
    fn trims_in(&self, first: u64, end: u64) -> Vec<Trim> {
        let reaches = |trim: &&Trim| trim.range.first.0 < end && first < trim.range.end().0;
        self.trims.iter().filter(reaches).copied().collect()
    }

    /// The entry in force of `page`, and whether it is `entry`, that of the checkpoint.
    fn latest(&self, page: u64, entry: MapEntry, trims: &[Trim]) -> (MapEntry, bool) {
        // The checkpoint's page may have been encoded later than changes from before the
        // checkpoint's end. Then later changes of the page are here too: with an equal version after
        // a relocation, with an older one after an undone share.
        let changed = self.pages.get(&page);
        let mut latest = changed.map_or((entry, true), |changed| (*changed, false));
        for trim in trims {
            let covers = trim.range.first.0 <= page && page < trim.range.end().0;
            if covers && trim.version > latest.0.version {
                let version = trim.version;
                latest = (MapEntry::trimmed(version), false);
            }
        }
        latest
    }
}

impl<M: ZoneMedia> Recovery<'_, M> {
    /// Keeps the slots that a recovery from `dump` needs until its mapping is durable, for the next
    /// attempt if this one is interrupted.
    fn keep_needed(&mut self, survey: &Survey, dump: &DumpHeader) {
        let Survey { meta, newest, .. } = survey;
        let named = meta.checkpoint(dump.checkpoint);
        let deltas = meta.deltas_of(dump).map(|(_, page)| page.slot);
        let all = named.chain(newest.places.iter().copied()).chain(deltas);
        let mut needed: Vec<SlotNo> = all.collect();
        needed.sort_unstable();
        needed.dedup();
        let mut kept = self.parts.checkpoints.slots.clone();
        kept.sort_unstable();
        needed.retain(|slot| kept.binary_search(slot).is_err());
        needed.iter().for_each(|slot| self.parts.space.add_live(*slot));
        if let Some(part) = &mut self.parts.dump {
            part.keep(needed);
        }
    }

    /// Puts the mapping of `dump` in force: its checkpoint, the delta pages since, the dumped
    /// entries.
    pub(super) async fn merge(&mut self, survey: &Survey, dump: &FoundDump<M::Page>) -> Result<()> {
        let (header, meta) = (&dump.header, &survey.meta);
        let checkpoint = self.reader.named_checkpoint(meta, header.checkpoint).await?;
        let mut since = Since::default();
        let mut delta_pages = 0;
        for (_, page) in meta.deltas_of(header) {
            let page = page.read(self.reader.media).await?;
            since.add(self.reader.decode_deltas(&page, header)?);
            delta_pages += 1;
        }
        if delta_pages != header.delta_pages {
            return Err(corrupt(format!(
                "of the {} delta pages of checkpoint {} only {delta_pages} are intact",
                header.delta_pages, header.checkpoint
            )));
        }
        since.add(dump.entries.clone());
        self.put_in_force(&survey.openings, &checkpoint, &since, header.number)?;
        self.keep_needed(survey, header);
        self.report.merged = true;
        self.report.checkpoint = checkpoint.id;
        self.report.delta_pages = delta_pages;
        self.report.replayed = since.pages.len() as u64;
        let next = header.next_version.max(checkpoint.footer.next_version);
        self.parts.log.skip_to(next);
        let log = ScannedLog::default();
        self.close_zones(&survey.openings, &log, Version::NEVER, Version::NEVER);
        Ok(())
    }

    fn put_in_force(
        &mut self,
        openings: &[Option<Opening>],
        checkpoint: &Checkpoint,
        since: &Since,
        number: u64,
    ) -> Result<()> {
        let parts = &mut self.parts;
        let pages = self.reader.options.pages;
        let mut chunks = self.reader.map_of(checkpoint);
        // Entries of the last decoded chunk for the pages to come.
        let mut known = Vec::new().into_iter().peekable();
        let mut caught = 0;
        let mut trims = Vec::new();
        for page in 0..pages {
            if page % TRIMS_LOOKED_UP_PAGES == 0 {
                trims = since.trims_in(page, page + TRIMS_LOOKED_UP_PAGES);
            }
            if known.peek().is_none()
                && let Some(chunk) = chunks.next()
            {
                let (header, entries) = chunk?;
                caught = header.epoch;
                known = entries.into_iter().peekable();
            }
            let entry = known.next_if(|(at, _)| at.0 == page);
            let entry = entry.map_or(MapEntry::default(), |(_, entry)| entry);
            let (mut entry, from_checkpoint) = since.latest(page, entry, &trims);
            if let Place::At(slot) = entry.place {
                let zone = self.reader.geometry.zone_of(slot);
                let latest = if from_checkpoint { caught } else { number };
                match openings[zone.index()] {
                    Some(opening) if opening.epoch > latest => {
                        return Err(corrupt(format!(
                            "page {page} should be in zone {zone}, which was filled again later"
                        )));
                    }
                    Some(_) => {}
                    // Spares of a retired zone's pages cannot be read.
                    None if parts.space.get(zone).state != ZoneState::Retired => {}
                    None => entry.place = Place::Lost,
                }
            }
            if entry.version != Version::NEVER {
                parts.put(PageNo(page), entry);
            }
        }
        parts.take_checkpoint(checkpoint);
        Ok(())
    }
}
