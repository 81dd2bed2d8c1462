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
use tantalum_base::{Error, ErrorKind, PageNo, Result, SlotNo, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::checkpoint;
use crate::deltas::{self, Delta, Trim};
use crate::dump::DumpHeader;
use crate::fault_points::Fault;
use crate::find_checkpoint::{Checkpoint, MetaSlots};
use crate::find_dump::Dump;
use crate::ftl::{Ftl, State};
use crate::live_records::LiveRecords;
use crate::map::{Entry, Mapping, Place};
use crate::recovery_report::RecoveryReport;
use crate::zones::{ZoneState, Zones};

/// Pages for which the trims that concern them are looked up at once.
const TRIMS_LOOKED_UP_PAGES: u64 = 256;

/// Changes of the mapping since a checkpoint, the latest of each page.
#[derive(Default)]
struct Since {
    pages: BTreeMap<u64, Entry>,
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
    fn latest(&self, page: u64, entry: Entry, trims: &[Trim]) -> (Entry, bool) {
        // The checkpoint caught its pages later than what was changed before its end, and then
        // changes of the page that followed are here too: of one version what cleaning moved, of
        // an older one what was taken back.
        let changed = self.pages.get(&page);
        let mut latest = changed.map_or((entry, true), |changed| (*changed, false));
        for trim in trims {
            let covers = trim.range.first.0 <= page && page < trim.range.end().0;
            if covers && trim.version > latest.0.version {
                let version = trim.version;
                latest = (Entry::trimmed(version), false);
            }
        }
        latest
    }
}

pub(crate) fn corrupt(context: String) -> Error {
    Error::new(ErrorKind::Corrupt, context)
}

impl<M: ZoneMedia> Ftl<M> {
    /// Keeps what recovering from `dump` builds on until its mapping is durable: also an attempt
    /// that is cut must leave it to the next.
    pub(crate) fn pin(&self, meta: &MetaSlots, newest: &Checkpoint, dump: &DumpHeader) {
        let state = &mut *self.state.borrow_mut();
        let named = meta.checkpoint(dump.checkpoint);
        let deltas = meta.deltas_of(dump).map(|(_, page)| page.slot);
        let all = named.chain(newest.places.iter().copied()).chain(deltas);
        let mut pinned: Vec<SlotNo> = all.collect();
        pinned.sort_unstable();
        pinned.dedup();
        let mut kept = state.checkpoint_places.clone();
        kept.sort_unstable();
        pinned.retain(|slot| kept.binary_search(slot).is_err());
        pinned.iter().for_each(|slot| state.zones.add_live(*slot));
        state.pinned = pinned;
    }

    /// Puts the mapping of `dump` in force: its checkpoint, the delta pages since, the dumped
    /// entries. False, and nothing in force, where zones are so short that only a scan of the
    /// log can take back what an unfinished cleaning copied.
    pub(crate) async fn merge(
        &self,
        epochs: &[Option<(u64, u8)>],
        meta: &MetaSlots,
        newest: &Checkpoint,
        dump: &Dump<M::Page>,
        report: &mut RecoveryReport,
    ) -> Result<bool> {
        let header = &dump.header;
        let checkpoint = self.named_checkpoint(meta, header.checkpoint).await?;
        let mut since = Since::default();
        let mut delta_pages = 0;
        for (_, page) in meta.deltas_of(header) {
            let page = self.read_own(page).await?;
            since.add(deltas::decode(&page, !M::READS_SPARES)?);
            delta_pages += 1;
        }
        if delta_pages != header.delta_pages {
            return Err(corrupt(format!(
                "of the {} delta pages of checkpoint {} only {delta_pages} are intact",
                header.delta_pages, header.checkpoint
            )));
        }
        since.add(dump.entries.clone());
        self.put_in_force(epochs, &checkpoint, &since, header.number)?;
        self.pin(meta, newest, header);
        if self.zones_without_content() < self.reserve_zones + self.layout.zones {
            self.forget();
            return Ok(false);
        }
        report.checkpoint = checkpoint.id;
        report.delta_pages = delta_pages;
        report.replayed = since.pages.len() as u64;
        let state = &mut *self.state.borrow_mut();
        state.next_version = header.next_version.max(checkpoint.footer.next_version);
        Ok(true)
    }

    fn put_in_force(
        &self,
        epochs: &[Option<(u64, u8)>],
        checkpoint: &Checkpoint,
        since: &Since,
        number: u64,
    ) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let pages = self.options.pages;
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
                let entries = checkpoint::decode_map(header, chunk, !M::READS_SPARES)?;
                known = entries.into_iter().peekable();
            }
            let entry = known.next_if(|(at, _)| at.0 == page);
            let entry = entry.map_or(Entry::default(), |(_, entry)| entry);
            let (mut entry, from_checkpoint) = since.latest(page, entry, &trims);
            if let Place::At(slot) = entry.place {
                let zone = self.geometry.zone_of(slot);
                let latest = if from_checkpoint { caught } else { number };
                match epochs[zone.index()] {
                    Some((epoch, _)) if epoch > latest => {
                        return Err(corrupt(format!(
                            "page {page} should be in zone {zone}, which was filled again later"
                        )));
                    }
                    Some(_) => {}
                    // What stands beside its pages cannot be read.
                    None if state.zones.get(zone).state != ZoneState::Retired => {}
                    None => entry.place = Place::Lost,
                }
            }
            if entry.version != Version::NEVER {
                state.put(PageNo(page), entry);
            }
        }
        self.note_checkpoint(state, checkpoint);
        Ok(())
    }

    /// Takes over what the checkpoint says besides its map, and keeps its pages.
    pub(crate) fn note_checkpoint(&self, state: &mut State<M::Page>, checkpoint: &Checkpoint) {
        for (zone, entry) in checkpoint.zones.iter().enumerate() {
            state.zones.get_mut(ZoneNo(zone as u32)).resets = entry.resets;
        }
        for slot in &checkpoint.places {
            state.zones.add_live(*slot);
        }
        state.checkpoint_places = checkpoint.places.clone();
        state.checkpoint_says = checkpoint.footer.durable;
        state.checkpoint_in_force = checkpoint.id;
    }

    /// The checkpoint in force holds all of the mapping: changes are tracked from here on.
    pub(crate) fn resume_tracking(&self) {
        let state = &mut *self.state.borrow_mut();
        // No opening of the volume before this one can have numbered delta pages so high.
        let first_number = state.zones.epoch() << 24;
        state.deltas.resume(state.checkpoint_id, first_number);
    }

    /// Zones that could be filled again, those of the dump area included.
    fn zones_without_content(&self) -> u32 {
        let state = self.state.borrow();
        let without = |(_, zone): &(ZoneNo, &crate::zones::Zone)| {
            zone.state != ZoneState::Retired && zone.live_slots == 0
        };
        state.zones.iter().filter(without).count() as u32
    }

    /// Back to an empty mapping.
    pub(crate) fn forget(&self) {
        let state = &mut *self.state.borrow_mut();
        let slots = u64::from(self.geometry.zones) * u64::from(self.geometry.slots_per_zone);
        state.map = Mapping::new(self.options.pages, slots, !M::READS_SPARES);
        state.zones = Zones::new(self.geometry, &self.media.retired());
        state.records = LiveRecords::default();
        state.checkpoint_places.clear();
        state.pinned.clear();
    }

    /// The frames of the dump in force, in the order of the host's writes; the caller writes them
    /// back, durably, and then calls [`conclude_dump`](Self::conclude_dump).
    pub fn take_restored(&self) -> Vec<(PageNo, M::Page)> {
        std::mem::take(&mut self.restored.borrow_mut())
    }

    /// Whether a dump waits to be written back.
    pub fn has_dump(&self) -> bool {
        self.state.borrow().dump_in_force.is_some()
    }

    /// All that the dump in force held is durable elsewhere: makes it void, and clears its area.
    pub async fn conclude_dump(&self) -> Result<()> {
        let Some(number) = self.state.borrow().dump_in_force else { return Ok(()) };
        if !Fault::DumpNotMadeVoid.is_planted() {
            self.state.borrow_mut().dumps_void.frames = number;
        }
        self.checkpoint().await?;
        self.state.borrow_mut().dump_in_force = None;
        self.clear_dump_area().await
    }

    /// The zones of the dump area, in the order in which a dump fills them.
    pub fn dump_zones(&self) -> Vec<ZoneNo> {
        self.state.borrow().zones.dump_zones()
    }

    /// Takes zones for the dump area out of the pool, as far as it has not enough.
    ///
    /// # Errors
    /// `OutOfSpace` where there are none.
    pub(crate) fn set_dump_zones_aside(&self) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        for _ in state.zones.dump_zones().len()..self.layout.zones as usize {
            if !state.zones.set_aside() {
                let context = "no zone is free for the dump area";
                return Err(Error::new(ErrorKind::OutOfSpace, context));
            }
        }
        Ok(())
    }

    /// Erases the dump area, for the next dump.
    pub(crate) async fn clear_dump_area(&self) -> Result<()> {
        loop {
            let zones = self.state.borrow().zones.dump_zones();
            for zone in &zones {
                // Where it had to be retired, another takes its place.
                self.reset_if_needed(*zone).await?;
            }
            for zone in zones.iter().skip(self.layout.zones as usize) {
                self.state.borrow_mut().zones.give_back(*zone);
            }
            self.set_dump_zones_aside()?;
            let state = self.state.borrow();
            if state.zones.dump_zones().iter().all(|zone| !state.zones.get(*zone).needs_reset) {
                return Ok(());
            }
        }
    }
}
