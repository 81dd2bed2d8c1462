//! Forward and reverse mapping: the place of each logical page, the logical pages of each slot.
use tantalum_base::{PageNo, SlotNo, Version};
use tantalum_runtime::prefer_huge_pages;

use crate::map::entry::HOME;
use crate::map::packed::{Packed, is_remapped, pack, place_of, unpack};
use crate::map::references::References;
use crate::map::remapped::{Remapped, origin};
use crate::map::{MapEntry, Place};

/// Pages that share one bit of `written`.
pub(super) const MARKED_PAGES: usize = 4096;

/// A table uses huge pages if at least one in this many of its entries is about to be set.
const EXPECTED_DIVISOR: usize = 8;

/// Forward and reverse mapping. Takes 10 bytes per logical page and 4 per slot, and the reference lists of shared
/// slots; also 4 per logical page if the medium keeps no checksums, and up to as much for remapped pages if it does.
pub struct Mapping {
    pub(super) forward: Vec<Packed>,
    // Per group of pages: whether any was ever written.
    pub(super) written: Vec<bool>,
    // The numbers of pages with content, lost ones included; of lost pages; and of pages that were trimmed and not
    // written since.
    counts: [u64; 3],
    // The same numbers for the pages from `staging_from` on.
    staging_counts: [u64; 3],
    // Pages from here on have no home, in a cache.
    staging_from: u64,
    // The checksum of each page; empty if the medium keeps them.
    checksums: Vec<u32>,
    // The origins of remapped pages, if `checksums` is empty.
    remapped: Remapped,
    // The page of each slot, or one of the constants below.
    reverse: Vec<u32>,
    references: References,
}

/// The effect of a change of a page's place on the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Change {
    /// The slot that the page left, if any.
    pub left: Option<SlotNo>,
    /// The slot that it left still holds other pages.
    pub left_alive: bool,
    /// The slot that it entered already held another page.
    pub joined: bool,
}

/// In `reverse`: the slot has no live content.
const DEAD: u32 = 0;
/// In `reverse`: the slot has a record that the next recovery needs.
const RECORD: u32 = 1;
/// In `reverse`: the slot has several pages, which `references` lists.
const SHARED: u32 = 2;
/// In `reverse`: the slot has page 0; the values after it are the other pages.
const FIRST_PAGE: u32 = 3;

/// The live content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nothing.
    Dead,
    /// The content of this page.
    Page(PageNo),
    /// The content of several pages; [`Mapping::pages_of`] names them.
    Shared,
    /// A record that no checkpoint covers yet.
    Record,
}

impl Mapping {
    /// `pages` unmapped pages and `slots` dead slots, with or without `checksums`.
    pub fn new(pages: u64, slots: u64, checksums: bool) -> Self {
        assert!(slots < u64::from(HOME), "slot numbers have 32 bits");
        assert!(
            pages < u64::from(u32::MAX - FIRST_PAGE),
            "page numbers have 32 bits in the reverse map"
        );
        Mapping {
            forward: vec![[0; 5]; pages as usize],
            written: vec![false; pages.div_ceil(MARKED_PAGES as u64) as usize],
            counts: [0; 3],
            staging_counts: [0; 3],
            staging_from: pages,
            checksums: vec![0; if checksums { pages as usize } else { 0 }],
            remapped: Remapped::new(pages),
            reverse: vec![DEAD; slots as usize],
            references: References::default(),
        }
    }

    /// The same mapping, for a cache whose pages from `first` on have no home.
    pub fn staging_from(self, first: u64) -> Self {
        Mapping { staging_from: first, ..self }
    }

    /// Whether `page` is a page of a cache without a home.
    #[inline]
    pub fn is_staging(&self, page: PageNo) -> bool {
        page.0 >= self.staging_from
    }

    /// Prepares for loading `pages` entries. If they fill much of a table, it is put in huge pages, as faulting in
    /// small ones would take as long as the loading; otherwise the table takes memory only for the parts used.
    pub fn expect(&mut self, pages: u64) {
        if pages as usize >= self.forward.len() / EXPECTED_DIVISOR {
            prefer_huge_pages(&mut self.forward);
            prefer_huge_pages(&mut self.checksums);
        }
        if pages as usize >= self.reverse.len() / EXPECTED_DIVISOR {
            prefer_huge_pages(&mut self.reverse);
        }
    }

    /// Number of logical pages.
    pub fn pages(&self) -> u64 {
        self.forward.len() as u64
    }

    /// The entry of `page`.
    #[inline]
    pub fn get(&self, page: PageNo) -> MapEntry {
        let packed = self.forward[page.index()];
        let checksum = match self.checksums.get(page.index()) {
            Some(checksum) => *checksum,
            None if is_remapped(&packed) => self.remapped.get(page),
            None => 0,
        };
        unpack(&packed, checksum)
    }

    /// Whether `page` is remapped but its origin is missing: then [`get`](Self::get) must not be called.
    pub fn lacks_origin(&self, page: PageNo) -> bool {
        !self.has_checksums()
            && is_remapped(&self.forward[page.index()])
            && !self.remapped.knows(page)
    }

    /// The number of origins kept, if known, and of remapped pages.
    pub fn origins(&self) -> (Option<u64>, u64) {
        if self.has_checksums() {
            return (None, 0);
        }
        let marked = self.known_pages().filter(|page| is_remapped(&self.forward[page.index()]));
        (self.remapped.entries(), marked.count() as u64)
    }

    /// The other page in `slot` whose entry contradicts that of `page`, if any: both should have the same content.
    pub fn contradicts(&self, page: PageNo, slot: SlotNo) -> Option<PageNo> {
        let other = self.pages_of(slot).next().filter(|other| *other != page)?;
        let content = |page| self.checksum_when_shared(page, &self.get(page));
        (content(other) != content(page)).then_some(other)
    }

    /// Removes the origin of `page`, and nothing else.
    #[cfg(test)]
    pub fn forget_origin(&mut self, page: PageNo) {
        self.remapped.remove(page);
    }

    /// Whether it keeps checksums.
    pub fn has_checksums(&self) -> bool {
        !self.checksums.is_empty()
    }

    /// The checksum for a page that is remapped to the content of `page`, whose entry is `entry`.
    pub fn checksum_when_shared(&self, page: PageNo, entry: &MapEntry) -> u32 {
        match self.has_checksums() || entry.remapped {
            true => entry.checksum,
            false => origin(page, entry.version),
        }
    }

    /// Loads the entries of `pages`, and of their slots, into the processor's cache. Entries of
    /// random pages are far apart in a table of many megabytes; here their loads overlap, while
    /// changes one by one would wait for each.
    pub fn fetch(&self, pages: impl Iterator<Item = PageNo> + Clone) {
        let place = |page: PageNo| place_of(&self.forward[page.index()]);
        let places = pages.clone().fold(0, |all, page| all ^ place(page));
        let occupant = |page| self.reverse.get(place(page) as usize).copied().unwrap_or(DEAD);
        let occupants = pages.fold(0, |all, page| all ^ occupant(page));
        std::hint::black_box((places, occupants));
    }

    /// The same for `slots`.
    pub fn fetch_slots(&self, slots: impl Iterator<Item = SlotNo>) {
        let occupant = |slot: SlotNo| self.reverse.get(slot.index()).copied().unwrap_or(DEAD);
        std::hint::black_box(slots.fold(0, |all, slot| all ^ occupant(slot)));
    }

    /// Sets the entry of `page`; returns how the slots are affected.
    #[inline]
    pub fn set(&mut self, page: PageNo, entry: MapEntry) -> Change {
        let old = std::mem::replace(&mut self.forward[page.index()], pack(&entry));
        let old_place = Place::from_bits(place_of(&old));
        self.uncount(page, &unpack(&old, 0));
        self.count(page, &entry);
        self.written[page.index() / MARKED_PAGES] = true;
        if let Some(checksum) = self.checksums.get_mut(page.index()) {
            *checksum = entry.checksum;
        } else if entry.remapped {
            self.remapped.insert(page, entry.checksum);
        } else if is_remapped(&old) {
            self.remapped.remove(page);
        }
        let mut change = Change::default();
        if let Place::At(slot) = old_place {
            change.left = Some(slot);
            change.left_alive = self.leave(slot, page);
        }
        if let Place::At(slot) = entry.place {
            change.joined = self.enter(slot, page);
        }
        change
    }

    /// Sets the entry of `page`, which has none; returns whether others are in its slot.
    #[inline]
    pub fn load(&mut self, page: PageNo, entry: MapEntry) -> bool {
        let at = page.index();
        debug_assert_eq!(self.forward[at], Packed::default(), "{page:?} has an entry");
        self.forward[at] = pack(&entry);
        self.count(page, &entry);
        self.written[at / MARKED_PAGES] = true;
        if let Some(checksum) = self.checksums.get_mut(at) {
            *checksum = entry.checksum;
        } else if entry.remapped {
            self.remapped.insert(page, entry.checksum);
        }
        entry.place.slot().is_some_and(|slot| self.enter(slot, page))
    }

    #[inline]
    fn count(&mut self, page: PageNo, entry: &MapEntry) {
        let add = |counts: &mut [u64; 3]| {
            counts.iter_mut().zip(counted(entry)).for_each(|(count, one)| *count += one);
        };
        add(&mut self.counts);
        if self.is_staging(page) {
            add(&mut self.staging_counts);
        }
    }

    #[inline]
    fn uncount(&mut self, page: PageNo, entry: &MapEntry) {
        let subtract = |counts: &mut [u64; 3]| {
            counts.iter_mut().zip(counted(entry)).for_each(|(count, one)| *count -= one);
        };
        subtract(&mut self.counts);
        if self.is_staging(page) {
            subtract(&mut self.staging_counts);
        }
    }

    /// Whether recovery needs no `entry` of `page` if it knows all changes up to its version: the page of a cache is at
    /// home, or has no home and was trimmed.
    #[inline]
    pub fn may_be_forgotten(&self, page: PageNo, entry: &MapEntry) -> bool {
        match entry.place {
            Place::Home => true,
            Place::Unmapped => self.is_staging(page),
            Place::At(_) | Place::Lost => false,
        }
    }

    /// Forgets a `page` that may be forgotten: it looks as if it was never written.
    pub fn forget(&mut self, page: PageNo) {
        let entry = self.get(page);
        debug_assert!(self.may_be_forgotten(page, &entry), "{page:?} is forgotten");
        debug_assert!(!entry.remapped, "{page:?} leaves its origin behind");
        self.uncount(page, &entry);
        self.forward[page.index()] = Packed::default();
        if let Some(checksum) = self.checksums.get_mut(page.index()) {
            *checksum = 0;
        }
    }

    /// Removes `page` from `slot`; returns whether others are still there.
    #[inline]
    fn leave(&mut self, slot: SlotNo, page: PageNo) -> bool {
        let occupant = &mut self.reverse[slot.index()];
        if *occupant != SHARED {
            *occupant = DEAD;
            return false;
        }
        if let Some(last) = self.references.remove(slot, page) {
            *occupant = last.0 as u32 + FIRST_PAGE;
        }
        true
    }

    /// Adds `page` to `slot`; returns whether others were there already.
    #[inline]
    fn enter(&mut self, slot: SlotNo, page: PageNo) -> bool {
        let occupant = &mut self.reverse[slot.index()];
        let alone = *occupant == DEAD;
        match *occupant {
            DEAD => *occupant = page.0 as u32 + FIRST_PAGE,
            SHARED => self.references.add(slot, page),
            RECORD => debug_assert!(false, "{slot:?} is taken by a record"),
            first => {
                *occupant = SHARED;
                self.references.add(slot, PageNo(u64::from(first - FIRST_PAGE)));
                self.references.add(slot, page);
            }
        }
        !alone
    }

    /// The live content of `slot`.
    #[inline]
    pub fn occupant(&self, slot: SlotNo) -> Occupant {
        match self.reverse[slot.index()] {
            DEAD => Occupant::Dead,
            RECORD => Occupant::Record,
            SHARED => Occupant::Shared,
            page => Occupant::Page(PageNo(u64::from(page - FIRST_PAGE))),
        }
    }

    /// The pages whose content is in `slot`; for a shared one, oldest first.
    pub fn pages_of(&self, slot: SlotNo) -> impl Iterator<Item = PageNo> + '_ {
        let occupant = self.occupant(slot);
        let alone = match occupant {
            Occupant::Page(page) => Some(page),
            _ => None,
        };
        let shared = (occupant == Occupant::Shared).then(|| self.references.of(slot));
        alone.into_iter().chain(shared.into_iter().flatten())
    }

    /// Whether `page` with `entry` can be in `slot` with the pages there: all pages of a slot have
    /// the same content, which was written for at most one of them.
    pub fn fits(&self, page: PageNo, entry: &MapEntry, slot: SlotNo) -> bool {
        let content = |page, entry: &MapEntry| self.checksum_when_shared(page, entry);
        let other = match self.occupant(slot) {
            Occupant::Dead => return true,
            Occupant::Record => return false,
            _ => self.pages_of(slot).next(),
        };
        other.is_none_or(|other| content(other, &self.get(other)) == content(page, entry))
    }

    /// The reference lists of shared slots.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Notes that `slot` holds a record in force, or no longer does.
    pub fn set_record(&mut self, slot: SlotNo, in_force: bool) {
        self.reverse[slot.index()] = if in_force { RECORD } else { DEAD };
    }

    /// Number of logical pages that hold content.
    pub fn mapped_pages(&self) -> u64 {
        self.counts[0]
    }

    /// Number of those whose content the medium lost.
    pub fn lost_pages(&self) -> u64 {
        self.counts[1]
    }

    /// Counts the pages of a cache that have a home: those with content, those of them whose content is lost, and the
    /// trimmed ones.
    pub fn at_most_dirty(&self) -> [u64; 3] {
        std::array::from_fn(|at| self.counts[at] - self.staging_counts[at])
    }

    /// Whether `slot` holds a clean page; false if it holds several pages.
    pub fn is_clean_slot(&self, slot: SlotNo) -> bool {
        match self.occupant(slot) {
            Occupant::Page(page) => self.get(page).clean,
            Occupant::Shared | Occupant::Record | Occupant::Dead => false,
        }
    }

    /// Panics if a count does not match the entries. For tests.
    pub fn validate(&self) {
        let count = |entries: &[Packed]| {
            let mut found = [0; 3];
            for packed in entries {
                let entry = unpack(packed, 0);
                found.iter_mut().zip(counted(&entry)).for_each(|(all, one)| *all += one);
            }
            found
        };
        assert_eq!(count(&self.forward), self.counts, "mapped, lost and trimmed pages");
        let staging = &self.forward[self.staging_from as usize..];
        assert_eq!(count(staging), self.staging_counts, "mapped, lost and trimmed staging pages");
    }

    /// Bytes of memory that the tables occupy.
    pub fn memory_bytes(&self) -> u64 {
        (self.forward.len() * size_of::<Packed>()
            + self.checksums.len() * 4
            + self.reverse.len() * 4) as u64
            + self.remapped.memory_bytes()
            + self.references.memory_bytes()
    }
}

/// The counts for a page with `entry`, 0 or 1 each: it has content, the content is lost, it was trimmed.
#[inline]
fn counted(entry: &MapEntry) -> [u64; 3] {
    let is_here = matches!(entry.place, Place::At(_) | Place::Lost);
    let is_trimmed = entry.place == Place::Unmapped && entry.version > Version::NEVER;
    [is_here, entry.place == Place::Lost, is_trimmed].map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::encoding::{Kind, Line};
    use crate::map::packed::VERSION_END;
    use tantalum_base::Rng;

    fn random_entry(rng: &mut Rng, slots: u64) -> MapEntry {
        let slot = SlotNo(rng.below(slots) as u32);
        let place = match rng.below(5) {
            0 => Place::Unmapped,
            1 => Place::Lost,
            2 => Place::Home,
            _ => Place::At(slot),
        };
        let remapped = place == Place::At(slot) && rng.chance(0.3);
        let version = Version(rng.below(VERSION_END));
        let clean = place == Place::At(slot) && rng.chance(0.3);
        MapEntry { version, place, remapped, clean, checksum: rng.below(1 << 32) as u32 }
    }

    #[test]
    fn entries_come_back_from_ten_bytes() {
        assert_eq!(size_of::<Packed>(), 10);
        let mut rng = Rng::split(3, "map");
        let (mut with, mut without) =
            (Mapping::new(8, 1 << 20, true), Mapping::new(8, 1 << 20, false));
        for round in 0..2000 {
            let page = PageNo(round % 8);
            let entry = random_entry(&mut rng, 1 << 20);
            with.set(page, entry);
            without.set(page, entry);
            assert_eq!(with.get(page), entry);
            let kept = if entry.remapped { entry.checksum } else { 0 };
            assert_eq!(without.get(page), MapEntry { checksum: kept, ..entry });
            let line = entry.to_line(page);
            let slot_checksum =
                if line.kind as u8 <= 1 || line.kind == Kind::Clean { entry.checksum } else { 0 };
            let read = MapEntry::from_line(&Line { checksum: slot_checksum, ..line });
            assert_eq!(read, Some(MapEntry { checksum: slot_checksum, ..entry }));
        }
    }

    #[test]
    #[should_panic(expected = "is beyond what the map can hold")]
    fn a_version_that_does_not_fit_is_refused() {
        Mapping::new(1, 1, false).set(PageNo(0), MapEntry::trimmed(Version(VERSION_END)));
    }

    #[test]
    fn pages_of_one_slot_have_the_same_content() {
        let at = |version, remapped, checksum| {
            let place = Place::At(SlotNo(0));
            MapEntry { version: Version(version), place, remapped, clean: false, checksum }
        };
        let fits = |map: &Mapping, page, entry| map.fits(PageNo(page), &entry, SlotNo(0));
        let mut spares = Mapping::new(4, 4, false);
        assert!(fits(&spares, 0, at(1, false, 0)));
        spares.set(PageNo(0), at(1, false, 0));
        let of_0 = origin(PageNo(0), Version(1));
        assert!(fits(&spares, 1, at(2, true, of_0)));
        assert!(!fits(&spares, 1, at(2, true, of_0 ^ 1)));
        assert!(!fits(&spares, 1, at(2, false, 0)));
        spares.set(PageNo(1), at(2, true, of_0));
        spares.set(PageNo(0), MapEntry::trimmed(Version(3)));
        assert!(fits(&spares, 0, at(1, false, 0)));
        assert!(!fits(&spares, 2, at(1, false, 0)));
        let mut checksums = Mapping::new(4, 4, true);
        checksums.set(PageNo(0), at(1, false, 7));
        assert!(fits(&checksums, 1, at(2, true, 7)));
        assert!(!fits(&checksums, 1, at(2, true, 8)));
    }

    #[test]
    fn pages_that_took_nothing_cost_nothing_more() {
        let mut map = Mapping::new(1000, 2000, false);
        let bytes = map.memory_bytes();
        let place = Place::At(SlotNo(3));
        let own = MapEntry { version: Version(1), place, checksum: 9, ..MapEntry::default() };
        map.set(PageNo(7), own);
        assert_eq!((map.memory_bytes(), bytes), (bytes, 1000 * 10 + 2000 * 4));
        map.set(PageNo(8), MapEntry { version: Version(2), remapped: true, ..own });
        assert!(map.memory_bytes() > bytes);
    }
}
