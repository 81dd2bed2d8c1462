//! Where each logical page is, and which logical pages each slot holds.
use tantalum_base::{PageNo, SlotNo, Version};

use crate::sharers::Sharers;

/// What the FTL knows of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// Version of the last change: of the content, or of the trim that removed it.
    pub version: Version,
    /// Where the content is.
    pub place: Place,
    /// Checksum of the content.
    pub checksum: u32,
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

    /// The place that `bits` stand for.
    pub fn from_bits(bits: u32) -> Self {
        match bits {
            UNMAPPED => Place::Unmapped,
            LOST => Place::Lost,
            slot => Place::At(SlotNo(slot)),
        }
    }
}

/// 16 bytes a page, so that one page touches one cache line.
#[derive(Clone, Copy)]
struct Packed {
    version: u64,
    place: u32,
    checksum: u32,
}

impl Packed {
    #[inline]
    fn unpack(self) -> Entry {
        Entry {
            version: Version(self.version),
            place: Place::from_bits(self.place),
            checksum: self.checksum,
        }
    }
}

/// Logical to physical and back. 16 bytes a logical page and 4 a slot, and what slots of several
/// pages take besides.
pub struct Mapping {
    forward: Vec<Packed>,
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
const DEAD: u32 = u32::MAX;
/// In `reverse`: the slot holds a record that the next recovery needs.
const RECORD: u32 = u32::MAX - 1;
/// In `reverse`: the slot holds the content of several pages, which `sharers` knows.
const SHARED: u32 = u32::MAX - 2;

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
    /// `pages` unmapped pages over `slots` dead slots.
    pub fn new(pages: u64, slots: u64) -> Self {
        assert!(slots < u64::from(LOST), "slot numbers have 32 bits");
        assert!(pages < u64::from(SHARED), "page numbers have 32 bits in the reverse map");
        Mapping {
            forward: vec![Packed { version: 0, place: UNMAPPED, checksum: 0 }; pages as usize],
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
        self.forward[page.index()].unpack()
    }

    /// What is known of the pages from `first` on, in order.
    #[inline]
    pub fn entries(&self, first: PageNo) -> impl Iterator<Item = Entry> + '_ {
        self.forward[first.index()..].iter().map(|packed| packed.unpack())
    }

    /// Brings what is known of `pages`, and of the slots they lie in, into the processor's cache.
    /// Entries of random pages are far apart in a table of many megabytes; here their loads
    /// overlap, while whoever changes them one by one would wait for each.
    pub fn fetch(&self, pages: impl Iterator<Item = PageNo> + Clone) {
        let place = |page: PageNo| self.forward[page.index()].place;
        let places = pages.clone().fold(0, |all, page| all ^ place(page));
        let occupant = |page| self.reverse.get(place(page) as usize).copied().unwrap_or(DEAD);
        let occupants = pages.fold(0, |all, page| all ^ occupant(page));
        std::hint::black_box((places, occupants));
    }

    /// Puts `entry` for `page` in force; what became of the slots.
    #[inline]
    pub fn set(&mut self, page: PageNo, entry: Entry) -> Change {
        let packed = Packed {
            version: entry.version.0,
            place: entry.place.to_bits(),
            checksum: entry.checksum,
        };
        let old = std::mem::replace(&mut self.forward[page.index()], packed);
        let mut change = Change::default();
        if let Place::At(slot) = Place::from_bits(old.place) {
            change.left = Some(slot);
            change.left_alive = self.leave(slot, page);
        }
        if let Place::At(slot) = entry.place {
            change.joined = self.enter(slot, page);
        }
        change
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
            *occupant = last.0 as u32;
        }
        true
    }

    /// Puts `page` into `slot`; whether others are there already.
    #[inline]
    fn enter(&mut self, slot: SlotNo, page: PageNo) -> bool {
        let occupant = &mut self.reverse[slot.index()];
        let alone = *occupant == DEAD;
        match *occupant {
            DEAD => *occupant = page.0 as u32,
            SHARED => self.sharers.add(slot, page),
            RECORD => debug_assert!(false, "{slot:?} is taken by a record"),
            first => {
                *occupant = SHARED;
                self.sharers.add(slot, PageNo(u64::from(first)));
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
            page => Occupant::Page(PageNo(u64::from(page))),
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
        self.forward.iter().filter(|packed| packed.place != UNMAPPED).count() as u64
    }

    /// Bytes of memory that the tables take.
    pub fn memory_bytes(&self) -> u64 {
        (self.forward.len() * size_of::<Packed>() + self.reverse.len() * 4) as u64
            + self.sharers.memory_bytes()
    }
}
