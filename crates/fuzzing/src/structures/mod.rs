//! The structures of a volume's stores, found by name, with the meaning of each of their numbers (docs/format.md).
//!
//! ```text
//! log       superblocks, anchors, headers of appends and their spares, records, checkpoints, delta pages, dumps
//! entries   the packed entries of the mapping
//! journal   heads, index pages, records of a claim, marks of a home; the claim on a home
//! change    an input: which numbers become which, and the checksums above them
//! ```
mod change;
mod entries;
mod journal;
mod log;

use entries::Packed;
use tantalum_base::PAGE_BYTES;
use tantalum_base::checksum::crc32c;
use tantalum_volume::superblock::{FIRST_ZONE_BYTE, Superblock};

pub(crate) use change::{Changed, Says, seeds};
pub(crate) use log::{SPARE_BYTES, SPARES_AT, repair_page as seal};

pub(crate) const CHECKSUM_AT: usize = PAGE_BYTES - 4;

/// The meaning of a number, from which its limit follows, and what a change of it excuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// A page whose content is given beside it.
    Page,
    /// A page that loses its content, or whose home has it.
    Emptied,
    /// A number of such pages.
    EmptiedPages,
    /// A slot of the flash.
    Slot,
    /// The place of a content among others that are listed with their checksums.
    Place,
    /// Which of the contents beside it belongs to a page.
    Which,
    Zone,
    /// A slot within its zone.
    Offset,
    Version,
    Epoch,
    /// The number of a checkpoint, of an era, of an anchor, or of a writing.
    Sequence,
    /// A number of things that are listed.
    Count,
    Stream,
    /// A small number that stands for a state.
    State,
    /// The kind of a content: a page of a host, or one of the device's own.
    Kind,
    /// The kind of an entry, from which follows whether there is content.
    EntryKind,
    Checksum,
    Identity,
    /// Bytes or pages of a store.
    Size,
    Time,
}

/// A number of a structure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    /// Its first byte in the store.
    pub at: usize,
    /// Its bytes: 1, 2, 4 or 8.
    pub width: usize,
    pub means: Means,
}

/// The checksums that cover a structure.
#[derive(Clone, Debug)]
pub(crate) enum Sealed {
    /// The last four bytes of its page.
    Page,
    /// The spare of its page, at this byte, and the header that has the spare.
    Spare { spare: usize, header: usize },
    /// The last four bytes of its page, and these heads, which cover the index `pages`.
    Heads { heads: Vec<usize>, pages: Vec<usize> },
    /// The last line of the text of a claim, with which these ranges of a home are XORed.
    Text { ranges: Vec<std::ops::Range<usize>> },
}

/// Entries of equal length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    pub first: usize,
    pub bytes: usize,
    pub count: usize,
}

/// A structure in one of the stores.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    pub name: &'static str,
    /// The store: flash, journal, home.
    pub store: usize,
    /// First byte of its page.
    pub page: usize,
    /// Among structures of one name, the newest has the highest.
    pub age: u64,
    pub sealed: Sealed,
    pub fields: Vec<Field>,
    pub entries: Option<Entries>,
    pub packed: Option<Packed>,
}

/// The limits of the numbers that one volume's stores may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub pages: u64,
    pub zones: u64,
    pub slots_per_zone: u64,
    /// Pages of a zone in the image.
    pub image_slots: usize,
    /// First byte of the first zone.
    pub zones_byte: usize,
    /// Whether a version, too, tells which content a page has: in a volume whose large transactions are staged, a page behind
    /// the logical ones has contents for several of them.
    pub versions_tell: bool,
    /// Whether each entry of the mapping has a checksum, as on files.
    pub has_checksums: bool,
}

impl Limits {
    /// Those of a volume in a file.
    pub fn of_volume(superblock: &Superblock, versions_tell: bool) -> Limits {
        Limits {
            pages: superblock.pages + superblock.staging_pages(),
            zones: superblock.zones.into(),
            slots_per_zone: superblock.slots_per_zone.into(),
            image_slots: superblock.slots_per_zone as usize,
            zones_byte: FIRST_ZONE_BYTE as usize,
            versions_tell,
            has_checksums: true,
        }
    }
}

/// The images of a volume's stores, and their structures.
pub(crate) struct Scene {
    pub stores: Vec<Vec<u8>>,
    pub limits: Limits,
    /// By name, the newest first.
    pub named: Vec<(&'static str, Vec<Structure>)>,
}

impl Scene {
    /// The structures in `stores`: the flash, the journal if there is one, and the home.
    pub fn new(stores: Vec<Vec<u8>>, limits: Limits) -> Self {
        let mut found = log::structures(&stores[0], &limits);
        if let [_, journal, home] = &stores[..] {
            found.extend(journal::structures(journal, home));
        }
        let mut named: Vec<(&'static str, Vec<Structure>)> = Vec::new();
        for structure in found {
            match named.iter_mut().find(|(name, _)| *name == structure.name) {
                Some((_, same)) => same.push(structure),
                None => named.push((structure.name, vec![structure])),
            }
        }
        named.sort_by_key(|(name, _)| *name);
        for (_, same) in &mut named {
            same.sort_by_key(|structure| std::cmp::Reverse((structure.age, structure.page)));
        }
        Scene { stores, limits, named }
    }

    /// The names of the structures that occur.
    #[cfg(test)]
    pub fn names(&self) -> Vec<&'static str> {
        self.named.iter().map(|(name, _)| *name).collect()
    }
}

/// The number of `width` bytes at `at`.
pub(crate) fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut number = [0; 8];
    number[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(number)
}

/// Writes `value` into the `width` bytes at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Whether the last four bytes of the page at `at` are its checksum.
fn is_sealed(bytes: &[u8], at: usize) -> bool {
    let page = &bytes[at..at + PAGE_BYTES];
    number(page, CHECKSUM_AT, 4) == u64::from(crc32c(&page[..CHECKSUM_AT]))
}

/// The fields of a page, or of an entry, that begins at byte `from`: name, byte, width, meaning.
fn fields(from: usize, layout: &[(&'static str, usize, usize, Means)]) -> Vec<Field> {
    let field = |&(name, at, width, means): &_| Field { name, at: from + at, width, means };
    layout.iter().map(field).collect()
}
