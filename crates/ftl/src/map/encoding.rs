//! A compact encoding of mapping entries, in checkpoints and in delta pages.
//!
//! An entry is encoded as its distance from the prediction of one of two contexts. Pages that were written in
//! sequence are in consecutive slots, and a run of them takes one byte. There are two contexts because rewritten
//! pages are scattered among others, and because changes by hosts alternate with relocations by cleaning.
//! `docs/format.md` has the bytes.
use tantalum_base::{PAGE_BYTES, PageBuf};

/// Most bytes of an entry: tag, kind, page, version, place, checksum.
pub const ENTRY_BYTES_MAX: usize = 1 + 1 + 4 + 6 + 4 + 4;
/// Most bytes of an entry that follows that of the previous page.
pub const NEXT_ENTRY_BYTES_MAX: usize = ENTRY_BYTES_MAX - 4;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The content is in the slot, whose spare names this page and version.
    Own = 0,
    /// The content is in the slot, whose spare names another page.
    Remapped = 1,
    /// There is no content.
    Unmapped = 2,
    /// The medium lost the content.
    Lost = 3,
    /// This page and those after it were trimmed.
    Trim = 4,
    /// As `Own`, and the page's home has the content too.
    Clean = 5,
    /// The content is in the page's home, and not here.
    Home = 6,
    /// As `Remapped`, and the page's home has the content too.
    CleanRemapped = 7,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0 => Kind::Own,
            1 => Kind::Remapped,
            2 => Kind::Unmapped,
            3 => Kind::Lost,
            4 => Kind::Trim,
            5 => Kind::Clean,
            6 => Kind::Home,
            7 => Kind::CleanRemapped,
            _ => return None,
        })
    }

    fn has_slot(self) -> bool {
        matches!(self, Kind::Own | Kind::Remapped | Kind::Clean | Kind::CleanRemapped)
    }
}

/// An entry as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The kind.
    pub kind: Kind,
    /// The page.
    pub page: u32,
    /// Its version, below 2^46.
    pub version: u64,
    /// The slot; for a trim the number of pages, otherwise 0.
    pub place: u32,
    /// Checksum of the slot's content, if checksums are kept; otherwise the origin that the slot of a remapped page
    /// names.
    pub checksum: u32,
}

/// The order of the entries in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By page, ascending: the predicted place advances with the page number.
    Pages,
    /// By time: the next version and the next slot are predicted, for any page.
    Time,
}

/// The encoding of a page of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The order of the entries.
    pub order: Order,
    /// A checksum for each slot, not only for remapped pages.
    pub checksums: bool,
}

impl Style {
    fn has_checksum(self, kind: Kind) -> bool {
        let is_remapped = matches!(kind, Kind::Remapped | Kind::CleanRemapped);
        is_remapped || self.checksums && kind.has_slot()
    }
}

// A tag is either a run of entries that context 0 predicts, minus one...
const RUN: u8 = 0x80;
const RUN_MAX: u8 = 0xff;
// ...or the bytes of the version's distance, the class of the place's, and flags for fields that follow. With 7
// version bytes another byte follows, with the kind and the version bytes.
const KIND_GIVEN: u8 = 7;
const PLACE_SHIFT: u8 = 3;
const CONTEXT: u8 = 1 << 5;
const PAGE_GIVEN: u8 = 1 << 6;
const VERSION_SHIFT: u8 = 4;
/// Versions have 46 bits, and their distances a sign.
const VERSION_BYTES_MAX: usize = 6;
/// Bytes of a place's distance, by class.
const PLACE_BYTES: [u8; 4] = [0, 1, 2, 4];
/// Class of a place's distance, by bytes.
const PLACE_CLASS: [u8; 5] = [0, 1, 2, 3, 3];

/// An entry's distance from its prediction, and its encoded size. Without branches, which would be
/// unpredictable for scattered entries.
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
        // Signed distances, zigzag encoded.
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

/// Decodes a zigzag number.
fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The entry from which others are predicted.
#[derive(Clone, Copy)]
struct Context {
    page: u32,
    version: u64,
    slot: u32,
}

impl Context {
    /// The version and slot that are predicted for `page`.
    #[inline]
    fn expected(&self, order: Order, page: u32) -> (u64, u32) {
        let step = match order {
            Order::Pages => page.wrapping_sub(self.page),
            Order::Time => 1,
        };
        (self.version.wrapping_add(u64::from(step)), self.slot.wrapping_add(step))
    }
}

/// The two contexts, and the last page.
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

    /// The distance of `line` from the prediction of context `index`.
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

/// Encodes entries in a page.
pub struct Encoder {
    // A few bytes more than a page, so that a whole word can be written at its end.
    bytes: [u8; PAGE_BYTES + 8],
    at: usize,
    style: Style,
    contexts: Contexts,
    // Position of the tag of the run to which the last entry belongs.
    run: Option<usize>,
    count: u32,
}

impl Encoder {
    /// An empty page whose entries start at byte `start`; the first predicted page is `first_page`.
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

    /// Adds an entry; returns false if the page is full.
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
        // The next value overwrites the excess bytes.
        self.bytes[self.at..self.at + 8].copy_from_slice(&value.to_le_bytes());
        self.at += len;
    }

    /// The page, with `header` at its start.
    pub fn finish(mut self, header: &[u8]) -> PageBuf {
        self.bytes[..header.len()].copy_from_slice(header);
        self.bytes[self.at..].fill(0);
        PageBuf::copy_from(&self.bytes[..PAGE_BYTES])
    }
}

/// Eight bytes from `at` on; zeros stand for those behind the end.
#[inline]
fn word(bytes: &[u8; PAGE_BYTES], at: usize) -> u64 {
    if let Some(whole) = bytes.get(at..at + 8) {
        return u64::from_le_bytes(whole.try_into().expect("eight bytes"));
    }
    let mut word = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// The first `len` bytes of `word`, at most seven.
#[inline]
fn first_bytes(word: u64, len: usize) -> u64 {
    word & ((1 << (8 * len)) - 1)
}

/// Decodes entries of a page. Reads zeros past its end; the caller then finds `at` too high.
struct Decoder<'a> {
    bytes: &'a [u8; PAGE_BYTES],
    at: usize,
    contexts: Contexts,
    run_left: u8,
}

impl Decoder<'_> {
    // Always inlined, so that the compiler evaluates style and order outside the loop.
    #[inline(always)]
    fn next(&mut self, style: Style) -> Option<Line> {
        let page = self.contexts.last_page.wrapping_add(1);
        let mut line = Line { kind: Kind::Own, page, version: 0, place: 0, checksum: 0 };
        let tag = if self.run_left > 0 { RUN } else { word(self.bytes, self.at) as u8 };
        self.at += usize::from(self.run_left == 0);
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
            line.checksum = word(self.bytes, self.at) as u32;
            self.at += 4;
        }
        (self.at <= PAGE_BYTES).then_some(line)
    }

    /// The tag and the byte after it determine the position of every field. The code avoids branches on them: a
    /// processor could not predict which entries give a page number, and how long a distance is.
    #[inline(always)]
    fn next_one(&mut self, tag: u8, index: usize, line: &mut Line) -> Option<()> {
        let mut version_bytes = usize::from(tag & KIND_GIVEN);
        if version_bytes == usize::from(KIND_GIVEN) {
            let byte = word(self.bytes, self.at) as u8;
            self.at += 1;
            line.kind = Kind::from_byte(byte & ((1 << VERSION_SHIFT) - 1))?;
            version_bytes = usize::from(byte >> VERSION_SHIFT);
        }
        if version_bytes > VERSION_BYTES_MAX {
            return None;
        }
        let given = tag & PAGE_GIVEN != 0;
        let given_page = word(self.bytes, self.at) as u32;
        line.page = if given { given_page } else { line.page };
        self.at += usize::from(given) * 4;
        let (version, slot) =
            self.contexts.contexts[index].expected(self.contexts.order, line.page);
        let distance = signed(first_bytes(word(self.bytes, self.at), version_bytes));
        line.version = version.wrapping_add_signed(distance);
        self.at += version_bytes;
        if line.kind == Kind::Trim {
            line.place = word(self.bytes, self.at) as u32;
            self.at += 4;
        } else if line.kind.has_slot() {
            let len = usize::from(PLACE_BYTES[usize::from(tag >> PLACE_SHIFT & 3)]);
            let distance = signed(first_bytes(word(self.bytes, self.at), len));
            line.place = slot.wrapping_add(distance as u32);
            self.at += len;
        }
        Some(())
    }
}

/// Decodes `count` entries from byte `start` of `page` on, with `first_page` as the first predicted page, and maps
/// them by `each`; `None` if they are invalid, or if `each` returns `None` for one.
#[inline]
pub fn decode<T>(
    page: &[u8; PAGE_BYTES],
    style: Style,
    start: usize,
    first_page: u32,
    count: u32,
    each: impl Fn(&Line) -> Option<T>,
) -> Option<Vec<T>> {
    let contexts = Contexts::new(style.order, first_page);
    let mut decoder = Decoder { bytes: page, at: start, contexts, run_left: 0 };
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

    /// Encodes as many of `lines` as fit in a page, checks that they come back, and returns their number.
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
            4 => Kind::Clean,
            5 => Kind::Home,
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
        let place =
            if matches!(kind, Kind::Unmapped | Kind::Lost | Kind::Home) { 0 } else { place };
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
        // Every fifth page was rewritten, the others in order.
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
