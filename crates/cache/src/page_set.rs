//! A set of page numbers, for sets that are dense in places and empty elsewhere.
use std::collections::BTreeMap;
use std::ops::Range;
use tantalum_base::{PageNo, PageRange};

const CHUNK_PAGES: u64 = 4096;
const WORDS: usize = CHUNK_PAGES as usize / 64;

/// A sorted set of page numbers below 2^64 - 1. It uses about 550 bytes for each chunk of 4096
/// pages that has members, and hardly any memory for a chunk with all pages as members.
#[derive(Clone, Debug, Default)]
pub struct PageSet {
    // By page number / 4096. No chunk is empty, and a full one is `Full`.
    chunks: BTreeMap<u64, Chunk>,
    len: u64,
}

#[derive(Clone, Debug)]
enum Chunk {
    Full,
    Part(Box<Bits>),
}

#[derive(Clone, Debug)]
struct Bits {
    words: [u64; WORDS],
    count: u32,
}

impl PageSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of members.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a page; returns whether it was not a member before.
    pub fn insert(&mut self, page: PageNo) -> bool {
        self.insert_range(PageRange::new(page, 1)) == 1
    }

    /// Adds the pages of a range; returns how many of them were not members before.
    pub fn insert_range(&mut self, range: PageRange) -> u64 {
        let mut added = 0;
        for chunk in chunks_of(range) {
            added += u64::from(self.insert_in(chunk, within(chunk, range)));
        }
        self.len += added;
        added
    }

    /// Removes a page; returns whether it was a member.
    pub fn remove(&mut self, page: PageNo) -> bool {
        self.remove_range(PageRange::new(page, 1)) == 1
    }

    /// Removes the pages of a range; returns how many of them were members.
    pub fn remove_range(&mut self, range: PageRange) -> u64 {
        let (mut removed, mut from) = (0, chunks_of(range));
        while let Some((&chunk, _)) = self.chunks.range(from.clone()).next() {
            removed += u64::from(self.remove_in(chunk, within(chunk, range)));
            from.start = chunk + 1;
        }
        self.len -= removed;
        removed
    }

    /// Whether the page is a member.
    pub fn contains(&self, page: PageNo) -> bool {
        let bit = page.0 % CHUNK_PAGES;
        match self.chunks.get(&(page.0 / CHUNK_PAGES)) {
            None => false,
            Some(Chunk::Full) => true,
            Some(Chunk::Part(bits)) => bits.words[bit as usize / 64] >> (bit % 64) & 1 == 1,
        }
    }

    /// Whether a page of the range is a member.
    pub fn contains_any(&self, range: PageRange) -> bool {
        self.next(range.first).is_some_and(|page| range.contains(page))
    }

    /// Number of pages of the range that are members.
    pub fn count_in(&self, range: PageRange) -> u64 {
        let chunks = self.chunks.range(chunks_of(range));
        chunks.map(|(chunk, bits)| u64::from(bits.count_in(within(*chunk, range)))).sum()
    }

    /// The first member at or after `from`.
    pub fn next(&self, from: PageNo) -> Option<PageNo> {
        let first_chunk = from.0 / CHUNK_PAGES;
        self.chunks.range(first_chunk..).find_map(|(chunk, bits)| {
            let from_bit = if *chunk == first_chunk { (from.0 % CHUNK_PAGES) as u32 } else { 0 };
            let bit = bits.next_set(from_bit)?;
            Some(PageNo(chunk * CHUNK_PAGES + u64::from(bit)))
        })
    }

    /// The first run of consecutive members at or after `from`, limited to `pages_max` pages, which
    /// is not 0.
    pub fn next_run(&self, from: PageNo, pages_max: u64) -> Option<PageRange> {
        assert!(pages_max > 0, "a run has a page");
        let first = self.next(from)?;
        let mut end = first.0;
        for (chunk, bits) in self.chunks.range(first.0 / CHUNK_PAGES..) {
            if chunk * CHUNK_PAGES > end || end - first.0 >= pages_max {
                break;
            }
            end = chunk * CHUNK_PAGES + u64::from(bits.next_clear((end % CHUNK_PAGES) as u32));
            if !end.is_multiple_of(CHUNK_PAGES) {
                break;
            }
        }
        Some(PageRange::new(first, pages_max.min(end - first.0)))
    }

    /// The runs of consecutive members in `range`.
    pub fn runs_in(&self, range: PageRange) -> impl Iterator<Item = PageRange> {
        let mut next = range.first;
        std::iter::from_fn(move || {
            let left = range.end().0.checked_sub(next.0).filter(|left| *left > 0)?;
            let run = self.next_run(next, left).filter(|run| run.first < range.end())?;
            let pages = run.pages.min(range.end().0 - run.first.0);
            next = PageNo(run.first.0 + pages);
            Some(PageRange::new(run.first, pages))
        })
    }

    /// Adds all members of `other`.
    pub fn extend(&mut self, other: &PageSet) {
        for (chunk, theirs) in &other.chunks {
            match self.chunks.get_mut(chunk) {
                Some(Chunk::Full) => {}
                Some(own) => {
                    self.len += u64::from(own.merge(theirs));
                }
                None => {
                    self.len += u64::from(theirs.count_in(0..CHUNK_PAGES as u32));
                    self.chunks.insert(*chunk, theirs.clone());
                }
            }
        }
    }

    /// The members, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PageNo> {
        self.chunks.iter().flat_map(|(chunk, bits)| {
            let mut from = 0;
            std::iter::from_fn(move || {
                let bit = bits.next_set(from)?;
                from = bit + 1;
                Some(PageNo(chunk * CHUNK_PAGES + u64::from(bit)))
            })
        })
    }

    /// Memory that the set uses, in bytes; an estimate.
    pub fn memory_bytes(&self) -> u64 {
        // A tree's nodes are three quarters full on average.
        let entry = (size_of::<u64>() + size_of::<Chunk>()) * 4 / 3;
        let parts = self.chunks.values().filter(|chunk| matches!(chunk, Chunk::Part(_))).count();
        (self.chunks.len() * entry + parts * size_of::<Bits>()) as u64
    }

    fn insert_in(&mut self, chunk: u64, bits: Range<u32>) -> u32 {
        if bits.len() as u64 == CHUNK_PAGES {
            let before = self.chunks.insert(chunk, Chunk::Full);
            return CHUNK_PAGES as u32 - before.map_or(0, |before| before.count_in(bits));
        }
        let entry = self.chunks.entry(chunk).or_insert_with(|| Chunk::Part(Bits::of(0)));
        let Chunk::Part(part) = entry else { return 0 };
        let added = part.set(bits);
        if u64::from(part.count) == CHUNK_PAGES {
            *entry = Chunk::Full;
        }
        added
    }

    fn remove_in(&mut self, chunk: u64, bits: Range<u32>) -> u32 {
        let Some(entry) = self.chunks.get_mut(&chunk) else { return 0 };
        if bits.len() as u64 == CHUNK_PAGES {
            let removed = entry.count_in(bits);
            self.chunks.remove(&chunk);
            return removed;
        }
        if let Chunk::Full = entry {
            *entry = Chunk::Part(Bits::of(u64::MAX));
        }
        let Chunk::Part(part) = entry else { unreachable!("a full chunk has become a part") };
        let removed = part.clear(bits);
        if part.count == 0 {
            self.chunks.remove(&chunk);
        }
        removed
    }

    /// Panics if the counts contradict the bits.
    #[cfg(test)]
    fn validate(&self) {
        let mut len = 0;
        for (chunk, bits) in &self.chunks {
            let all = bits.count_in(0..CHUNK_PAGES as u32);
            if let Chunk::Part(part) = bits {
                assert_eq!(part.count, all, "chunk {chunk}");
                assert!((1..CHUNK_PAGES as u32).contains(&all), "chunk {chunk}: {all} members");
            }
            len += u64::from(all);
        }
        assert_eq!(self.len, len);
    }
}

impl Chunk {
    /// The word with number `at`: a bit for each member.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        match self {
            Chunk::Full => u64::MAX,
            Chunk::Part(bits) => bits.words[at],
        }
    }

    fn count_in(&self, bits: Range<u32>) -> u32 {
        masks(bits).map(|(at, mask)| (self.word(at) & mask).count_ones()).sum()
    }

    fn next_set(&self, from: u32) -> Option<u32> {
        let (at, mask) =
            masks(from..CHUNK_PAGES as u32).find(|(at, mask)| self.word(*at) & mask != 0)?;
        Some(at as u32 * 64 + (self.word(at) & mask).trailing_zeros())
    }

    /// The first bit at or after `from` that is not set; 4096 if there is none.
    fn next_clear(&self, from: u32) -> u32 {
        masks(from..CHUNK_PAGES as u32)
            .find(|(at, mask)| !self.word(*at) & mask != 0)
            .map_or(CHUNK_PAGES as u32, |(at, mask)| {
                at as u32 * 64 + (!self.word(at) & mask).trailing_zeros()
            })
    }

    /// Adds the members of `other`; returns how many were new.
    fn merge(&mut self, other: &Chunk) -> u32 {
        let Chunk::Part(part) = self else { return 0 };
        let before = part.count;
        for (at, word) in part.words.iter_mut().enumerate() {
            *word |= other.word(at);
        }
        part.count = part.words.iter().map(|word| word.count_ones()).sum();
        let added = part.count - before;
        if u64::from(part.count) == CHUNK_PAGES {
            *self = Chunk::Full;
        }
        added
    }
}

impl Bits {
    /// A chunk in which all words are `word`.
    fn of(word: u64) -> Box<Self> {
        Box::new(Bits { words: [word; WORDS], count: word.count_ones() * WORDS as u32 })
    }

    /// Sets the bits; returns how many were not set.
    fn set(&mut self, bits: Range<u32>) -> u32 {
        let mut added = 0;
        for (at, mask) in masks(bits) {
            added += (mask & !self.words[at]).count_ones();
            self.words[at] |= mask;
        }
        self.count += added;
        added
    }

    /// Clears the bits; returns how many were set.
    fn clear(&mut self, bits: Range<u32>) -> u32 {
        let mut removed = 0;
        for (at, mask) in masks(bits) {
            removed += (mask & self.words[at]).count_ones();
            self.words[at] &= !mask;
        }
        self.count -= removed;
        removed
    }
}

/// The words that contain bits of the range, and a mask of these bits in each.
fn masks(bits: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    let (first, end) = (bits.start / 64, bits.end.div_ceil(64));
    (first..end).map(move |at| {
        let low = bits.start.saturating_sub(at * 64);
        let unused = (at * 64 + 64).saturating_sub(bits.end);
        (at as usize, (u64::MAX << low) & (u64::MAX >> unused))
    })
}

/// The chunks that contain pages of the range.
fn chunks_of(range: PageRange) -> Range<u64> {
    if range.pages == 0 {
        return 0..0;
    }
    range.first.0 / CHUNK_PAGES..range.end().0.div_ceil(CHUNK_PAGES)
}

/// The bits of this chunk that are in the range, which overlaps it.
fn within(chunk: u64, range: PageRange) -> Range<u32> {
    let start = range.first.0.saturating_sub(chunk * CHUNK_PAGES);
    let end = (range.end().0 - chunk * CHUNK_PAGES).min(CHUNK_PAGES);
    start as u32..end as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn range(first: u64, pages: u64) -> PageRange {
        PageRange::new(PageNo(first), pages)
    }

    #[test]
    fn what_is_dense_and_what_is_sparse_is_small() {
        let mut set = PageSet::new();
        assert_eq!(set.insert_range(range(5, 1 << 30)), 1 << 30);
        // 4 TiB in full chunks, except at the ends.
        assert!(set.memory_bytes() < 8 << 20, "{} bytes", set.memory_bytes());
        assert_eq!(set.next_run(PageNo(0), u64::MAX), Some(range(5, 1 << 30)));
        assert_eq!(set.remove_range(range(0, u64::MAX)), 1 << 30);
        assert_eq!((set.len(), set.memory_bytes()), (0, 0));

        let far = PageNo(u64::MAX - 1);
        assert!(set.insert(far) && !set.insert(far) && set.contains(far));
        assert_eq!(set.next_run(PageNo(0), 9), Some(PageRange::new(far, 1)));
        assert!(set.memory_bytes() < 1024);
    }

    #[test]
    fn an_empty_range_changes_nothing() {
        let mut set = PageSet::new();
        assert_eq!(set.insert_range(range(4096, 0)), 0);
        set.insert(PageNo(4096));
        assert_eq!((set.remove_range(range(4096, 0)), set.count_in(range(4096, 0))), (0, 0));
        assert!(!set.contains_any(range(4096, 0)));
        set.validate();
    }

    #[derive(Clone, Debug)]
    enum Change {
        Insert(PageRange),
        Remove(PageRange),
        Extend(Vec<PageRange>),
    }

    /// Ranges near the boundaries of words and chunks, and some that contain whole chunks.
    fn ranges() -> impl Strategy<Value = PageRange> {
        let near = prop_oneof![Just(0u64), Just(64), Just(4096), Just(8192), Just(1 << 40)];
        let length = prop_oneof![3 => Just(1u64), 3 => 0u64..200, 1 => 4000u64..9000];
        (near, 0u64..160, length)
            .prop_map(|(near, back, length)| range((near + 80).saturating_sub(back), length))
    }

    fn changes() -> impl Strategy<Value = Change> {
        prop_oneof![
            3 => ranges().prop_map(Change::Insert),
            2 => ranges().prop_map(Change::Remove),
            1 => prop::collection::vec(ranges(), 0..4).prop_map(Change::Extend),
        ]
    }

    /// Makes the change in both; the reported number of changes must be right.
    fn change(set: &mut PageSet, model: &mut BTreeSet<u64>, change: &Change) {
        match change {
            Change::Insert(range) => {
                let before = model.len();
                model.extend(range.iter().map(|page| page.0));
                let added = (model.len() - before) as u64;
                let told = match range.pages {
                    1 => u64::from(set.insert(range.first)),
                    _ => set.insert_range(*range),
                };
                assert_eq!(told, added);
            }
            Change::Remove(range) => {
                let before = model.len();
                model.retain(|page| !range.contains(PageNo(*page)));
                let removed = (before - model.len()) as u64;
                let told = match range.pages {
                    1 => u64::from(set.remove(range.first)),
                    _ => set.remove_range(*range),
                };
                assert_eq!(told, removed);
            }
            Change::Extend(ranges) => {
                let mut other = PageSet::new();
                for range in ranges {
                    other.insert_range(*range);
                    model.extend(range.iter().map(|page| page.0));
                }
                set.extend(&other);
            }
        }
    }

    fn assert_same_answers(set: &PageSet, model: &BTreeSet<u64>, asked: PageRange, most: u64) {
        let first = model.range(asked.first.0..).next().copied();
        let inside = model.range(asked.first.0..asked.end().0).count() as u64;
        assert_eq!(set.contains(asked.first), model.contains(&asked.first.0));
        assert_eq!(set.next(asked.first), first.map(PageNo));
        assert_eq!(set.count_in(asked), inside);
        assert_eq!(set.contains_any(asked), inside > 0);
        let run = first.map(|first| {
            let length = (0..most).find(|ahead| !model.contains(&(first + ahead)));
            range(first, length.unwrap_or(most))
        });
        assert_eq!(set.next_run(asked.first, most), run);
        let runs: Vec<PageRange> = set.runs_in(asked).collect();
        let pages = runs.iter().flat_map(|run| run.iter()).map(|page| page.0);
        assert!(pages.eq(model.range(asked.first.0..asked.end().0).copied()), "{runs:?}");
        assert!(runs.windows(2).all(|two| two[0].end() < two[1].first), "{runs:?}");
    }

    proptest! {
        #[test]
        fn it_does_what_a_sorted_set_does(
            changes in prop::collection::vec(changes(), 0..30),
            asked in prop::collection::vec((ranges(), 1u64..6000), 1..20),
        ) {
            let (mut set, mut model) = (PageSet::new(), BTreeSet::new());
            for each in &changes {
                change(&mut set, &mut model, each);
                set.validate();
            }
            prop_assert_eq!(set.len(), model.len() as u64);
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert!(set.iter().eq(model.iter().map(|page| PageNo(*page))));
            for (range, most) in asked {
                assert_same_answers(&set, &model, range, most);
            }
        }
    }
}
