//! Recovery: finds the changes in the log since a checkpoint, and whether any durable one is missing.
use tantalum_base::{PageNo, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{ScannedAppend, SlotKind, Spare, ZoneMedia};

use crate::fault_points::Fault;
use crate::log::OwnPage;
use crate::log::records::{self, Record};
use crate::log::uncovered::{VersionRange, counts, merged};

use crate::recovery::find_checkpoint::MetaSlots;
use crate::recovery::places::Original;
use crate::recovery::survey::Survey;
use crate::recovery::{Opening, Reader, corrupt};
use crate::space::{Space, Stream};

/// One change found by scanning.
pub(super) struct Found {
    pub version: Version,
    pub batch_last: Version,
    pub slot: SlotNo,
    pub change: Change,
    /// Whether recovery counts it as the change of its version. Not so for a copy made for a share, whose record is
    /// counted, and for an evicted page.
    pub counts: bool,
}

pub(super) enum Change {
    Data {
        page: PageNo,
        remapped: bool,
        clean: bool,
        checksum: u32,
    },
    /// Cleaning evicted the page: its content is at home.
    Gone {
        page: PageNo,
    },
    Records {
        changes: Vec<Record>,
        checksum: u32,
    },
}

/// The result of scanning the log.
#[derive(Default)]
pub(super) struct ScannedLog {
    pub found: Vec<Found>,
    /// Every change up to this version was durable.
    pub durable: Version,
    pub zones_scanned: u32,
    pub anything: bool,
    /// Spares of damaged or never written slots, with their zones.
    pub damaged: Vec<(ZoneNo, Spare)>,
    pub originals: Vec<Original>,
    /// Versions that need not be found.
    pub dead: Vec<VersionRange>,
    /// Zones that hold the lists of these.
    pub lists: Vec<ZoneNo>,
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Finds the appends since the checkpoint.
    pub(super) async fn scan_log(&self, survey: &mut Survey) -> Result<ScannedLog> {
        let footer = survey.newest.footer;
        let mut log = ScannedLog { durable: footer.durable, ..ScannedLog::default() };
        for (zone, opening) in survey.openings.iter().enumerate() {
            let Some(Opening { epoch, stream }) = *opening else { continue };
            if stream == Stream::Dump as u8 {
                continue;
            }
            let zone = ZoneNo(zone as u32);
            let covered = survey.covered_slots[zone.index()];
            let rest = self.geometry.slots_per_zone - covered.min(self.geometry.slots_per_zone);
            if self.geometry.append_pages_fit(rest) == 0 {
                continue;
            }
            let appends = match survey.scans.remove(&zone) {
                Some(appends) => appends,
                None => self.scan(zone, covered, Some(epoch)).await?,
            };
            log.zones_scanned += 1;
            for append in appends {
                log.durable = log.durable.max(append.header.durable);
                let begun = MetaSlots::checkpoint_of(&append).unwrap_or(0);
                survey.highest_checkpoint = survey.highest_checkpoint.max(begun);
                if stream != Stream::Meta as u8 {
                    self.collect(zone, &append, footer.covered, &mut log).await?;
                }
            }
        }
        Ok(log)
    }

    /// Collects an append's changes that are newer than `covered`, and copies of any age.
    async fn collect(
        &self,
        zone: ZoneNo,
        append: &ScannedAppend,
        covered: Version,
        log: &mut ScannedLog,
    ) -> Result<()> {
        log.anything = true;
        let newer = |(_, spare): &&(u32, Spare)| spare.version > covered;
        log.damaged.extend(append.damaged.iter().filter(newer).map(|(_, spare)| (zone, *spare)));
        for (index, spare) in append.spares.iter().enumerate() {
            let slot = self.geometry.slot(zone, append.first_offset + index as u32);
            let relocated = append.header.stream == Stream::Cleaning as u8;
            let Some(spare) = spare else { continue };
            let (page, version, checksum) = (spare.page, spare.version, spare.checksum);
            let clean = spare.kind.is_clean();
            let data = Change::Data { page, remapped: false, clean, checksum };
            // A relocated change was durable; it counts as a batch of its own.
            let batch_last = if relocated { version } else { append.header.batch_last() };
            let counts = spare.kind != SlotKind::RemappedCopy;
            let change = match spare.kind {
                SlotKind::Data | SlotKind::Clean if version > covered => data,
                SlotKind::Copy | SlotKind::RemappedCopy | SlotKind::CleanCopy => data,
                SlotKind::Record if relocated && version == Version::NEVER => {
                    self.collect_relocated(append, OwnPage { slot, checksum }, log).await?;
                    continue;
                }
                SlotKind::Record if version > covered => {
                    let Some(changes) = self.read_records(OwnPage { slot, checksum }).await? else {
                        // It is unknown which pages it changed.
                        log.damaged.push((zone, *spare));
                        continue;
                    };
                    Change::Records { changes, checksum }
                }
                _ => continue,
            };
            log.found.push(Found { version, batch_last, slot, change, counts });
        }
        Ok(())
    }

    /// The changes in a record page of the log; `None` if they are invalid and loss is accepted.
    async fn read_records(&self, own: OwnPage) -> Result<Option<Vec<Record>>> {
        let changes = records::decode(&own.read(self.media).await?)
            .map_err(|error| error.wrap(format!("slot {}: a record of the log", own.slot)))?;
        let checked = changes.iter().try_for_each(|change| self.limits.record(change));
        let is_sound = self.is_sound(checked, || self.name_record(own.slot))?;
        Ok(is_sound.then_some(changes))
    }

    /// Names the metadata page in `slot`, for errors.
    pub(super) fn name_record(&self, slot: SlotNo) -> String {
        let (zone, offset) = (self.geometry.zone_of(slot), self.geometry.offset_of(slot));
        format!("zone {zone}, the record in slot {offset}")
    }
}

impl ScannedLog {
    /// The last version in force, where the accepted prefix ends. The changes must be sorted.
    pub(super) fn accepted(&self) -> Version {
        let mut accepted = self.durable;
        let mut reached = self.durable;
        for found in &self.found {
            if found.version == reached.next() {
                reached = found.version;
            }
            if found.version == reached
                && (found.batch_last == reached || Fault::HalfBatches.is_planted())
            {
                accepted = accepted.max(reached);
            }
        }
        accepted
    }

    /// Fails if a durable change is missing whose page is unknown: older content would be served
    /// instead. With `accept_loss` returns how many are missing.
    pub(super) fn account(&self, covered: Version, accept_loss: bool) -> Result<u64> {
        if Fault::DamageTakenForEnd.is_planted() {
            return Ok(0);
        }
        let missing = self.missing(covered);
        let count: u64 = missing.iter().map(VersionRange::count).sum();
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(0) };
        if accept_loss {
            return Ok(count);
        }
        let context = format!(
            "{count} durable changes, of versions {} to {}, are damaged. The affected pages are \
             unknown: they would return older content",
            first.first, last.last
        );
        Err(corrupt(context))
    }

    /// Zones without live content that the next recovery needs to account for every change later than
    /// `covered`, if this one does not finish. If a change is in several places, one of them suffices.
    pub(super) fn needed_next(&self, space: &Space, covered: Version) -> Vec<bool> {
        let geometry = space.geometry();
        let mut needed_next = vec![false; geometry.zones as usize];
        for zone in &self.lists {
            needed_next[zone.index()] = true;
        }
        let listed = merged(self.dead.clone());
        let dead = |version: Version| {
            let at = listed.partition_point(|range| range.last < version);
            listed.get(at).is_some_and(|range| range.first <= version)
        };
        let same = |one: &Found, other: &Found| one.version == other.version;
        let needed = |found: &&[Found]| found[0].version > covered && !dead(found[0].version);
        for found in self.found.chunk_by(same).filter(needed) {
            let places = || found.iter().filter(|found| found.counts).map(|found| found.slot);
            let zones = || places().map(|slot| geometry.zone_of(slot));
            let stays = |zone: ZoneNo| space.get(zone).live_slots > 0 || needed_next[zone.index()];
            if !zones().any(stays)
                && let Some(zone) = zones().next_back()
            {
                needed_next[zone.index()] = true;
            }
        }
        // Only this header or spare names the damaged page.
        for (zone, spare) in &self.damaged {
            if spare.version > covered && !dead(spare.version) {
                needed_next[zone.index()] = true;
            }
        }
        needed_next
    }

    /// Versions later than `covered` that were durable and are neither found nor dead, nor known to
    /// be of a damaged page.
    pub(super) fn missing(&self, covered: Version) -> Vec<VersionRange> {
        let found = self.found.iter().filter(|found| found.counts).map(|found| found.version);
        let damaged = self
            .damaged
            .iter()
            .map(|(_, spare)| spare)
            .filter(|spare| spare.kind.is_page() && counts(spare));
        let single = |version| VersionRange { first: version, last: version };
        let singles = found.chain(damaged.map(|spare| spare.version)).map(single);
        let known = merged(singles.chain(self.dead.iter().copied()).collect());
        let mut missing = Vec::new();
        let mut next = covered.next();
        for range in known {
            if range.first > self.durable {
                break;
            }
            if range.first > next {
                missing.push(VersionRange { first: next, last: Version(range.first.0 - 1) });
            }
            next = next.max(range.last.next());
        }
        if next <= self.durable {
            missing.push(VersionRange { first: next, last: self.durable });
        }
        missing
    }
}
