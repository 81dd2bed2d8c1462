//! The index of a journal: the position of each page's content, in memory and in the journal's index
//! pages.
//!
//! The index follows the contents: an entry of 16 bytes for each page with contents, in the order of page
//! numbers, then one for each range of zeros, in the same order; 252 entries a page. Little endian:
//!
//! | offset | bytes | index page |
//! |---|---|---|
//! | 0 | 8 | magic `TantJidx` |
//! | 8 | 16 | identity of the volume |
//! | 24 | 8 | the epoch |
//! | 32 | 4 | number of this index page within the epoch, from 0 |
//! | 36 | 4 | entries |
//! | 40 | 8 | zero |
//! | 48 | 16 an entry | a content: page (8), its position among the contents, from 0 (4), checksum of the content (4). A range of zeros: first page (8), pages (8) |
//! | 4080 | 12 | zero |
//! | 4092 | 4 | CRC-32C of the 4092 bytes before |
use super::head::{Commit, long, wide, word};
use super::{Closed, Pair};
use crate::fault_points::Fault;
use std::ops::Range;
use tantalum_base::checksum::{crc32c, crc32c_append};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, PageRange, Result};

/// Entries of an index page.
pub(super) const ENTRIES_PER_PAGE: u64 = 252;

const MAGIC: &[u8; 8] = b"TantJidx";
const ENTRIES_AT: usize = 48;
const ENTRY_BYTES: usize = 16;
const CRC_AT: usize = PAGE_BYTES - 4;

/// The position of a page's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) page: PageNo,
    /// Position among the contents, in pages.
    pub(super) slot: u32,
    /// Checksum of the content.
    pub(super) checksum: u32,
}

/// The changes of an epoch.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Index {
    /// In the order of page numbers, once the index is [sorted](Index::sort).
    pub(super) entries: Vec<Entry>,
    /// In the same order.
    pub(super) zeros: Vec<PageRange>,
}

/// The next change at or after a page.
pub(super) enum Next {
    /// The entries of consecutive pages.
    Contents(Range<usize>),
    Zeros(PageRange),
}

/// Index pages needed for this many entries.
pub(super) fn pages_for(entries: u64) -> u64 {
    entries.div_ceil(ENTRIES_PER_PAGE)
}

impl Index {
    pub(super) fn len(&self) -> u64 {
        (self.entries.len() + self.zeros.len()) as u64
    }

    /// Sorts entries and ranges by page number.
    ///
    /// # Errors
    /// `InvalidInput` if a page occurs twice.
    pub(super) fn sort(&mut self) -> Result<()> {
        self.entries.sort_unstable_by_key(|entry| entry.page);
        self.zeros.sort_unstable_by_key(|range| range.first);
        self.entries.shrink_to_fit();
        match self.first_overlap() {
            None => Ok(()),
            Some(page) => {
                let context = format!("page {page} changes twice in one epoch");
                Err(Error::new(ErrorKind::InvalidInput, context))
            }
        }
    }

    /// The first page found that occurs twice.
    fn first_overlap(&self) -> Option<PageNo> {
        let twice = self.entries.windows(2).find(|two| two[0].page >= two[1].page);
        let overlap = self.zeros.windows(2).find(|two| two[0].end() > two[1].first);
        let both = || {
            self.zeros.iter().find_map(|range| {
                let at = self.entries.partition_point(|entry| entry.page < range.first);
                self.entries.get(at).map(|entry| entry.page).filter(|page| range.contains(*page))
            })
        };
        twice.map(|two| two[1].page).or(overlap.map(|two| two[1].first)).or_else(both)
    }

    /// Whether `page` is in the index.
    pub(super) fn has(&self, page: PageNo) -> bool {
        let zeros = self.zeros.partition_point(|range| range.end() <= page);
        self.entries.binary_search_by_key(&page, |entry| entry.page).is_ok()
            || self.zeros.get(zeros).is_some_and(|range| range.contains(page))
    }

    /// The next change at or after `from`: consecutive pages with contents, at most `pages_max`, or
    /// a range of zeros.
    pub(super) fn next(&self, from: PageNo, pages_max: usize) -> Option<Next> {
        let at = self.entries.partition_point(|entry| entry.page < from);
        let range = self.zeros.partition_point(|range| range.end() <= from);
        let zeros = self.zeros.get(range).map(|range| {
            let first = range.first.max(from);
            PageRange::new(first, range.end().0 - first.0)
        });
        match (self.entries.get(at), zeros) {
            (Some(entry), zeros) if zeros.is_none_or(|zeros| entry.page < zeros.first) => {
                let rest = &self.entries[at..];
                let most = rest.len().min(pages_max);
                let length = (1..most).find(|&n| rest[n].page.0 != entry.page.0 + n as u64);
                Some(Next::Contents(at..at + length.unwrap_or(most)))
            }
            (_, zeros) => zeros.map(Next::Zeros),
        }
    }

    /// Number of entries from `at` on whose contents are stored consecutively, at most `pages_max`.
    pub(super) fn neighbours(&self, at: usize, pages_max: usize) -> usize {
        let rest = &self.entries[at..];
        let most = rest.len().min(pages_max);
        let end =
            (1..most).find(|&n| u64::from(rest[n].slot) != u64::from(rest[0].slot) + n as u64);
        end.unwrap_or(most)
    }

    /// Fills index page `number`; returns its checksum.
    pub(super) fn encode(&self, pair: Pair, epoch: u64, number: u64, page: &mut [u8]) -> u32 {
        let first = number * ENTRIES_PER_PAGE;
        let entries = ENTRIES_PER_PAGE.min(self.len() - first);
        page.fill(0);
        page[..8].copy_from_slice(MAGIC);
        page[8..24].copy_from_slice(&pair.volume_id.to_le_bytes());
        page[24..32].copy_from_slice(&epoch.to_le_bytes());
        page[32..36].copy_from_slice(&(number as u32).to_le_bytes());
        page[36..40].copy_from_slice(&(entries as u32).to_le_bytes());
        let room = page[ENTRIES_AT..].chunks_exact_mut(ENTRY_BYTES);
        for (at, out) in (first as usize..(first + entries) as usize).zip(room) {
            let (page, rest) = out.split_at_mut(8);
            if let Some(entry) = self.entries.get(at) {
                page.copy_from_slice(&entry.page.0.to_le_bytes());
                rest[..4].copy_from_slice(&entry.slot.to_le_bytes());
                rest[4..].copy_from_slice(&entry.checksum.to_le_bytes());
            } else {
                let range = self.zeros[at - self.entries.len()];
                page.copy_from_slice(&range.first.0.to_le_bytes());
                rest.copy_from_slice(&range.pages.to_le_bytes());
            }
        }
        let crc = crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        crc
    }
}

/// Reads index pages in order, and compares them with the committed checksum.
pub(super) struct Reader {
    pair: Pair,
    commit: Commit,
    number: u64,
    checksum: u32,
    index: Index,
}

impl Reader {
    pub(super) fn new(pair: Pair, commit: Commit) -> Self {
        Reader { pair, commit, number: 0, checksum: 0, index: Index::default() }
    }

    /// Reads the next index page.
    ///
    /// # Errors
    /// `Checksum` if it is damaged; `Corrupt` if it is a different page.
    pub(super) fn page(&mut self, page: &[u8]) -> Result<()> {
        let crc = word(page, CRC_AT);
        self.checksum = crc32c_append(self.checksum, &crc.to_le_bytes());
        if !Fault::IndexUnchecked.is_planted() {
            self.check(page, crc)?;
        }
        let done = self.number * ENTRIES_PER_PAGE;
        let entries = ENTRIES_PER_PAGE.min(self.entries() - done) as usize;
        for entry in page[ENTRIES_AT..].chunks_exact(ENTRY_BYTES).take(entries) {
            let page = PageNo(long(entry, 0));
            if self.index.entries.len() < self.commit.contents as usize {
                let (slot, checksum) = (word(entry, 8), word(entry, 12));
                self.index.entries.push(Entry { page, slot, checksum });
            } else {
                self.index.zeros.push(PageRange::new(page, long(entry, 8)));
            }
        }
        self.number += 1;
        Ok(())
    }

    fn entries(&self) -> u64 {
        u64::from(self.commit.contents) + self.commit.zero_ranges
    }

    fn check(&self, page: &[u8], crc: u32) -> Result<()> {
        let Closed { epoch, .. } = self.commit.closed;
        let number = self.number;
        if crc32c(&page[..CRC_AT]) != crc {
            let context = format!("index page {number} of epoch {epoch} is damaged");
            return Err(Error::new(ErrorKind::Checksum, context));
        }
        let is_it = page[..8] == *MAGIC
            && wide(page, 8) == self.pair.volume_id
            && long(page, 24) == epoch
            && u64::from(word(page, 32)) == number;
        if is_it {
            return Ok(());
        }
        let context =
            format!("other content is at the place of index page {number} of epoch {epoch}");
        Err(Error::new(ErrorKind::Corrupt, context))
    }

    /// Returns the whole index.
    ///
    /// # Errors
    /// `Corrupt` if it is not the one that was committed.
    pub(super) fn finish(self) -> Result<Index> {
        let Closed { epoch, .. } = self.commit.closed;
        let wrong = |what: &str| {
            let context = format!("the index of epoch {epoch} {what}");
            Err(Error::new(ErrorKind::Corrupt, context))
        };
        if self.checksum != self.commit.index_checksum && !Fault::IndexUnchecked.is_planted() {
            return wrong("is not the one that was committed");
        }
        let pages = self.pair.pages;
        let (last, last_zeros) = (self.index.entries.last(), self.index.zeros.last());
        if last.is_some_and(|entry| entry.page.0 >= pages)
            || last_zeros.is_some_and(|range| range.end().0 > pages)
            || self.index.entries.iter().any(|entry| entry.slot >= self.commit.contents)
            || self.index.first_overlap().is_some()
        {
            return wrong("contradicts itself");
        }
        Ok(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: Pair = Pair { volume_id: 5, pages: 1 << 20 };

    fn range(first: u64, pages: u64) -> PageRange {
        PageRange::new(PageNo(first), pages)
    }

    fn index(pages: &[u64], zeros: &[(u64, u64)]) -> Index {
        let entries = pages.iter().zip(0..);
        let entries =
            entries.map(|(page, slot)| Entry { page: PageNo(*page), slot, checksum: !slot });
        let zeros = zeros.iter().map(|(first, pages)| range(*first, *pages));
        Index { entries: entries.collect(), zeros: zeros.collect() }
    }

    /// The index pages, and the matching commit.
    fn encoded(index: &Index, epoch: u64) -> (Vec<[u8; PAGE_BYTES]>, Commit) {
        let mut checksum = 0;
        let pages = (0..pages_for(index.len())).map(|number| {
            let mut page = [0xa5; PAGE_BYTES];
            let crc = index.encode(PAIR, epoch, number, &mut page);
            checksum = crc32c_append(checksum, &crc.to_le_bytes());
            page
        });
        let pages = pages.collect();
        let commit = Commit {
            closed: Closed { epoch, ..Closed::default() },
            contents: index.entries.len() as u32,
            zero_ranges: index.zeros.len() as u64,
            index_checksum: checksum,
        };
        (pages, commit)
    }

    fn decoded(pages: &[[u8; PAGE_BYTES]], commit: Commit) -> Result<Index> {
        let mut reader = Reader::new(PAIR, commit);
        pages.iter().try_for_each(|page| reader.page(page))?;
        reader.finish()
    }

    #[test]
    fn an_index_of_many_pages_comes_back() {
        let pages: Vec<u64> = (0..600).map(|page| page * 3).collect();
        let zeros: Vec<(u64, u64)> = (0..200).map(|at| (2000 + at * 10, 1 + at % 7)).collect();
        let index = index(&pages, &zeros);
        let (pages, commit) = encoded(&index, 9);
        assert_eq!(pages.len(), 4);
        assert_eq!(decoded(&pages, commit).unwrap(), index);
    }

    #[test]
    fn another_index_is_not_taken_for_it() {
        let pages: Vec<u64> = (0..300).collect();
        let index = index(&pages, &[]);
        let (good, commit) = encoded(&index, 9);
        let kind = |pages: &[_]| decoded(pages, commit).err().map(|error| error.kind());
        assert_eq!(kind(&good), None);
        let (older, _) = encoded(&index, 8);
        assert_eq!(kind(&[good[0], older[1]]), Some(ErrorKind::Corrupt), "another epoch");
        assert_eq!(kind(&[good[1], good[0]]), Some(ErrorKind::Corrupt), "another order");
        // The same epoch and number, as after an attempt that failed.
        let mut attempt = Index { entries: index.entries.clone(), zeros: Vec::new() };
        attempt.entries[299].checksum ^= 1;
        let (attempt, _) = encoded(&attempt, 9);
        assert_eq!(kind(&[good[0], attempt[1]]), Some(ErrorKind::Corrupt), "another attempt");
        let mut damaged = good.clone();
        damaged[0][77] ^= 1;
        assert_eq!(kind(&damaged), Some(ErrorKind::Checksum));
    }

    #[test]
    fn what_comes_next_is_cut_where_it_is_asked_for() {
        let index = index(&[3, 4, 5, 6, 20], &[(7, 3), (30, 1)]);
        let next = |from: u64, most| match index.next(PageNo(from), most) {
            Some(Next::Contents(entries)) => Ok(entries),
            Some(Next::Zeros(range)) => Err(Some((range.first.0, range.pages))),
            None => Err(None),
        };
        assert_eq!(next(0, 3), Ok(0..3));
        assert_eq!(next(4, 9), Ok(1..4));
        assert_eq!(next(7, 1), Err(Some((7, 3))));
        assert_eq!(next(9, 1), Err(Some((9, 1))));
        assert_eq!(next(10, 1), Ok(4..5));
        assert_eq!(next(21, 1), Err(Some((30, 1))));
        assert_eq!(next(31, 1), Err(None));
    }

    #[test]
    fn a_page_that_comes_twice_is_refused() {
        let twice = [
            index(&[5, 9, 5], &[]),
            index(&[5], &[(4, 2)]),
            index(&[], &[(8, 2), (9, 1)]),
            index(&[1, 2, 40], &[(50, 2), (30, 11)]),
        ];
        for mut index in twice {
            let error = index.sort().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{index:?}");
        }
        assert!(index(&[9, 5, 3], &[(6, 3), (4, 1)]).sort().is_ok());
    }
}
