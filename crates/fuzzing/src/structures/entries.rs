//! The packed entries of the mapping, read and written as docs/format.md describes them, by other code than the engine's.
use super::{number, put};
use tantalum_base::PAGE_BYTES;

/// What follows an entry's kind that has a checksum on any medium.
const REMAPPED: [u8; 2] = [1, 7];
const UNMAPPED: [u8; 4] = [2, 3, 4, 6];
const TRIM: u8 = 4;

/// Whether the next entry's place is expected by its page, or by its order alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Pages,
    Time,
}

/// Where the entries of a page are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// First byte of the entries in the page.
    pub first: usize,
    /// The byte of their number, which has four bytes.
    pub count_at: usize,
    pub order: Order,
}

/// An entry as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub kind: u8,
    pub page: u32,
    pub version: u64,
    /// The slot; of a trim its pages.
    pub place: u32,
    pub checksum: u32,
}

#[derive(Clone, Copy)]
struct Context {
    page: u32,
    version: u64,
    slot: u32,
}

/// The two contexts, and the last page.
struct Contexts {
    order: Order,
    last: u32,
    both: [Context; 2],
}

impl Contexts {
    /// Those at the start of the page with these bytes.
    fn new(packed: &Packed, page: &[u8]) -> Self {
        let first = if packed.order == Order::Pages { number(page, 20, 4) as u32 } else { 0 };
        let last = first.wrapping_sub(1);
        let context = Context { page: last, version: 0, slot: 0 };
        Contexts { order: packed.order, last, both: [context; 2] }
    }

    fn expected(&self, index: usize, page: u32) -> (u64, u32) {
        let context = self.both[index];
        let step = match self.order {
            Order::Pages => page.wrapping_sub(context.page),
            Order::Time => 1,
        };
        (context.version.wrapping_add(u64::from(step)), context.slot.wrapping_add(step))
    }

    fn advance(&mut self, index: usize, entry: &Entry) {
        let (_, expected) = self.expected(index, entry.page);
        let slot = if has_slot(entry.kind) { entry.place } else { expected };
        self.both[index] = Context { page: entry.page, version: entry.version, slot };
        self.last = entry.page;
    }
}

fn has_slot(kind: u8) -> bool {
    !UNMAPPED.contains(&kind)
}

fn has_checksum(kind: u8, checksums: bool) -> bool {
    REMAPPED.contains(&kind) || checksums && has_slot(kind)
}

fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The bytes of a page, read and written in order.
struct Bytes<'a> {
    page: &'a mut [u8],
    at: usize,
}

impl Bytes<'_> {
    fn take(&mut self, width: usize) -> Option<u64> {
        self.page.get(self.at..self.at + width)?;
        let read = number(self.page, self.at, width);
        self.at += width;
        Some(read)
    }

    fn give(&mut self, width: usize, value: u64) -> Option<()> {
        self.page.get(self.at..self.at + width)?;
        put(self.page, self.at, width, value);
        self.at += width;
        Some(())
    }
}

impl Packed {
    /// The entries of `page`, which each have a checksum if `checksums` and there is content; `None` if they are invalid.
    pub fn decode(&self, page: &[u8], checksums: bool) -> Option<Vec<Entry>> {
        let mut contexts = Contexts::new(self, page);
        let count = number(page, self.count_at, 4);
        let mut page = page.to_vec();
        let (mut bytes, mut run) = (Bytes { page: &mut page, at: self.first }, 0);
        let mut entries = Vec::new();
        while (entries.len() as u64) < count {
            let page = contexts.last.wrapping_add(1);
            let mut entry = Entry { page, ..Entry::default() };
            let tag = if run > 0 { 0x80 } else { bytes.take(1)? as u8 };
            let mut index = 0;
            if tag >= 0x80 {
                run = if run > 0 { run - 1 } else { tag - 0x80 };
                (entry.version, entry.place) = contexts.expected(0, page);
            } else {
                index = usize::from(tag >> 5 & 1);
                Self::one(&mut bytes, &contexts, tag, index, &mut entry)?;
            }
            contexts.advance(index, &entry);
            if has_checksum(entry.kind, checksums) {
                entry.checksum = bytes.take(4)? as u32;
            }
            entries.push(entry);
        }
        Some(entries)
    }

    fn one(
        bytes: &mut Bytes<'_>,
        contexts: &Contexts,
        tag: u8,
        index: usize,
        entry: &mut Entry,
    ) -> Option<()> {
        let mut version_bytes = usize::from(tag & 7);
        if version_bytes == 7 {
            let byte = bytes.take(1)? as u8;
            (entry.kind, version_bytes) = (byte & 15, usize::from(byte >> 4));
        }
        if tag >> 6 & 1 == 1 {
            entry.page = bytes.take(4)? as u32;
        }
        let (version, slot) = contexts.expected(index, entry.page);
        entry.version = version.wrapping_add_signed(signed(bytes.take(version_bytes)?));
        let place_bytes = [0, 1, 2, 4][usize::from(tag >> 3 & 3)];
        match entry.kind {
            TRIM => entry.place = bytes.take(4)? as u32,
            kind if has_slot(kind) => {
                let distance = signed(bytes.take(place_bytes)?);
                entry.place = slot.wrapping_add(distance as u32);
            }
            _ => {}
        }
        Some(())
    }

    /// Writes `entries`, none of them as part of a run; `None`, with `page` unspecified, if they do not fit.
    pub fn encode(&self, entries: &[Entry], page: &mut [u8], checksums: bool) -> Option<()> {
        let mut contexts = Contexts::new(self, page);
        page[self.first..PAGE_BYTES].fill(0);
        put(page, self.count_at, 4, entries.len() as u64);
        let mut bytes = Bytes { page, at: self.first };
        for entry in entries {
            let (version, slot) = contexts.expected(0, entry.page);
            let version = zigzag(entry.version.wrapping_sub(version) as i64);
            let place = match has_slot(entry.kind) {
                true => zigzag(i64::from(entry.place.wrapping_sub(slot) as i32)),
                false => 0,
            };
            let version_bytes = (64 - version.leading_zeros()).div_ceil(8) as usize;
            let class = [0, 1, 2, 3, 3][(64 - place.leading_zeros()).div_ceil(8) as usize];
            let is_given = entry.page != contexts.last.wrapping_add(1);
            let is_own = entry.kind == 0 && version_bytes < 7;
            let low = if is_own { version_bytes as u64 } else { 7 };
            bytes.give(1, low | class << 3 | u64::from(is_given) << 6)?;
            if !is_own {
                bytes.give(1, u64::from(entry.kind & 15) | (version_bytes as u64) << 4)?;
            }
            if is_given {
                bytes.give(4, u64::from(entry.page))?;
            }
            bytes.give(version_bytes, version)?;
            if entry.kind == TRIM {
                bytes.give(4, u64::from(entry.place))?;
            } else {
                bytes.give([0, 1, 2, 4][class as usize], place)?;
            }
            contexts.advance(0, entry);
            if has_checksum(entry.kind, checksums) {
                bytes.give(4, u64::from(entry.checksum))?;
            }
        }
        Some(())
    }
}
