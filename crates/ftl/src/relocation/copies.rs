//! Copies of a zone's live slots, in groups of one append each.
//!
//! A copy keeps page and version of its original. If several pages share a slot, the copy is that of one page, and a
//! page of references in the same append names the others, each with its version. So the newest place of every page is
//! on the medium as long as the copy is, and recovery treats all of them alike, whichever of them changed since.
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::log::records::{self, REFERENCES_MAX, Reference};
use crate::log::uncovered::counts;
use crate::log::{AppendBuffer, Log, OwnPage};
use crate::map::remapped::origin;
use crate::map::{MapEntry, Occupant, Place};
use crate::parts::Parts;
use crate::read::wrong_content;
use crate::relocation::CopiedPage;
use crate::space::{Stream, Zone};

/// Most pages appended to empty `zone`: its live slots, pages of references for each append, and
/// one more copy per slot whose references did not fit. Never more than the logical pages in the
/// zone.
fn pages_to_relocate(geometry: &ZoneGeometry, zone: &Zone) -> u32 {
    if zone.extra_references == 0 {
        return zone.live_slots;
    }
    let appends = zone.live_slots / geometry.append_pages_max + 3;
    let own = appends + zone.extra_references / REFERENCES_MAX as u32 + 1;
    zone.live_slots + own.min(zone.extra_references)
}

/// Live slots to copy in one append.
pub(crate) struct Group {
    /// One page of each slot, with its entry.
    pages: Vec<(SlotNo, PageNo, MapEntry)>,
    /// The other pages of these slots, in the same order.
    references: Vec<(SlotNo, PageNo, MapEntry)>,
    records: Vec<SlotNo>,
}

/// Most unreadable slots to look for in a group. When so many are found, the rest of the group is left for later.
const UNREADABLE_MAX: usize = 16;

/// The result of copying a group.
#[derive(Default)]
pub(crate) struct Relocated {
    /// Whether an append was made.
    pub moved: bool,
    /// Versions in the append that no checkpoint covers.
    pub kept: Vec<Version>,
    /// A checkpoint must follow: nothing else tells the next recovery that a page is lost or at home, or replaces a
    /// record.
    pub needs_checkpoint: bool,
    /// Slots that cannot be read. If there are any, nothing of the group is copied: the zone stays, and copies would
    /// only take space.
    pub unreadable: Vec<(SlotNo, Error)>,
}

/// An append of copies under construction.
struct Copies<P> {
    buffer: AppendBuffer<P>,
    // The original of each copy or record, in the order of the buffer.
    sources: Vec<SlotNo>,
    references: Vec<Reference>,
    unreadable: Vec<(SlotNo, Error)>,
    needs_checkpoint: bool,
}

impl<M: ZoneMedia> Ftl<M> {
    /// The next group of `live` slots, from index `next` on, for an append of at most `most` pages.
    pub(crate) fn group(&self, live: &[SlotNo], next: &mut usize, most: usize) -> Group {
        let parts = self.parts.borrow();
        let mut group = Group { pages: Vec::new(), references: Vec::new(), records: Vec::new() };
        let page = |slot: &SlotNo| match parts.map.occupant(*slot) {
            Occupant::Page(page) => Some(page),
            Occupant::Shared | Occupant::Record | Occupant::Dead => None,
        };
        let candidates = &live[*next..live.len().min(*next + most)];
        parts.map.fetch(candidates.iter().filter_map(page));
        for slot in candidates {
            match parts.map.occupant(*slot) {
                Occupant::Dead => {}
                Occupant::Record => group.records.push(*slot),
                Occupant::Page(page) => group.pages.push((*slot, page, parts.map.get(page))),
                Occupant::Shared => {
                    let before = (group.pages.len(), group.references.len());
                    let pages = parts.map.pages_of(*slot);
                    group.references.extend(pages.map(|page| (*slot, page, parts.map.get(page))));
                    group.pages.push(group.references.remove(before.1));
                    if group.append_pages() > most {
                        group.references.truncate(before.1);
                        if before == (0, 0) && group.records.is_empty() {
                            // No space for the references: one page is copied alone, and the slot
                            // stays live with the others.
                            return group;
                        }
                        group.pages.truncate(before.0);
                        return group;
                    }
                }
            }
            if group.append_pages() > most {
                // A page of references took the last place.
                group.pages.pop_if(|(at, ..)| at == slot);
                group.records.pop_if(|at| at == slot);
                return group;
            }
            *next += 1;
        }
        group
    }

    /// Copies one group of live slots.
    pub(crate) async fn relocate_group(&self, group: Group) -> Result<Relocated> {
        let entries = group.pages.len() + group.references.len();
        let reservation = self.reserve_entries(entries as u32).await?;
        let mut copies = self.read_group(group).await?;
        if !copies.unreadable.is_empty() {
            let Copies { buffer, unreadable, needs_checkpoint, .. } = copies;
            self.buffers.give(buffer);
            return Ok(Relocated { needs_checkpoint, unreadable, ..Relocated::default() });
        }
        let moved = !copies.sources.is_empty();
        let mut kept = Vec::new();
        if moved {
            // After the copies, so that their indexes in the append stay the same.
            for page in copies.references.chunks(REFERENCES_MAX) {
                if !Fault::ReferencesNotWritten.is_planted() {
                    copies.buffer.push_record(records::encode_references(page), Version::NEVER);
                }
            }
            let pages = copies.buffer.spares.len() as u32;
            self.admit(Stream::Cleaning, pages, || self.kept_from_cleaning()).await?;
            // A dump refers to slots of the mapping, so the copies must survive the power loss.
            let durable = self.dumper.is_some();
            let first = self.append_own(Stream::Cleaning, &copies.buffer, durable).await?;
            let parts = &mut *self.parts.borrow_mut();
            reservation.spend(parts);
            kept = copies.versions_since(parts.log.uncovered.covered());
            let at = |index: u32| SlotNo(first.0 + index);
            for (index, source) in (0..).zip(&copies.sources) {
                parts.redirect(*source, at(index), &copies.buffer.spares[index as usize]);
            }
            let zone = self.geometry.zone_of(first);
            for reference in &copies.references {
                if !reference.by_share {
                    parts.log.uncovered.add(zone, reference.version);
                }
                let source = copies.sources[reference.index as usize];
                let copy = copies.buffer.spares[reference.index as usize];
                parts.redirect_page(
                    source,
                    at(reference.index),
                    reference.page,
                    reference.version,
                    &copy,
                );
            }
        }
        let Copies { buffer, needs_checkpoint, .. } = copies;
        self.buffers.give(buffer);
        self.wake_backup();
        Ok(Relocated { moved, kept, needs_checkpoint, ..Relocated::default() })
    }

    /// Reads the live slots in `group` and checks them. Slots that cannot be read are left out.
    async fn read_group(&self, group: Group) -> Result<Copies<M::Page>> {
        let slots: Vec<SlotNo> = group.pages.iter().map(|(slot, ..)| *slot).collect();
        let mut copies = Copies {
            buffer: self.buffers.take(),
            sources: Vec::with_capacity(slots.len()),
            references: Vec::with_capacity(group.references.len()),
            unreadable: Vec::new(),
            needs_checkpoint: false,
        };
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let all = match slots.is_empty() {
            true => Ok(()),
            false => self.media.read_with_spares(&slots, &mut contents, &mut spares).await,
        };
        let mut references = group.references.into_iter().peekable();
        let read = contents.into_iter().zip(spares);
        for ((slot, page, entry), (mut content, mut spare)) in group.pages.into_iter().zip(read) {
            let mut read = all.clone();
            if read.is_err() {
                let one = (std::slice::from_mut(&mut content), std::slice::from_mut(&mut spare));
                read = self.media.read_with_spares(&[slot], one.0, one.1).await;
            }
            let others = std::iter::from_fn(|| references.next_if(|(at, ..)| *at == slot));
            let failure = match read {
                Ok(()) if entry.holds(page, &content, spare.as_ref()) => {
                    let parts = self.parts.borrow();
                    copies.push(&parts.log, (slot, page, entry), content, spare);
                    copies.refer(&parts.log, others);
                    continue;
                }
                Ok(()) => wrong_content(page, slot, &entry, &content, spare.as_ref()),
                Err(error) if error.kind() == ErrorKind::PowerCut => return Err(error),
                Err(error) => error,
            };
            let parts = &mut *self.parts.borrow_mut();
            if parts.has_elsewhere(page, &entry) || Fault::UnreadableTakenForLost.is_planted() {
                copies.needs_checkpoint |= parts.lose(page, entry);
                others.for_each(|(_, page, entry)| {
                    copies.needs_checkpoint |= parts.lose(page, entry);
                });
                continue;
            }
            others.for_each(drop);
            copies.unreadable.push((slot, failure));
            if copies.unreadable.len() == UNREADABLE_MAX {
                break;
            }
        }
        self.read_records(&group.records, &mut copies).await?;
        Ok(copies)
    }

    /// Reads the records in `slots` and adds them to the `copies`. A record that cannot be read must not simply be
    /// dropped, because the content that it removed would come back. A checkpoint that covers it replaces it.
    async fn read_records(&self, slots: &[SlotNo], copies: &mut Copies<M::Page>) -> Result<()> {
        for slot in slots {
            let Some((version, record)) = self.parts.borrow().log.records.at(*slot) else {
                continue;
            };
            let read = record.read(&self.media).await;
            match read.and_then(|body| records::decode(&body).map(|_| body)) {
                Ok(body) => {
                    copies.buffer.push_record(body, version);
                    copies.sources.push(*slot);
                }
                Err(error) if error.kind() == ErrorKind::PowerCut => return Err(error),
                Err(error) => {
                    tracing::warn!(%slot, %error, "a record of the log cannot be read: a checkpoint takes its place");
                    copies.needs_checkpoint = true;
                }
            }
        }
        Ok(())
    }
}

impl<P> Copies<P> {
    /// Adds the copy of a page.
    fn push(
        &mut self,
        log: &Log,
        (slot, page, entry): (SlotNo, PageNo, MapEntry),
        content: P,
        spare: Option<Spare>,
    ) {
        let checksum = spare.map_or(entry.checksum, |spare| spare.checksum);
        let version = entry.version;
        let kind = match log.is_of_share(version) {
            true => SlotKind::RemappedCopy,
            false if entry.clean => SlotKind::CleanCopy,
            false => SlotKind::Copy,
        };
        self.buffer.spares.push(Spare { kind, page, version, checksum });
        self.buffer.bodies.push(Body::Data(content));
        self.sources.push(slot);
    }

    /// Adds references for the `others`, which are in the slot of the last copy.
    fn refer(&mut self, log: &Log, others: impl Iterator<Item = (SlotNo, PageNo, MapEntry)>) {
        let index = self.sources.len() as u32 - 1;
        self.references.extend(others.map(|(_, page, entry)| {
            let (version, by_share) = (entry.version, log.is_of_share(entry.version));
            Reference { page, version, index, by_share }
        }));
    }

    /// The versions later than `covered` in this append.
    fn versions_since(&self, covered: Version) -> Vec<Version> {
        let copies = self.buffer.spares.iter().filter(|spare| counts(spare));
        let references = self.references.iter().filter(|reference| !reference.by_share);
        let versions =
            copies.map(|spare| spare.version).chain(references.map(|reference| reference.version));
        versions.filter(|version| *version > covered).collect()
    }
}

impl Group {
    /// Number of pages of the append.
    fn append_pages(&self) -> usize {
        self.pages.len() + self.records.len() + self.references.len().div_ceil(REFERENCES_MAX)
    }
}

impl Parts {
    /// Most pages to append when `zone`, whose number is `number`, is emptied. In a cache this excludes the pages that
    /// cleaning may evict.
    pub(crate) fn pages_to_keep(&self, number: ZoneNo, zone: &Zone) -> u32 {
        let may_go = self.clean.as_ref().map_or(0, |clean| clean.may_go(number));
        pages_to_relocate(self.space.geometry(), zone) - may_go
    }

    /// Maps the live content of `source` to its copy in `slot`.
    fn redirect(&mut self, source: SlotNo, slot: SlotNo, spare: &Spare) {
        if spare.kind == SlotKind::Record {
            if let Some((version, record)) = self.log.records.at(source) {
                self.put_record(version, OwnPage { slot, ..record });
            }
            return;
        }
        self.statistics.pages_moved +=
            u64::from(self.redirect_page(source, slot, spare.page, spare.version, spare));
    }

    /// Maps `page` to the copy of `source` in `slot`, if it still is in `source` under `version`.
    /// If the `copy` names another page, `page` is remapped to that page's copy.
    fn redirect_page(
        &mut self,
        source: SlotNo,
        slot: SlotNo,
        page: PageNo,
        version: Version,
        copy: &Spare,
    ) -> bool {
        let entry = self.map.get(page);
        let moves = entry.place == Place::At(source) && entry.version == version;
        if moves {
            let place = Place::At(slot);
            let remapped = (copy.page, copy.version) != (page, version);
            let checksum = match self.map.has_checksums() {
                true => entry.checksum,
                false if remapped => origin(copy.page, copy.version),
                false => 0,
            };
            self.replace(page, MapEntry { place, remapped, checksum, ..entry });
            self.relocation.copied.push(CopiedPage { page, before: entry, copy: slot });
        }
        moves
    }

    /// Maps relocated pages to their originals: a failed sync may have dropped the copies.
    pub(crate) fn take_copies_back(&mut self) {
        for CopiedPage { page, before, copy } in std::mem::take(&mut self.relocation.copied) {
            let entry = self.map.get(page);
            if entry.place == Place::At(copy) && entry.version == before.version {
                self.replace(page, before);
            }
        }
    }

    /// Whether home has the content of `page` by now, and the page has not changed since `entry` was read.
    fn has_elsewhere(&self, page: PageNo, entry: &MapEntry) -> bool {
        let now = self.map.get(page);
        now.clean && (now.place, now.version) == (entry.place, entry.version)
    }

    /// Marks `page` lost, or at home if home has its content, if the page is still at the place and version of `entry`.
    /// Returns whether it was.
    pub(crate) fn lose(&mut self, page: PageNo, entry: MapEntry) -> bool {
        let now = self.map.get(page);
        let known = (now.place, now.version) == (entry.place, entry.version);
        if known {
            let entry = match Fault::LostPagesForgotten.is_planted() {
                true => MapEntry { place: Place::Unmapped, clean: false, ..now },
                // Home has the content that the medium lost.
                false if now.clean => MapEntry::at_home(now.version),
                false => MapEntry { place: Place::Lost, ..now },
            };
            self.replace(page, entry);
        }
        known
    }
}
