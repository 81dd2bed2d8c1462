//! The writes to a medium: for each append, when it started and when it was durable. This list and the slots damaged
//! since determine what may be lost, refused, or mistaken for a cut end of the log. How the device detects that does not
//! matter here.
//!
//! - The contents of damaged slots are lost if no later copy of the same version is durable: the pages with these
//!   contents may be errors, and no other page may.
//! - Opening may be refused only if no remaining information identifies the affected pages: one of the device's own pages
//!   is damaged that no checkpoint covers, or a page of the checkpoint in force, or the metadata beside pages that no
//!   checkpoint covers.
//! - A durable append may look like a cut end of the log if no intact append started after it was durable. Only then may
//!   any content be older than acknowledged.
//! - Damage to slots without content in force has no effect.
mod let_go;
mod tail;

pub(super) use tail::Tail;

use let_go::GivenUp;

use std::collections::BTreeMap;
use tantalum_base::{SlotNo, Version, ZoneNo};
use tantalum_media::{AppendHeader, Body, ScannedAppend, SlotKind, Spare, ZoneGeometry};

/// Streams that the rules name (`docs/format.md`).
const CLEANING: u8 = 1;

/// Offset of the kind in a page of a checkpoint, and the kind of a footer (`docs/format.md`).
const PIECE_KIND_AT: usize = 16;
const FOOTER: u8 = 3;

/// The parts of a slot that are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gone {
    /// Its content.
    pub(super) content: bool,
    /// The metadata beside the content; on a file, where a page has none, the same as `content`.
    pub(super) spare: bool,
}

/// All of a slot.
pub(super) const ALL: Gone = Gone { content: true, spare: true };

/// The list. Times are its own; marks come from its caller, and only grow.
pub(super) struct Writes<P> {
    geometry: ZoneGeometry,
    /// In the order in which they started; appends in zones that were reset since are removed.
    appends: Vec<Append<P>>,
    gone: BTreeMap<SlotNo, Gone>,
    /// By number.
    checkpoints: BTreeMap<u64, Checkpoint>,
    /// Contents of zones that were reset since the device was checked.
    given_up: Vec<GivenUp<P>>,
    /// The last time at which an anchor was written, if there are any: it determines the checkpoint in force.
    anchored: Option<u64>,
    clock: u64,
}

struct Append<P> {
    zone: ZoneNo,
    /// Slot of the first page, once known.
    first: Option<SlotNo>,
    header: AppendHeader,
    spares: Vec<Spare>,
    bodies: Vec<Body<P>>,
    /// The pages that are on the medium.
    present: Vec<bool>,
    begun: u64,
    durable: Option<u64>,
    returned: Option<u64>,
    /// It was in flight or not durable at the power cut, and is there.
    landed: bool,
    /// It landed beside a dump, whose mapping has the places of pages and does not include it.
    unseen: bool,
    mark: u64,
}

#[derive(Clone, Copy)]
struct Checkpoint {
    begun: u64,
    /// The watermark that its first page contains: everything up to this version was durable.
    durable: Version,
    /// The time at which its last page was durable.
    finished: Option<u64>,
}

impl<P: Clone> Writes<P> {
    pub(super) fn new(geometry: ZoneGeometry) -> Self {
        Writes {
            geometry,
            appends: Vec::new(),
            gone: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            given_up: Vec::new(),
            anchored: None,
            clock: 0,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// An append starts; returns its start time, which identifies it in later calls.
    pub(super) fn begin(
        &mut self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<P>],
        mark: u64,
    ) -> u64 {
        let begun = self.tick();
        for spare in spares.iter().filter(|spare| spare.kind == SlotKind::Checkpoint) {
            let checkpoint = Checkpoint { begun, durable: header.durable, finished: None };
            self.checkpoints.entry(spare.version.0).or_insert(checkpoint);
        }
        self.appends.push(Append {
            zone,
            first: None,
            header: *header,
            spares: spares.to_vec(),
            bodies: bodies.to_vec(),
            present: vec![true; spares.len()],
            begun,
            durable: None,
            returned: None,
            landed: false,
            unseen: false,
            mark,
        });
        begun
    }

    /// The append has returned its first slot.
    pub(super) fn returned(&mut self, begun: u64, first: SlotNo, is_durable: bool) {
        let now = self.tick();
        let Some(append) = self.appends.iter_mut().find(|append| append.begun == begun) else {
            return;
        };
        append.first = Some(first);
        append.returned = Some(now);
        append.durable = is_durable.then_some(now);
        let range = slots_of(&self.geometry, append);
        let finished = append.footer().filter(|_| is_durable);
        for slot in range {
            self.gone.remove(&slot);
        }
        self.finish(finished);
    }

    fn finish(&mut self, checkpoint: Option<u64>) {
        let now = self.clock;
        if let Some(checkpoint) = checkpoint.and_then(|id| self.checkpoints.get_mut(&id)) {
            checkpoint.finished = Some(now);
        }
    }

    /// An anchor was written.
    pub(super) fn anchored(&mut self) {
        self.anchored = Some(self.tick());
    }

    /// A sync starts; returns the time.
    pub(super) fn sync_begins(&self) -> u64 {
        self.clock
    }

    /// The sync that started at `begun` has returned.
    pub(super) fn synced(&mut self, begun: u64) {
        let now = self.tick();
        let is_covered = |append: &&mut Append<P>| append.returned.is_some_and(|at| at <= begun);
        for append in self.appends.iter_mut().filter(is_covered) {
            append.durable.get_or_insert(now);
        }
    }

    /// The reset of a zone starts: nothing in it is needed any more.
    pub(super) fn reset_begins(&mut self, zone: ZoneNo) {
        let (now, given_up) = (self.tick(), &mut self.given_up);
        let checkpoints = &mut self.checkpoints;
        self.appends.retain(|append| {
            if append.zone == zone {
                // A checkpoint that no recovery found to be in force.
                append.footer().map(|id| checkpoints.remove(&id));
                let pages = append.spares.iter().zip(&append.bodies);
                given_up.extend(pages.filter_map(|(spare, body)| {
                    content(body).map(|it| GivenUp { at: now, spare: *spare, content: it.clone() })
                }));
            }
            append.zone != zone
        });
    }

    /// The zone is empty.
    pub(super) fn reset_done(&mut self, zone: ZoneNo) {
        let geometry = self.geometry;
        self.gone.retain(|slot, _| geometry.zone_of(*slot) != zone);
    }

    /// The power has been cut. Returns zones, with their epochs, in which appends were not durable.
    pub(super) fn uncertain(&self) -> Vec<(ZoneNo, u64)> {
        let uncertain = self.appends.iter().filter(|append| append.durable.is_none());
        let mut zones: Vec<(ZoneNo, u64)> =
            uncertain.map(|append| (append.zone, append.header.epoch)).collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }

    /// Records the fate of these appends in a zone, before later damage.
    pub(super) fn found(&mut self, zone: ZoneNo, epoch: u64, found: &[ScannedAppend]) {
        let now = self.tick();
        let (geometry, mut finished) = (self.geometry, Vec::new());
        let is_dump = |append: &Append<P>| append.spares.iter().any(|it| it.kind == SlotKind::Dump);
        let has_dump = self.appends.iter().any(is_dump);
        let gone = &mut self.gone;
        self.appends.retain_mut(|append| {
            let is_meant = append.zone == zone && append.header.epoch == epoch;
            if !is_meant || append.durable.is_some() || append.landed {
                return true;
            }
            let is_it = |found: &&ScannedAppend| append.is_found_as(found);
            let Some(found) = found.iter().find(is_it) else { return false };
            append.first = Some(geometry.slot(zone, found.first_offset));
            append.present = found.spares.iter().map(Option::is_some).collect();
            append.returned.get_or_insert(now);
            append.landed = true;
            append.unseen = has_dump;
            finished.extend(append.footer().filter(|_| append.present.iter().all(|is| *is)));
            for slot in slots_of(&geometry, append) {
                gone.remove(&slot);
            }
            true
        });
        finished.into_iter().for_each(|id| self.finish(Some(id)));
    }

    /// The device was opened and checked, which makes the content that it found durable.
    pub(super) fn verified(&mut self) {
        let now = self.tick();
        for append in &mut self.appends {
            if append.landed {
                append.durable.get_or_insert(now);
            }
            append.mark = 0;
        }
        self.given_up.clear();
    }

    /// Number of slots that are programmed together.
    pub(super) fn unit(&self) -> usize {
        self.geometry.append_unit_slots as usize
    }

    /// Whether `slot` belongs to a durable append.
    pub(super) fn is_durable(&self, slot: SlotNo) -> bool {
        let mut durable = self.appends.iter().filter(|append| append.durable.is_some());
        durable.any(|append| slots_of(&self.geometry, append).any(|own| own == slot))
    }

    /// The parts of `slot` that are gone.
    pub(super) fn gone(&self, slot: SlotNo) -> Gone {
        self.gone.get(&slot).copied().unwrap_or_default()
    }

    /// The parts that are gone, by slot.
    pub(super) fn all_gone(&self) -> &BTreeMap<SlotNo, Gone> {
        &self.gone
    }

    /// Sets exactly these parts as gone.
    pub(super) fn mend(&mut self, gone: BTreeMap<SlotNo, Gone>) {
        self.gone = gone;
    }

    /// Damages a slot.
    pub(super) fn lose(&mut self, slot: SlotNo, gone: Gone) {
        let now = self.gone.entry(slot).or_default();
        now.content |= gone.content;
        now.spare |= gone.spare;
    }

    /// The slots of the append that `slot` belongs to, its header's first; none if there is no such append.
    pub(super) fn append_at(&self, slot: SlotNo) -> Vec<SlotNo> {
        let at = |append: &&Append<P>| slots_of(&self.geometry, append).any(|own| own == slot);
        let append = self.appends.iter().rev().find(at);
        append.map_or(Vec::new(), |append| slots_of(&self.geometry, append).collect())
    }

    /// Every slot of the medium once: those of appends from the newest on, each with its header first, then all others,
    /// in the order of their places.
    pub(super) fn place(&self, number: u64) -> SlotNo {
        let all = u64::from(self.geometry.zones) * u64::from(self.geometry.slots_per_zone);
        let mut places: Vec<SlotNo> =
            self.appends.iter().rev().flat_map(|one| slots_of(&self.geometry, one)).collect();
        let number = number % all;
        if let Some(place) = places.get(number as usize) {
            return *place;
        }
        let behind = number as usize - places.len();
        places.sort_unstable();
        let is_other = |slot: &SlotNo| places.binary_search(slot).is_err();
        let other = (0..all as u32).map(SlotNo).filter(is_other).nth(behind);
        other.unwrap_or(SlotNo(number as u32))
    }

    /// Lost contents of hosts' pages.
    pub(super) fn lost(&self) -> Vec<P> {
        let mut lost = Vec::new();
        for (append, index, slot) in self.pages() {
            let gone = self.gone(slot);
            let is_known = self.is_known(append, slot);
            // On a file the entry in the map is enough to read a page.
            let is_unreadable = gone.content
                || (gone.spare && self.is_flash())
                || (!is_known && !self.is_covered(append, index));
            if !is_unreadable {
                continue;
            }
            match (&append.bodies[index], append.spares[index]) {
                (Body::Data(page), _) if !self.has_later_place(append, index) => {
                    lost.push(page.clone());
                }
                // A record of the other pages that share this append's contents, or of pages whose content is only at
                // home.
                (
                    Body::Meta(page),
                    Spare { kind: SlotKind::Record, version: Version::NEVER, .. },
                ) if !self.is_covered(append, index) => {
                    lost.extend(append.bodies.iter().filter_map(content).cloned());
                    lost.extend(self.let_go(page, append.begun));
                }
                _ => {}
            }
        }
        lost
    }

    /// Whether opening the device may be refused, or cleaning may stop, because no remaining information identifies the
    /// damaged pages.
    pub(super) fn may_refuse(&self) -> bool {
        let newest = self.newest_checkpoint();
        self.pages().any(|(append, index, slot)| {
            let is_known = self.is_known(append, slot);
            let is_own = content(&append.bodies[index]).is_none();
            let spare = append.spares[index];
            let is_hit = !is_known || (is_own && self.gone(slot).content);
            let in_force = match spare.kind {
                SlotKind::Checkpoint => newest.is_some_and(|(number, _)| number == spare.version.0),
                // The checkpoint records which page should be there.
                SlotKind::Copy => {
                    newest.is_none_or(|(_, newest)| spare.version > newest.durable)
                        && !self.is_covered(append, index)
                }
                _ => !self.is_covered(append, index),
            };
            append.durable.is_some() && is_hit && in_force
        })
    }

    fn is_flash(&self) -> bool {
        self.geometry.append_overhead_slots == 0
    }

    /// The pages that are on the medium, each with its slot.
    fn pages(&self) -> impl Iterator<Item = (&Append<P>, usize, SlotNo)> {
        self.appends.iter().flat_map(|append| {
            let first = append.first.into_iter();
            let slots = first.flat_map(|first| first.0..first.0 + append.spares.len() as u32);
            let present = slots.zip(0..).filter(|(_, index)| append.present[*index]);
            present.map(move |(slot, index)| (append, index, SlotNo(slot)))
        })
    }

    /// Whether the metadata that identifies the page in `slot` of the append is there.
    fn is_known(&self, append: &Append<P>, slot: SlotNo) -> bool {
        if self.is_flash() { !self.gone(slot).spare } else { self.has_header(append) }
    }

    /// Whether the append can be found.
    fn has_header(&self, append: &Append<P>) -> bool {
        let mut slots = slots_of(&self.geometry, append);
        if self.is_flash() {
            slots.any(|slot| !self.gone(slot).spare)
        } else {
            slots.next().is_some_and(|header| !self.gone.contains_key(&header))
        }
    }

    fn newest_checkpoint(&self) -> Option<(u64, Checkpoint)> {
        let is_in_force = |at: u64| self.anchored.is_none_or(|anchored| anchored > at);
        let is_finished = |one: &Checkpoint| one.finished.is_some_and(is_in_force);
        let mut newest = self.checkpoints.iter().rev().filter(|(_, one)| is_finished(one));
        newest.next().map(|(number, checkpoint)| (*number, *checkpoint))
    }

    /// Whether the newest checkpoint has the information of this page of the append.
    fn is_covered(&self, append: &Append<P>, index: usize) -> bool {
        let Some((_, newest)) = self.newest_checkpoint() else { return false };
        let spare = append.spares[index];
        let header = &append.header;
        match spare.kind {
            SlotKind::Data | SlotKind::Record if header.stream != CLEANING => {
                header.batch_first.0 + u64::from(header.batch_len) <= newest.durable.0 + 1
            }
            SlotKind::Record if spare.version != Version::NEVER => spare.version <= newest.durable,
            // The checkpoint that invalidates its mapping leaves its pages in force.
            SlotKind::Dump => false,
            _ => append.returned.is_some_and(|returned| newest.begun > returned),
        }
    }

    /// Whether the page was copied later, under the same version, and the copy is durable.
    fn has_later_place(&self, append: &Append<P>, index: usize) -> bool {
        let spare = append.spares[index];
        let mut later = self.appends.iter().rev().take_while(|other| other.begun > append.begun);
        matches!(spare.kind, SlotKind::Data | SlotKind::Copy)
            && later.any(|other| {
                let is_copy = |copy: &Spare| {
                    matches!(copy.kind, SlotKind::Data | SlotKind::Copy)
                        && (copy.page, copy.version) == (spare.page, spare.version)
                };
                let mut present = other.spares.iter().zip(&other.present);
                other.durable.is_some()
                    && !other.unseen
                    && other.names_all_pages()
                    && present.any(|(copy, present)| *present && is_copy(copy))
            })
    }
}

impl<P> Append<P> {
    /// The checkpoint whose footer it holds.
    fn footer(&self) -> Option<u64> {
        let mut pages = self.spares.iter().zip(&self.bodies);
        pages.find_map(|(spare, body)| match body {
            Body::Meta(page)
                if spare.kind == SlotKind::Checkpoint && page[PIECE_KIND_AT] == FOOTER =>
            {
                Some(spare.version.0)
            }
            _ => None,
        })
    }

    /// Whether the record of the other pages that share its contents is on the medium. If a cut left it out, those pages
    /// keep their old place.
    fn names_all_pages(&self) -> bool {
        let is_sharers =
            |spare: &Spare| spare.kind == SlotKind::Record && spare.version == Version::NEVER;
        self.spares.iter().zip(&self.present).all(|(spare, present)| *present || !is_sharers(spare))
    }

    fn is_found_as(&self, found: &ScannedAppend) -> bool {
        let same = |(spare, found): (&Spare, &Option<Spare>)| found.is_none_or(|it| it == *spare);
        found.header == self.header
            && found.spares.len() == self.spares.len()
            && self.spares.iter().zip(&found.spares).all(same)
    }
}

fn content<P>(body: &Body<P>) -> Option<&P> {
    match body {
        Body::Data(page) => Some(page),
        Body::Meta(_) => None,
    }
}

/// The slots of an append whose place is known, its header's first.
fn slots_of<P>(
    geometry: &ZoneGeometry,
    append: &Append<P>,
) -> impl Iterator<Item = SlotNo> + use<P> {
    let (overhead, pages) = (geometry.append_overhead_slots, append.spares.len() as u32);
    let first = append.first.into_iter();
    first.flat_map(move |first| (first.0 - overhead..first.0 + pages).map(SlotNo))
}

#[cfg(test)]
mod tests;
