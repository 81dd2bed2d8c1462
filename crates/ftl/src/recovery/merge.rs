//! Taking a dump back at the next power-on (DuraSSD paper, section 3.4.2).
//!
//! 1. A dump that no checkpoint calls void is in force; all of it must be there.
//! 2. Its checkpoint, the delta pages since, and the dumped entries are the mapping: no zone of the
//!    log is scanned. A checkpoint of that makes the dump's mapping void.
//! 3. The caller writes the frames back, durably; another checkpoint makes all of the dump void.
//! 4. Only then is the dump area cleared.
//!
//! A power cut on the way dumps nothing: before 2 is done the next attempt starts from the same
//! dump, for which everything it builds on is kept; later it starts from the checkpoint of 2 and
//! what the log says since, and writes the frames back once more.
use std::collections::BTreeMap;
use tantalum_base::{PageNo, Result, SlotNo, Version};
use tantalum_media::ZoneMedia;

use crate::checkpoints::pages;
use crate::dump::delta_pages::{self, Delta, Trim};
use crate::dump::header::DumpHeader;
use crate::map::{MapEntry, Place};
use crate::parts::Parts;
use crate::recovery::find_checkpoint::Checkpoint;
use crate::recovery::find_dump::FoundDump;
use crate::recovery::survey::Survey;
use crate::recovery::{Opening, Recovery, corrupt};
use crate::space::ZoneState;

/// Pages for which the trims that concern them are looked up at once.
const TRIMS_LOOKED_UP_PAGES: u64 = 256;

/// Changes of the mapping since a checkpoint, the latest of each page.
#[derive(Default)]
struct Since {
    pages: BTreeMap<u64, MapEntry>,
    trims: Vec<Trim>,
}

impl Since {
    /// Adds changes that were caught later than all before.
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

    /// The trims that reach into the pages from `first` to `end`.
    fn trims_in(&self, first: u64, end: u64) -> Vec<Trim> {
        let reaches = |trim: &&Trim| trim.range.first.0 < end && first < trim.range.end().0;
        self.trims.iter().filter(reaches).copied().collect()
    }

    /// What is in force of `page`, of which the checkpoint says `entry`; and whether that is it.
    fn latest(&self, page: u64, entry: MapEntry, trims: &[Trim]) -> (MapEntry, bool) {
        // The checkpoint caught its pages later than what was changed before its end, and then
        // changes of the page that followed are here too: of one version what cleaning relocated, of
        // an older one what was taken back.
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
    /// Keeps what recovering from `dump` builds on until its mapping is durable: also an attempt
    /// that is cut must leave it to the next.
    pub(super) fn keep_needed(&mut self, survey: &Survey, dump: &DumpHeader) {
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
    /// entries. False, and nothing in force, where zones are so short that only a scan of the
    /// log can take back what an unfinished cleaning copied.
    pub(super) async fn merge(
        &mut self,
        survey: &Survey,
        dump: &FoundDump<M::Page>,
    ) -> Result<bool> {
        let (header, meta) = (&dump.header, &survey.meta);
        let checkpoint = self.reader.named_checkpoint(meta, header.checkpoint).await?;
        let mut since = Since::default();
        let mut delta_pages = 0;
        for (_, page) in meta.deltas_of(header) {
            let page = page.read(self.reader.media).await?;
            since.add(delta_pages::decode(&page, !M::READS_SPARES)?);
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
        if self.parts.space.unused_count() < self.parts.kept_zones() {
            self.forget()?;
            return Ok(false);
        }
        self.report.checkpoint = checkpoint.id;
        self.report.delta_pages = delta_pages;
        self.report.replayed = since.pages.len() as u64;
        let next = header.next_version.max(checkpoint.footer.next_version);
        self.parts.log.skip_to(next);
        Ok(true)
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
        let mut chunks = checkpoint.map.iter();
        // What the chunk that was taken last says of the pages to come.
        let mut known = Vec::new().into_iter().peekable();
        let mut caught = 0;
        let mut trims = Vec::new();
        for page in 0..pages {
            if page % TRIMS_LOOKED_UP_PAGES == 0 {
                trims = since.trims_in(page, page + TRIMS_LOOKED_UP_PAGES);
            }
            if known.peek().is_none()
                && let Some((header, chunk)) = chunks.next()
            {
                caught = header.epoch;
                let entries = pages::decode_map(header, chunk, !M::READS_SPARES)?;
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
                    // What stands beside its pages cannot be read.
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

    /// Back to an empty mapping; what is known of dumps and anchors stays.
    fn forget(&mut self) -> Result<()> {
        let Parts { map, space, .. } = Parts::new(self.reader.media, self.reader.options)?;
        (self.parts.map, self.parts.space) = (map, space);
        self.parts.checkpoints.slots.clear();
        if let Some(dump) = &mut self.parts.dump {
            dump.keep(Vec::new());
        }
        Ok(())
    }
}
