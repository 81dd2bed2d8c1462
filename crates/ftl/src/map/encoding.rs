//! Entries of the map as bytes, as few as may be: in checkpoints and in delta pages.
//!
//! An entry is kept as its distance from what is expected behind one of two entries before it. Pages
//! that were written one after the other lie one behind the other, and then a run of them takes a
//! byte; two contexts, since what was written again lies scattered among what was not, and what
//! hosts write changes in turn with what cleaning relocates. `docs/format.md` has the bytes.
use tantalum_base::{PAGE_BYTES, PageBuf};

/// Bytes of an entry at the most: tag, kind, page, version, place, checksum.
pub const ENTRY_BYTES_MAX: usize = 1 + 1 + 4 + 6 + 4 + 4;
/// Of an entry behind that of the page before it.
pub const NEXT_ENTRY_BYTES_MAX: usize = ENTRY_BYTES_MAX - 4;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The content is in the slot, which names this page and version.
    Own = 0,
    /// The content is in the slot, which names another page it was written for.
    Remapped = 1,
    /// There is no content.
    Unmapped = 2,
    /// The medium lost the content.
    Lost = 3,
    /// This page and those behind it were trimmed.
    Trim = 4,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0 => Kind::Own,
            1 => Kind::Remapped,
            2 => Kind::Unmapped,
            3 => Kind::Lost,
            4 => Kind::Trim,
            _ => return None,
        })
    }

    fn has_slot(self) -> bool {
        matches!(self, Kind::Own | Kind::Remapped)
    }
}

/// An entry as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it says.
    pub kind: Kind,
    /// The page.
    pub page: u32,
    /// Its version, below 2^46.
    pub version: u64,
    /// The slot; of a trim the number of pages, otherwise 0.
    pub place: u32,
    /// Checksum of the content in the slot, where checksums are kept; otherwise of what the slot of
    /// a remapped page names.
    pub checksum: u32,
}

/// How the entries of a page follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By page, ascending: what is expected of a page lies as far behind as its number.
    Pages,
    /// As they changed: the next version and the next slot are expected, of any page.
    Time,
}

/// How a page of entries is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// How the entries follow each other.
    pub order: Order,
    /// The checksum is kept of each slot, not only of remapped pages.
    pub checksums: bool,
}

impl Style {
    fn has_checksum(self, kind: Kind) -> bool {
        kind == Kind::Remapped || self.checksums && kind.has_slot()
    }
}

// A tag: a run of entries as expected behind context 0, one less than there are...
const RUN: u8 = 0x80;
const RUN_MAX: u8 = 0xff;
// ...or bytes of the version's distance, class of the place's, and what else is given. With 7 bytes
// a byte follows that says kind and bytes.
const KIND_GIVEN: u8 = 7;
const PLACE_SHIFT: u8 = 3;
const CONTEXT: u8 = 1 << 5;
const PAGE_GIVEN: u8 = 1 << 6;
const VERSION_SHIFT: u8 = 4;
/// Bytes of a place's distance, by class.
const PLACE_BYTES: [u8; 4] = [0, 1, 2, 4];
/// Class of a place's distance, by bytes.
const PLACE_CLASS: [u8; 5] = [0, 1, 2, 3, 3];

/// How far an entry is from what is expected, and what that takes. Without branches: of entries
/// in no order none could be foretold.
#[derive(Clone, Copy)]
struct Distance {
    version: u64,
    place: u32,
    version_bytes: u8,
    place_class: u8,
}

impl Distance {
    #[inline]
    fn new(version: u64, place: u32) -> Self {
        // Distances both ways as numbers that are small where the distance is.
        let version = (version << 1) ^ ((version as i64 >> 63) as u64);
        let place = (place << 1) ^ ((place as i32 >> 31) as u32);
        let version_bytes = (64 - version.leading_zeros()).div_ceil(8) as u8;
        let place_bytes = (32 - place.leading_zeros()).div_ceil(8);
        let place_class = PLACE_CLASS[place_bytes as usize];
        Distance { version, place, version_bytes, place_class }
    }

    #[inline]
    fn bytes(&self) -> u8 {
        self.version_bytes + PLACE_BYTES[usize::from(self.place_class)]
    }
}

/// The distance that a number stands for.
fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The entry that others are measured from.
#[derive(Clone, Copy)]
struct Context {
    page: u32,
    version: u64,
    slot: u32,
}

impl Context {
    /// Version and slot that are expected of `page`.
    #[inline]
    fn expected(&self, order: Order, page: u32) -> (u64, u32) {
        let step = match order {
            Order::Pages => page.wrapping_sub(self.page),
            Order::Time => 1,
        };
        (self.version.wrapping_add(u64::from(step)), self.slot.wrapping_add(step))
    }
}

/// The two contexts, and which page came last.
struct Contexts {
    order: Order,
    last_page: u32,
    contexts: [Context; 2],
}

impl Contexts {
    fn new(order: Order, first_page: u32) -> Self {
        let last_page = first_page.wrapping_sub(1);
        let context = Context { page: last_page, version: 0, slot: 0 };
        Contexts { order, last_page, contexts: [context; 2] }
    }

    /// How far `line` is from what context `index` expects.
    #[inline]
    fn distance(&self, index: usize, line: &Line) -> Distance {
        let (version, slot) = self.contexts[index].expected(self.order, line.page);
        let place = if line.kind.has_slot() { line.place } else { slot };
        Distance::new(line.version.wrapping_sub(version), place.wrapping_sub(slot))
    }

    #[inline]
    fn advance(&mut self, index: usize, line: &Line) {
        let (_, expected) = self.contexts[index].expected(self.order, line.page);
        let slot = if line.kind.has_slot() { line.place } else { expected };
        self.contexts[index] = Context { page: line.page, version: line.version, slot };
        self.last_page = line.page;
    }
}

/// Puts entries into a page.
pub struct Encoder {
    // Behind the page there is space for a whole word to be written at its end.
    bytes: [u8; PAGE_BYTES + 8],
    at: usize,
    style: Style,
    contexts: Contexts,
    // Where the tag of the run is that the last entry belongs to.
    run: Option<usize>,
    count: u32,
}

impl Encoder {
    /// An empty page; entries start at byte `start`, the first is expected to be that of
    /// `first_page`.
    pub fn new(style: Style, start: usize, first_page: u32) -> Self {
        Encoder {
            bytes: [0; PAGE_BYTES + 8],
            at: start,
            style,
            contexts: Contexts::new(style.order, first_page),
            run: None,
            count: 0,
        }
    }

    /// Entries so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds an entry; false where the page is full.
    #[inline]
    pub fn push(&mut self, line: &Line) -> bool {
        if self.at + ENTRY_BYTES_MAX > PAGE_BYTES {
            return false;
        }
        self.count += 1;
        let given = line.page != self.contexts.last_page.wrapping_add(1);
        let first = self.contexts.distance(0, line);
        if first.bytes() == 0 && line.kind == Kind::Own && !given {
            match self.run {
                Some(tag) if self.bytes[tag] < RUN_MAX => self.bytes[tag] += 1,
                _ => {
                    self.run = Some(self.at);
                    self.put(u64::from(RUN), 1);
                }
            }
            self.contexts.advance(0, line);
        } else {
            self.run = None;
            self.push_one(line, given, first);
        }
        let checksum = self.style.has_checksum(line.kind);
        self.put(u64::from(line.checksum), if checksum { 4 } else { 0 });
        true
    }

    #[inline]
    fn push_one(&mut self, line: &Line, given: bool, first: Distance) {
        let both = [first, self.contexts.distance(1, line)];
        let index = usize::from(both[1].bytes() <= both[0].bytes());
        let Distance { version, place, version_bytes, place_class } = both[index];
        let own = line.kind == Kind::Own;
        let tag = if own { version_bytes } else { KIND_GIVEN }
            | place_class << PLACE_SHIFT
            | if index == 1 { CONTEXT } else { 0 }
            | if given { PAGE_GIVEN } else { 0 };
        self.put(u64::from(tag), 1);
        if !own {
            self.put(u64::from(line.kind as u8 | version_bytes << VERSION_SHIFT), 1);
        }
        self.put(u64::from(line.page), if given { 4 } else { 0 });
        self.put(version, usize::from(version_bytes));
        if line.kind == Kind::Trim {
            self.put(u64::from(line.place), 4);
        }
        self.put(u64::from(place), usize::from(PLACE_BYTES[usize::from(place_class)]));
        self.contexts.advance(index, line);
    }

    #[inline]
    fn put(&mut self, value: u64, len: usize) {
        // What is written too much the next value overwrites.
        self.bytes[self.at..self.at + 8].copy_from_slice(&value.to_le_bytes());
        self.at += len;
    }

    /// The page, with `header` in front.
    pub fn finish(mut self, header: &[u8]) -> PageBuf {
        self.bytes[..header.len()].copy_from_slice(header);
        self.bytes[self.at..].fill(0);
        PageBuf::copy_from(&self.bytes[..PAGE_BYTES])
    }
}

/// Takes entries out of a page.
struct Decoder<'a> {
    page: &'a PageBuf,
    at: usize,
    contexts: Contexts,
    run_left: u8,
}

impl Decoder<'_> {
    #[inline]
    fn take(&mut self, len: usize) -> Option<u64> {
        let mut word = [0; 8];
        match self.page.get(self.at..self.at + 8) {
            // Almost always, and without a length to copy by.
            Some(bytes) if len < 8 => word.copy_from_slice(bytes),
            _ => word.get_mut(..len)?.copy_from_slice(self.page.get(self.at..self.at + len)?),
        }
        self.at += len;
        let behind = 1u64.checked_shl(8 * len as u32).unwrap_or(0);
        Some(u64::from_le_bytes(word) & behind.wrapping_sub(1))
    }

    #[inline]
    fn next(&mut self, style: Style) -> Option<Line> {
        let mut line = Line {
            kind: Kind::Own,
            page: self.contexts.last_page.wrapping_add(1),
            version: 0,
            place: 0,
            checksum: 0,
        };
        let tag = if self.run_left > 0 { RUN } else { self.take(1)? as u8 };
        let mut index = 0;
        if tag & RUN != 0 {
            self.run_left = if self.run_left > 0 { self.run_left - 1 } else { tag & !RUN };
            let expected = self.contexts.contexts[0].expected(self.contexts.order, line.page);
            (line.version, line.place) = expected;
        } else {
            index = usize::from(tag & CONTEXT != 0);
            self.next_one(tag, index, &mut line)?;
        }
        self.contexts.advance(index, &line);
        if style.has_checksum(line.kind) {
            line.checksum = self.take(4)? as u32;
        }
        Some(line)
    }

    fn next_one(&mut self, tag: u8, index: usize, line: &mut Line) -> Option<()> {
        let mut version_bytes = tag & KIND_GIVEN;
        if version_bytes == KIND_GIVEN {
            let byte = self.take(1)? as u8;
            line.kind = Kind::from_byte(byte & ((1 << VERSION_SHIFT) - 1))?;
            version_bytes = byte >> VERSION_SHIFT;
        }
        if tag & PAGE_GIVEN != 0 {
            line.page = self.take(4)? as u32;
        }
        let (version, slot) =
            self.contexts.contexts[index].expected(self.contexts.order, line.page);
        let distance = signed(self.take(usize::from(version_bytes))?);
        line.version = version.wrapping_add_signed(distance);
        let class = usize::from(tag >> PLACE_SHIFT & 3);
        line.place = match line.kind {
            Kind::Trim => self.take(4)? as u32,
            Kind::Own | Kind::Remapped => {
                let distance = signed(self.take(usize::from(PLACE_BYTES[class]))?);
                slot.wrapping_add(distance as u32)
            }
            Kind::Unmapped | Kind::Lost => 0,
        };
        Some(())
    }
}

/// What `each` makes of the `count` entries from byte `start` of `page` on, of which the first is
/// expected to be that of `first_page`; `None` where they are none, or `each` makes nothing of one.
pub fn decode<T>(
    page: &PageBuf,
    style: Style,
    start: usize,
    first_page: u32,
    count: u32,
    each: impl Fn(&Line) -> Option<T>,
) -> Option<Vec<T>> {
    let contexts = Contexts::new(style.order, first_page);
    let mut decoder = Decoder { page, at: start, contexts, run_left: 0 };
    let mut entries = Vec::with_capacity(count.min(PAGE_BYTES as u32) as usize);
    for _ in 0..count {
        entries.push(each(&decoder.next(style)?)?);
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Rng;

    const START: usize = 40;

    fn lines_of(page: &PageBuf, style: Style, first_page: u32, count: u32) -> Option<Vec<Line>> {
        decode(page, style, START, first_page, count, |line| Some(*line))
    }

    /// Encodes as many of `lines` as go into a page, checks that they come back; their number.
    fn round_trip(style: Style, lines: &[Line]) -> usize {
        let first_page = lines[0].page;
        let mut encoder = Encoder::new(style, START, first_page);
        let fit = lines.iter().take_while(|line| encoder.push(line)).count();
        assert_eq!(encoder.count() as usize, fit);
        let page = encoder.finish(&[7; START]);
        assert_eq!(page[..START], [7; START]);
        let read = lines_of(&page, style, first_page, fit as u32).unwrap();
        assert_eq!(read, lines[..fit]);
        fit
    }

    fn random_line(rng: &mut Rng, style: Style, before: &Line) -> Line {
        let small = |rng: &mut Rng| 1u64 << rng.below(40);
        let kind = match rng.below(8) {
            0 => Kind::Remapped,
            1 => Kind::Unmapped,
            2 => Kind::Lost,
            3 if style.order == Order::Time => Kind::Trim,
            _ => Kind::Own,
        };
        let near = rng.chance(0.7);
        let page = match style.order {
            Order::Pages => before.page + 1 + (if near { 0 } else { rng.below(50) as u32 }),
            Order::Time => rng.below(1 << 32) as u32,
        };
        let version = if near { before.version + 1 } else { rng.below(1 << 46) % small(rng) };
        let place = if near { before.place.wrapping_add(1) } else { rng.below(1 << 32) as u32 };
        let place = if matches!(kind, Kind::Unmapped | Kind::Lost) { 0 } else { place };
        let checksum = if style.has_checksum(kind) { rng.below(1 << 32) as u32 } else { 0 };
        Line { kind, page, version, place, checksum }
    }

    #[test]
    fn entries_come_back() {
        for seed in 0..200 {
            let mut rng = Rng::split(seed, "entries");
            for order in [Order::Pages, Order::Time] {
                let style = Style { order, checksums: seed % 2 == 0 };
                let mut lines =
                    vec![Line { kind: Kind::Own, page: 9, version: 3, place: 4, checksum: 0 }];
                while lines.len() < 1000 {
                    lines.push(random_line(&mut rng, style, &lines[lines.len() - 1]));
                }
                assert!(round_trip(style, &lines) > 100, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_page_holds_the_least_that_is_counted_on_and_far_more_in_order() {
        let style = Style { order: Order::Pages, checksums: true };
        let far = |page: u32| Line {
            kind: Kind::Remapped,
            page,
            version: if page.is_multiple_of(2) { (1 << 46) - 1 } else { 0 },
            place: if page.is_multiple_of(3) { 0 } else { 1 << 31 | page },
            checksum: page,
        };
        let lines: Vec<Line> = (0..1000).map(far).collect();
        assert!(round_trip(style, &lines) >= (PAGE_BYTES - START) / NEXT_ENTRY_BYTES_MAX);
        let lines: Vec<Line> = (0..1000).map(|page| far(page * 1_000_003)).collect();
        let style = Style { order: Order::Time, checksums: true };
        assert!(round_trip(style, &lines) >= (PAGE_BYTES - START) / ENTRY_BYTES_MAX);
        // Every fifth page was written again, the others in order.
        let style = Style { order: Order::Pages, checksums: false };
        let mixed = |page: u32| {
            let again = page.is_multiple_of(5);
            let version = if again { 1 << 30 | u64::from(page * 77_777) } else { page.into() };
            let place = if again { (1 << 27) | (page * 55_555) } else { page };
            Line { kind: Kind::Own, page, version, place, checksum: 0 }
        };
        let lines: Vec<Line> = (1000..9000).map(mixed).collect();
        assert!(round_trip(style, &lines) > 1800);
    }

    #[test]
    fn what_is_no_page_of_entries_is_refused() {
        let style = Style { order: Order::Time, checksums: false };
        let page = PageBuf::copy_from(&[0x7f; PAGE_BYTES]);
        assert_eq!(lines_of(&page, style, 0, 1), None, "no kind");
        let page = PageBuf::copy_from(&[0x0f; PAGE_BYTES]);
        assert_eq!(lines_of(&page, style, 0, 4000), None, "beyond the end");
    }
}
