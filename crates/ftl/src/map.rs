//! Where each logical page is, and which logical pages each slot holds.
use tantalum_base::{PageNo, Payload, SlotNo, Version};
use tantalum_media::Spare;

use crate::entries::{Kind, Line};
use crate::sharers::Sharers;
use crate::taken::{Taken, origin};

/// What the FTL knows of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// Version of the last change: of the content, or of the trim that removed it.
    pub version: Version,
    /// Where the content is.
    pub place: Place,
    /// The content was written for another page, from which this one took it: the slot names that
    /// page and its version.
    pub taken: bool,
    /// Checksum of the content. Where the medium keeps that in the slot, the [`origin`] that the slot
    /// names of a page that took its content; otherwise 0.
    pub checksum: u32,
}

impl Entry {
    /// Nothing, since the change `version`.
    pub fn trimmed(version: Version) -> Entry {
        Entry { version, place: Place::Unmapped, ..Entry::default() }
    }

    /// Whether `content` is what `page` holds, as this entry says. The `spare` that was read with it
    /// names what it was written for, and must name what is known of the slot; where the medium has
    /// none, the checksum must tell.
    pub fn holds<P: Payload>(&self, page: PageNo, content: &P, spare: Option<&Spare>) -> bool {
        let Some(spare) = spare else { return content.checksum() == self.checksum };
        let named = match self.taken {
            true => origin(spare.page, spare.version) == self.checksum,
            false => (spare.page, spare.version) == (page, self.version),
        };
        spare.kind.is_page() && named && content.checksum() == spare.checksum
    }
}

impl Entry {
    /// The entry of `page`, to be written down.
    pub fn to_line(self, page: PageNo) -> Line {
        let (kind, place) = match self.place {
            Place::At(slot) if self.taken => (Kind::Taken, slot.0),
            Place::At(slot) => (Kind::Own, slot.0),
            Place::Unmapped => (Kind::Unmapped, 0),
            Place::Lost => (Kind::Lost, 0),
        };
        let (version, checksum) = (self.version.0, self.checksum);
        Line { kind, page: page.0 as u32, version, place, checksum }
    }

    /// What was written down; `None` where that is a trim.
    pub fn from_line(line: &Line) -> Option<Entry> {
        let slot = Place::At(SlotNo(line.place));
        let (place, taken) = match line.kind {
            Kind::Own => (slot, false),
            Kind::Taken => (slot, true),
            Kind::Unmapped => (Place::Unmapped, false),
            Kind::Lost => (Place::Lost, false),
            Kind::Trim => return None,
        };
        Some(Entry { version: Version(line.version), place, taken, checksum: line.checksum })
    }
}

/// Where a page's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// Nowhere: never written, or trimmed.
    #[default]
    Unmapped,
    /// In this slot.
    At(SlotNo),
    /// The medium lost it; reading is an error until it is written or trimmed.
    Lost,
}

const UNMAPPED: u32 = u32::MAX;
const LOST: u32 = u32::MAX - 1;

impl Place {
    /// The place as 32 bits, as kept in memory and in checkpoints.
    pub fn to_bits(self) -> u32 {
        match self {
            Place::Unmapped => UNMAPPED,
            Place::Lost => LOST,
            Place::At(slot) => slot.0,
        }
    }

    /// The slot, where it is in one.
    pub fn slot(self) -> Option<SlotNo> {
        match self {
            Place::At(slot) => Some(slot),
            Place::Unmapped | Place::Lost => None,
        }
    }

    /// The place that `bits` stand for.
    pub fn from_bits(bits: u32) -> Self {
        match bits {
            UNMAPPED => Place::Unmapped,
            LOST => Place::Lost,
            slot => Place::At(SlotNo(slot)),
        }
    }
}

/// Versions stay below this: 2^46 changes of 4 KiB are 288 exabytes.
const VERSION_END: u64 = 1 << 46;
/// In the upper part of a version: the content was taken from another page.
const TAKEN: u16 = 1 << 15;

/// Version and place of a page in 10 bytes: the place with all bits turned, version, and in the top
/// bit whether the content was taken. A page that was never written is all zero, so that the
/// table of a large device takes memory only where it is used.
type Packed = [u16; 5];

#[inline]
fn pack(entry: &Entry) -> Packed {
    let version = entry.version.0;
    assert!(version < VERSION_END, "version {version} is beyond what the map can hold");
    let taken = if entry.taken { TAKEN } else { 0 };
    let place = !entry.place.to_bits();
    [
        place as u16,
        (place >> 16) as u16,
        version as u16,
        (version >> 16) as u16,
        (version >> 32) as u16 | taken,
    ]
}

/// The place, as [`Place::to_bits`] has it.
#[inline]
fn place_of(packed: &Packed) -> u32 {
    !(u32::from(packed[0]) | u32::from(packed[1]) << 16)
}

#[inline]
fn is_taken(packed: &Packed) -> bool {
    packed[4] & TAKEN != 0
}

#[inline]
fn unpack(packed: &Packed, checksum: u32) -> Entry {
    let high = u64::from(packed[4] & !TAKEN);
    let low = u64::from(packed[2]) | u64::from(packed[3]) << 16;
    Entry {
        version: Version(high << 32 | low),
        place: Place::from_bits(place_of(packed)),
        taken: is_taken(packed),
        checksum,
    }
}

/// Pages of which one mark tells whether any was ever written.
const MARKED_PAGES: usize = 4096;

/// Logical to physical and back. 10 bytes a logical page and 4 a slot, and what slots of several
/// pages take besides; 4 a logical page more where the medium does not keep checksums itself, up to as
/// much for pages that took their content where it does.
pub struct Mapping {
    forward: Vec<Packed>,
    // Whether any of so many pages was ever written.
    written: Vec<bool>,
    // Pages that hold content, those that the medium lost among them, and these alone.
    mapped: u64,
    lost: u64,
    // A checksum a page; none where the medium keeps them.
    checksums: Vec<u32>,
    // Instead of these, of the pages that took their content.
    taken: Taken,
    // The one page of each slot, or what is said below.
    reverse: Vec<u32>,
    sharers: Sharers,
}

/// What a change of a page's place did to the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Change {
    /// The slot that the page left, if any.
    pub left: Option<SlotNo>,
    /// Other pages are still in the slot that it left.
    pub left_alive: bool,
    /// The slot that it entered already held another page.
    pub joined: bool,
}

/// In `reverse`: the slot holds no live content.
const DEAD: u32 = 0;
/// In `reverse`: the slot holds a record that the next recovery needs.
const RECORD: u32 = 1;
/// In `reverse`: the slot holds the content of several pages, which `sharers` knows.
const SHARED: u32 = 2;
/// In `reverse`: the slot holds the content of page 0; of other pages as much higher.
const FIRST_PAGE: u32 = 3;

/// What is live in a slot.
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
    /// `pages` unmapped pages over `slots` dead slots, with their `checksums` or without.
    pub fn new(pages: u64, slots: u64, checksums: bool) -> Self {
        assert!(slots < u64::from(LOST), "slot numbers have 32 bits");
        assert!(
            pages < u64::from(u32::MAX - FIRST_PAGE),
            "page numbers have 32 bits in the reverse map"
        );
        Mapping {
            forward: vec![[0; 5]; pages as usize],
            written: vec![false; pages.div_ceil(MARKED_PAGES as u64) as usize],
            mapped: 0,
            lost: 0,
            checksums: vec![0; if checksums { pages as usize } else { 0 }],
            taken: Taken::new(pages),
            reverse: vec![DEAD; slots as usize],
            sharers: Sharers::default(),
        }
    }

    /// Number of logical pages.
    pub fn pages(&self) -> u64 {
        self.forward.len() as u64
    }

    /// What is known of `page`.
    #[inline]
    pub fn get(&self, page: PageNo) -> Entry {
        let packed = self.forward[page.index()];
        let checksum = match self.checksums.get(page.index()) {
            Some(checksum) => *checksum,
            None if is_taken(&packed) => self.taken.get(page),
            None => 0,
        };
        unpack(&packed, checksum)
    }

    /// Whether `page` took its content, and the table does not say what its slot names: no
    /// [`get`](Self::get) of it is possible.
    pub fn lacks_origin(&self, page: PageNo) -> bool {
        !self.has_checksums() && is_taken(&self.forward[page.index()]) && !self.taken.knows(page)
    }

    /// Entries of that table, where that can be told, and pages that should have one.
    pub fn origins(&self) -> (Option<u64>, u64) {
        if self.has_checksums() {
            return (None, 0);
        }
        let marked = self.known_pages().filter(|page| is_taken(&self.forward[page.index()]));
        (self.taken.entries(), marked.count() as u64)
    }

    /// Whether `page` is in a slot with another page that has, by what is known of it, another
    /// content; that page.
    pub fn contradicts(&self, page: PageNo, slot: SlotNo) -> Option<PageNo> {
        let other = self.pages_of(slot).next().filter(|other| *other != page)?;
        let content = |page| self.checksum_to_take(page, &self.get(page));
        (content(other) != content(page)).then_some(other)
    }

    /// Takes the entry of `page` out of that table, and nothing else.
    #[cfg(test)]
    pub fn forget_origin(&mut self, page: PageNo) {
        self.taken.remove(page);
    }

    /// Whether it keeps checksums.
    pub fn has_checksums(&self) -> bool {
        !self.checksums.is_empty()
    }

    /// What a page keeps as its checksum that takes the content of `page`, of which `entry` is known.
    pub fn checksum_to_take(&self, page: PageNo, entry: &Entry) -> u32 {
        match self.has_checksums() || entry.taken {
            true => entry.checksum,
            false => origin(page, entry.version),
        }
    }

    /// Brings what is known of `pages`, and of the slots they lie in, into the processor's cache.
    /// Entries of random pages are far apart in a table of many megabytes; here their loads
    /// overlap, while whoever changes them one by one would wait for each.
    pub fn fetch(&self, pages: impl Iterator<Item = PageNo> + Clone) {
        let place = |page: PageNo| place_of(&self.forward[page.index()]);
        let places = pages.clone().fold(0, |all, page| all ^ place(page));
        let occupant = |page| self.reverse.get(place(page) as usize).copied().unwrap_or(DEAD);
        let occupants = pages.fold(0, |all, page| all ^ occupant(page));
        std::hint::black_box((places, occupants));
    }

    /// The same of what `slots` hold.
    pub fn fetch_slots(&self, slots: impl Iterator<Item = SlotNo>) {
        let occupant = |slot: SlotNo| self.reverse.get(slot.index()).copied().unwrap_or(DEAD);
        std::hint::black_box(slots.fold(0, |all, slot| all ^ occupant(slot)));
    }

    /// Puts `entry` for `page` in force; what became of the slots.
    #[inline]
    pub fn set(&mut self, page: PageNo, entry: Entry) -> Change {
        let old = std::mem::replace(&mut self.forward[page.index()], pack(&entry));
        let old_place = Place::from_bits(place_of(&old));
        self.count(old_place, entry.place);
        self.written[page.index() / MARKED_PAGES] = true;
        if let Some(checksum) = self.checksums.get_mut(page.index()) {
            *checksum = entry.checksum;
        } else if entry.taken {
            self.taken.insert(page, entry.checksum);
        } else if is_taken(&old) {
            self.taken.remove(page);
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

    #[inline]
    fn count(&mut self, old: Place, new: Place) {
        self.mapped -= u64::from(old != Place::Unmapped);
        self.lost -= u64::from(old == Place::Lost);
        self.mapped += u64::from(new != Place::Unmapped);
        self.lost += u64::from(new == Place::Lost);
    }

    /// The first page from `page` on that was ever written, or trimmed.
    pub fn next_written(&self, page: u64) -> Option<u64> {
        self.next_where(page, |[.., low, middle, high]| {
            *low != 0 || *middle != 0 || high & !TAKEN != 0
        })
    }

    /// All pages of which anything is known: what their number costs, and not what the device's does.
    pub fn known_pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        let next = |page: u64| self.next_known(page);
        std::iter::successors(next(0), move |page| next(page + 1)).map(PageNo)
    }

    /// The first page from `page` on of which anything is known.
    pub fn next_known(&self, page: u64) -> Option<u64> {
        self.next_where(page, |packed| *packed != Packed::default())
    }

    /// The first page from `page` on with a `wanted` entry, which that of a page never written is not.
    fn next_where(&self, page: u64, wanted: impl Fn(&Packed) -> bool) -> Option<u64> {
        let mut at = page as usize;
        while at < self.forward.len() {
            let end = (at / MARKED_PAGES + 1) * MARKED_PAGES;
            let end = end.min(self.forward.len());
            if self.written[at / MARKED_PAGES]
                && let Some(found) = self.forward[at..end].iter().position(&wanted)
            {
                return Some((at + found) as u64);
            }
            at = end;
        }
        None
    }

    /// Takes `page` out of `slot`; whether others are still there.
    #[inline]
    fn leave(&mut self, slot: SlotNo, page: PageNo) -> bool {
        let occupant = &mut self.reverse[slot.index()];
        if *occupant != SHARED {
            *occupant = DEAD;
            return false;
        }
        if let Some(last) = self.sharers.remove(slot, page) {
            *occupant = last.0 as u32 + FIRST_PAGE;
        }
        true
    }

    /// Puts `page` into `slot`; whether others are there already.
    #[inline]
    fn enter(&mut self, slot: SlotNo, page: PageNo) -> bool {
        let occupant = &mut self.reverse[slot.index()];
        let alone = *occupant == DEAD;
        match *occupant {
            DEAD => *occupant = page.0 as u32 + FIRST_PAGE,
            SHARED => self.sharers.add(slot, page),
            RECORD => debug_assert!(false, "{slot:?} is taken by a record"),
            first => {
                *occupant = SHARED;
                self.sharers.add(slot, PageNo(u64::from(first - FIRST_PAGE)));
                self.sharers.add(slot, page);
            }
        }
        !alone
    }

    /// What is live in `slot`.
    #[inline]
    pub fn occupant(&self, slot: SlotNo) -> Occupant {
        match self.reverse[slot.index()] {
            DEAD => Occupant::Dead,
            RECORD => Occupant::Record,
            SHARED => Occupant::Shared,
            page => Occupant::Page(PageNo(u64::from(page - FIRST_PAGE))),
        }
    }

    /// The pages whose content is in `slot`; for a shared one, in the order in which they came.
    pub fn pages_of(&self, slot: SlotNo) -> impl Iterator<Item = PageNo> + '_ {
        let occupant = self.occupant(slot);
        let alone = match occupant {
            Occupant::Page(page) => Some(page),
            _ => None,
        };
        let shared = (occupant == Occupant::Shared).then(|| self.sharers.of(slot));
        alone.into_iter().chain(shared.into_iter().flatten())
    }

    /// Whether `page` can be in `slot` as `entry` says, beside those that are there: several pages
    /// of one slot have the same content, which was written for one of them at the most.
    pub fn fits(&self, page: PageNo, entry: &Entry, slot: SlotNo) -> bool {
        let content = |page, entry: &Entry| self.checksum_to_take(page, entry);
        let other = match self.occupant(slot) {
            Occupant::Dead => return true,
            Occupant::Record => return false,
            _ => self.pages_of(slot).next(),
        };
        other.is_none_or(|other| content(other, &self.get(other)) == content(page, entry))
    }

    /// The table of slots of several pages.
    pub fn sharers(&self) -> &Sharers {
        &self.sharers
    }

    /// Marks that `slot` holds a record in force, or no longer does.
    pub fn set_record(&mut self, slot: SlotNo, in_force: bool) {
        self.reverse[slot.index()] = if in_force { RECORD } else { DEAD };
    }

    /// Number of logical pages that hold content.
    pub fn mapped_pages(&self) -> u64 {
        self.mapped
    }

    /// Of these, pages of which the medium lost the content.
    pub fn lost_pages(&self) -> u64 {
        self.lost
    }

    /// Bytes of memory that the tables take.
    pub fn memory_bytes(&self) -> u64 {
        (self.forward.len() * size_of::<Packed>()
            + self.checksums.len() * 4
            + self.reverse.len() * 4) as u64
            + self.taken.memory_bytes()
            + self.sharers.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::{Rng, Stamp};
    use tantalum_media::SlotKind;

    fn random_entry(rng: &mut Rng, slots: u64) -> Entry {
        let slot = SlotNo(rng.below(slots) as u32);
        let place = match rng.below(4) {
            0 => Place::Unmapped,
            1 => Place::Lost,
            _ => Place::At(slot),
        };
        let taken = place == Place::At(slot) && rng.chance(0.3);
        let version = Version(rng.below(VERSION_END));
        Entry { version, place, taken, checksum: rng.below(1 << 32) as u32 }
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
            let kept = if entry.taken { entry.checksum } else { 0 };
            assert_eq!(without.get(page), Entry { checksum: kept, ..entry });
            let line = entry.to_line(page);
            let slot_checksum = if line.kind as u8 <= 1 { entry.checksum } else { 0 };
            let read = Entry::from_line(&Line { checksum: slot_checksum, ..line });
            assert_eq!(read, Some(Entry { checksum: slot_checksum, ..entry }));
        }
    }

    #[test]
    fn pages_of_which_anything_is_known_are_found_wherever_they_are() {
        let pages = 5 * MARKED_PAGES as u64 + 7;
        let mut map = Mapping::new(pages, 16, true);
        assert_eq!((map.known_pages().next(), map.next_written(0)), (None, None));
        let marked = MARKED_PAGES as u64;
        let known = [0, 1, marked - 1, marked, 4 * marked - 1, pages - 2, pages - 1];
        for page in known {
            // Nothing but that it is lost: also of such a page something is known.
            let lost = Entry { place: Place::Lost, ..Entry::default() };
            let entry = if page == 1 { lost } else { Entry::trimmed(Version(page + 1)) };
            map.set(PageNo(page), entry);
        }
        assert!(map.known_pages().eq(known.map(PageNo)));
        let written = |page| map.next_written(page);
        assert_eq!((written(0), written(1), written(pages)), (Some(0), Some(marked - 1), None));
    }

    #[test]
    #[should_panic(expected = "is beyond what the map can hold")]
    fn a_version_that_does_not_fit_is_refused() {
        Mapping::new(1, 1, false).set(PageNo(0), Entry::trimmed(Version(VERSION_END)));
    }

    #[test]
    fn content_is_checked_against_spare_or_checksum() {
        let (page, version) = (PageNo(5), Version(9));
        let content = Stamp::new(page, 2);
        let checksum = content.checksum();
        let place = Place::At(SlotNo(1));
        let own = Entry { version, place, taken: false, checksum: 0 };
        let taken = Entry { taken: true, checksum: origin(PageNo(6), version), ..own };
        let spare = Spare { kind: SlotKind::Data, page, version, checksum };
        assert!(own.holds(page, &content, Some(&spare)));
        assert!(!own.holds(page, &content.torn(), Some(&spare)), "damaged");
        let old = Spare { version: Version(8), ..spare };
        let other = Spare { page: PageNo(6), ..spare };
        let meta = Spare { kind: SlotKind::Record, ..spare };
        for (wrong, what) in [(old, "version"), (other, "page"), (meta, "kind")] {
            assert!(!own.holds(page, &content, Some(&wrong)), "another {what}");
        }
        assert!(taken.holds(page, &content, Some(&other)));
        assert!(!taken.holds(page, &content.torn(), Some(&other)), "damaged");
        assert!(!taken.holds(page, &content, Some(&Spare { kind: SlotKind::Record, ..other })));
        let old = Spare { version: Version(8), ..other };
        for (wrong, what) in [(old, "version"), (spare, "page")] {
            assert!(!taken.holds(page, &content, Some(&wrong)), "another {what}");
        }
        assert!(Entry { checksum, ..own }.holds(page, &content, None));
        assert!(!own.holds(page, &content, None), "another checksum");
    }

    #[test]
    fn pages_of_one_slot_have_the_same_content() {
        let at = |version, taken, checksum| {
            let place = Place::At(SlotNo(0));
            Entry { version: Version(version), place, taken, checksum }
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
        spares.set(PageNo(0), Entry::trimmed(Version(3)));
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
        let own = Entry { version: Version(1), place, taken: false, checksum: 9 };
        map.set(PageNo(7), own);
        assert_eq!((map.memory_bytes(), bytes), (bytes, 1000 * 10 + 2000 * 4));
        map.set(PageNo(8), Entry { version: Version(2), taken: true, ..own });
        assert!(map.memory_bytes() > bytes);
    }
}
