//! The mapping log: changes of the mapping since the last checkpoint, which a power loss would
//! dump.
//!
//! Changed entries are a list with one bit per page, so that a change has constant cost. When the
//! list nears its limit it is written to the meta stream as delta pages and cleared: the
//! incremental backup of the DuraSSD paper, section 3.4.1. A checkpoint makes all of them void. A
//! change of entries must be reserved, and waits while there is no room, so that the stored energy
//! always suffices to dump the list.
use std::collections::BTreeMap;
use tantalum_base::{PageBuf, PageNo, PageRange, SlotNo, Version};

use crate::dump::delta_pages::{Changes, ENTRIES_MIN, PageWriter, Trim};
use crate::dump::energy::Layout;
use crate::fault_points::Fault;
use crate::log::shares::Undo;
use crate::map::{MapEntry, Mapping, Place};
use crate::relocation::CopiedPage;

/// If the delta pages take fewer slots than this, no checkpoint is written to make them void, however small the last
/// checkpoint was.
const SLOTS_DUE_MIN: u64 = 256;

/// A delta page in force.
#[derive(Clone, Copy)]
struct DeltaPage {
    /// The last checkpoint begun before its entries were encoded.
    era: u64,
    slot: SlotNo,
}

/// Tracks the changes since the last checkpoint.
pub struct MappingLog {
    /// Most entries that a dump can hold.
    limit: u32,
    slots_max: u64,
    tracking: bool,
    // Per page: whether it is in `dirty`.
    marked: Vec<u64>,
    dirty: Changes,
    // Being written as delta pages.
    in_flight: Changes,
    // Changed before the checkpoint began that is being written now.
    before: Changes,
    reserved: u32,
    pages: Vec<DeltaPage>,
    // Slots of delta pages: of this era, and of earlier ones.
    slots_now: u64,
    slots_before: u64,
    era: u64,
    // Numbers of the next delta page, and of the first that is not durable.
    next_number: u64,
    written_up_to: u64,
    entries_max: u32,
    pages_written: u64,
}

impl MappingLog {
    /// A log for a map of `pages` pages, none of which has changed.
    pub fn new(layout: &Layout, pages: u64) -> Self {
        MappingLog {
            limit: layout.entries_max,
            slots_max: layout.delta_slots_max,
            tracking: true,
            marked: vec![0; pages.div_ceil(64) as usize],
            dirty: Changes::default(),
            in_flight: Changes::default(),
            before: Changes::default(),
            reserved: 0,
            pages: Vec::new(),
            slots_now: 0,
            slots_before: 0,
            era: 0,
            next_number: 0,
            written_up_to: 0,
            entries_max: 0,
            pages_written: 0,
        }
    }

    /// Stops tracking until [`resume`](Self::resume), while a recovery fills the map.
    pub fn pause(&mut self) {
        self.tracking = false;
    }

    /// Tracks changes again. The whole map is in checkpoint `era`; delta pages are numbered from
    /// `first_number` on, which no earlier opening used.
    pub fn resume(&mut self, era: u64, first_number: u64) {
        assert_eq!(self.held(), 0, "changes were tracked before");
        self.tracking = true;
        self.era = era;
        (self.next_number, self.written_up_to) = (first_number, first_number);
    }

    /// Entries that a power loss now would dump.
    pub fn held(&self) -> u32 {
        self.dirty.len() + self.in_flight.len() + self.before.len()
    }

    /// The largest number of entries so far.
    pub fn held_max(&self) -> u32 {
        self.entries_max
    }

    /// Delta pages written so far.
    pub fn pages_written(&self) -> u64 {
        self.pages_written
    }

    fn check(&mut self) {
        let held = self.held();
        self.entries_max = self.entries_max.max(held);
        assert!(
            held <= self.limit || Fault::NoDeltaLimit.is_planted(),
            "{held} changed mapping entries are more than the {} that the stored energy can dump",
            self.limit
        );
    }

    /// Notes that the entry of `page` changed.
    #[inline]
    pub fn mark(&mut self, page: PageNo) {
        if !self.tracking {
            return;
        }
        let (word, bit) = (page.index() / 64, 1 << (page.index() % 64));
        if self.marked[word] & bit == 0 {
            self.marked[word] |= bit;
            self.dirty.pages.push(page.0 as u32);
            self.check();
        }
    }

    /// Notes that all entries of `range` with a lower version changed.
    pub fn trimmed(&mut self, range: PageRange, version: Version) {
        if self.tracking {
            self.dirty.trims.push(Trim { range, version });
            self.check();
        }
    }

    /// Reserves `entries` changes; returns false if there is no room now.
    pub fn try_reserve(&mut self, entries: u32) -> bool {
        let fits = self.held() + self.reserved + entries <= self.limit;
        if fits || !self.tracking || Fault::NoDeltaLimit.is_planted() {
            self.reserved += entries;
            return true;
        }
        false
    }

    /// Releases a reservation when its changes are made.
    pub fn release(&mut self, entries: u32) {
        self.reserved -= entries;
    }

    /// Whether `entries` could ever be reserved at once, beside other reservations.
    pub fn can_reserve(&self, entries: u32) -> bool {
        !self.tracking || entries <= self.limit / 2
    }

    /// Whether the list should be written; `wanted`: a task waits to change entries.
    pub fn backup_due(&self, wanted: bool) -> bool {
        let dirty = self.dirty.len();
        let due = wanted || dirty >= self.limit / 4;
        self.tracking && dirty > 0 && due && !Fault::NoDeltaLimit.is_planted()
    }

    /// Whether delta pages are being written.
    pub fn is_backing_up(&self) -> bool {
        self.in_flight.len() > 0
    }

    /// Slots of delta pages in force.
    pub fn slots(&self) -> u64 {
        self.slots_now + self.slots_before
    }

    /// Whether `slots` more slots of delta pages may be written.
    pub fn fits(&self, slots: u64) -> bool {
        self.slots() + slots <= self.slots_max
    }

    /// Whether a checkpoint is due to make delta pages void: they fill half of their limit, or as many slots as the
    /// checkpoint in force has pages.
    pub fn checkpoint_due(&self, checkpoint_pages: u64) -> bool {
        let most = (self.slots_max / 2).min(checkpoint_pages.max(SLOTS_DUE_MIN));
        self.tracking && self.slots_now > 0 && self.slots_now >= most
    }

    /// Pages of the list if it is written now.
    pub fn backup_pages(&self) -> u32 {
        self.dirty.len().div_ceil(ENTRIES_MIN as u32)
    }

    /// Takes the list to be written; returns its pages, numbered, with the present entries of the
    /// map. A dump includes them until [`written`](Self::written).
    pub fn start_backup(&mut self, map: &Mapping) -> Vec<(PageNo, Version, PageBuf)> {
        assert_eq!(self.in_flight.len(), 0, "one backup at a time");
        std::mem::swap(&mut self.dirty, &mut self.in_flight);
        self.unmark_in_flight();
        let mut pages = PageWriter::new(map.has_checksums(), self.era, self.next_number);
        pages.add(map, &self.in_flight);
        let bodies = pages.finish();
        let numbers = self.next_number..;
        self.next_number += bodies.len() as u64;
        let numbered = numbers.zip(bodies);
        numbered.map(|(number, body)| (PageNo(number), Version(self.era), body)).collect()
    }

    fn unmark_in_flight(&mut self) {
        for page in &self.in_flight.pages {
            self.marked[*page as usize / 64] &= !(1 << (page % 64));
        }
    }

    /// Notes that the backup begun in `era` is durable in `places`, whose appends took `slots`. Returns false if
    /// checkpoint `in_force` has made it void meanwhile.
    pub fn written(&mut self, era: u64, in_force: u64, places: &[SlotNo], slots: u64) -> bool {
        self.in_flight.clear();
        self.written_up_to = self.next_number;
        self.pages_written += places.len() as u64;
        if era < in_force {
            return false;
        }
        self.pages.extend(places.iter().map(|slot| DeltaPage { era, slot: *slot }));
        *(if era == self.era { &mut self.slots_now } else { &mut self.slots_before }) += slots;
        true
    }

    /// Notes that checkpoint `id` starts, which will hold all changes so far.
    pub fn checkpoint_started(&mut self, id: u64) {
        self.era = id;
        self.slots_before += std::mem::take(&mut self.slots_now);
        if !self.tracking {
            return;
        }
        for page in &self.dirty.pages {
            self.marked[*page as usize / 64] &= !(1 << (page % 64));
        }
        self.before.pages.append(&mut self.dirty.pages);
        self.before.trims.append(&mut self.dirty.trims);
    }

    /// Notes that checkpoint `id` is in force; returns the slots of the delta pages that it makes void.
    pub fn checkpoint_finished(&mut self, id: u64) -> Vec<SlotNo> {
        self.before.clear();
        self.slots_before = 0;
        let void = self.pages.iter().filter(|page| page.era < id).map(|page| page.slot).collect();
        self.pages.retain(|page| page.era >= id);
        void
    }

    /// Number of delta pages in force.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Their slots.
    pub fn slots_of_pages(&self) -> impl Iterator<Item = SlotNo> + '_ {
        self.pages.iter().map(|page| page.slot)
    }

    /// Delta pages with lower numbers are durable; later ones are only in memory.
    pub fn written_up_to(&self) -> u64 {
        self.written_up_to
    }

    /// Encodes the pages to dump: all entries that are in no durable delta page. A page with an `undurable` share is
    /// dumped with its entry before the share, which was not acknowledged. A page that was `copied` from a zone that is
    /// not empty yet is dumped with the entry of the original, so that the zone of the copies becomes free. If that
    /// needs more entries than there is energy for, the copies stay in force.
    pub fn dump<'a>(
        &self,
        map: &Mapping,
        undurable: impl DoubleEndedIterator<Item = &'a Undo>,
        copied: &[CopiedPage],
    ) -> Vec<PageBuf> {
        if Fault::DeltasNotDumped.is_planted() {
            return Vec::new();
        }
        let mut undone: BTreeMap<PageNo, MapEntry> = BTreeMap::new();
        for undo in undurable.rev() {
            let now = undone.get(&undo.page).copied().unwrap_or(map.get(undo.page));
            if now.version == undo.version {
                undone.insert(undo.page, undo.before);
            }
        }
        let mut taken_back = undone.clone();
        for CopiedPage { page, before, copy } in copied {
            let now = taken_back.get(page).copied().unwrap_or(map.get(*page));
            if now.place == Place::At(*copy) && now.version == before.version {
                taken_back.insert(*page, *before);
            }
        }
        let pages = self.pages_to_dump(map, &taken_back);
        let fits = pages.len() <= self.limit as usize / ENTRIES_MIN;
        match fits && !Fault::CopiesKeptAtPowerLoss.is_planted() {
            true => pages,
            false => self.pages_to_dump(map, &undone),
        }
    }

    /// Encodes all entries that are in no durable delta page, and then those that replace some of them (`instead`).
    fn pages_to_dump(&self, map: &Mapping, instead: &BTreeMap<PageNo, MapEntry>) -> Vec<PageBuf> {
        let mut pages = PageWriter::new(map.has_checksums(), self.era, 0);
        for changes in [&self.before, &self.in_flight, &self.dirty] {
            pages.add(map, changes);
        }
        instead.iter().for_each(|(page, entry)| pages.push(&entry.to_line(*page)));
        pages.finish()
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        let marked: u32 = self.marked.iter().map(|word| word.count_ones()).sum();
        assert_eq!(marked as usize, self.dirty.pages.len(), "a page is marked and not in the list");
        let is_marked = |page: &u32| self.marked[*page as usize / 64] & (1 << (page % 64)) != 0;
        assert!(self.dirty.pages.iter().all(is_marked), "a page is in the list and not marked");
        assert!(self.written_up_to <= self.next_number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::delta_pages::{Delta, decode};
    use tantalum_base::fault_points::assert_noticed;

    fn tracked(entries_max: u32) -> (MappingLog, Mapping) {
        let (zones, delta_zones, shares_max) = (1, 1, 1);
        let layout = Layout { entries_max, delta_slots_max: 8, zones, delta_zones, shares_max };
        (MappingLog::new(&layout, 1000), Mapping::new(1000, 1000, true))
    }

    #[test]
    fn changes_come_back() {
        let (mut deltas, mut map) = tracked(500);
        let mut expected = Vec::new();
        for page in (0..600).step_by(3).map(PageNo) {
            let place = Place::At(SlotNo(page.0 as u32 + 7));
            let remapped = page.0 % 2 == 0;
            let entry = MapEntry {
                version: Version(1 << 40 | page.0),
                place,
                remapped,
                clean: false,
                checksum: 5,
            };
            map.set(page, entry);
            deltas.mark(page);
            deltas.mark(page);
            expected.push(Delta::Page(page, entry));
        }
        let trim = Trim { range: PageRange::new(PageNo(1), 900), version: Version(9) };
        deltas.trimmed(trim.range, trim.version);
        expected.push(Delta::Trim(trim));
        assert_eq!(deltas.held(), 201, "a page counts once");
        let pages = deltas.dump(&map, std::iter::empty(), &[]);
        let read: Vec<Delta> = pages.iter().flat_map(|page| decode(page, true).unwrap()).collect();
        assert_eq!((pages.len(), read), (1, expected));
    }

    /// Dumps a page that was copied and whose entry was written to a delta page; returns the entries if they are
    /// wrong.
    fn dumped_of_a_copied_page() -> Option<String> {
        let (deltas, mut map) = tracked(500);
        let (page, copy) = (PageNo(7), SlotNo(90));
        let version = Version(3);
        let before = MapEntry { version, place: Place::At(SlotNo(5)), ..MapEntry::default() };
        map.set(page, MapEntry { place: Place::At(copy), ..before });
        let dump = |map: &Mapping| {
            let copied = [CopiedPage { page, before, copy }];
            let pages = deltas.dump(map, std::iter::empty(), &copied);
            pages.iter().flat_map(|page| decode(page, true).unwrap()).collect::<Vec<_>>()
        };
        let found = dump(&map);
        // Newer content stays.
        let newer = MapEntry { version: Version(4), place: Place::At(SlotNo(70)), ..before };
        map.set(page, newer);
        assert_eq!(dump(&map), []);
        (found != [Delta::Page(page, before)]).then(|| format!("{found:?}"))
    }

    #[test]
    fn copies_of_an_unfinished_cleaning_are_taken_back() {
        assert_noticed(Fault::CopiesKeptAtPowerLoss, dumped_of_a_copied_page);
    }

    #[test]
    fn room_is_reserved_and_a_checkpoint_gives_it_back() {
        let (mut deltas, map) = tracked(10);
        assert!(deltas.try_reserve(6) && !deltas.try_reserve(5));
        deltas.release(6);
        (0..6).for_each(|page| deltas.mark(PageNo(page)));
        assert!(!deltas.try_reserve(5));
        deltas.checkpoint_started(1);
        (0..4).for_each(|page| deltas.mark(PageNo(page)));
        assert_eq!(deltas.held(), 10, "what is in no checkpoint in force is dumped");
        assert_eq!(deltas.start_backup(&map).len(), 1);
        assert_eq!(deltas.held(), 10, "and so is what is being written");
        assert!(deltas.written(1, 0, &[SlotNo(3)], 2));
        assert_eq!((deltas.held(), deltas.slots()), (6, 2));
        assert_eq!(deltas.checkpoint_finished(1), []);
        assert_eq!((deltas.held(), deltas.slots()), (0, 2));
        deltas.checkpoint_started(2);
        assert_eq!(deltas.checkpoint_finished(2), [SlotNo(3)]);
        assert_eq!(deltas.slots(), 0);
    }

    #[test]
    #[should_panic(expected = "more than the 10 that the stored energy can dump")]
    fn more_than_the_energy_can_dump_is_refused() {
        let (mut deltas, _) = tracked(10);
        (0..11).for_each(|page| deltas.mark(PageNo(page)));
    }
}
