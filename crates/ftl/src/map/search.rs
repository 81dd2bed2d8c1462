//! Finds the next page of a kind, and skips the parts of the table in which nothing was ever written.
use tantalum_base::PageNo;

use crate::map::Mapping;
use crate::map::mapping::MARKED_PAGES;
use crate::map::packed::{CLEAN, Packed, REMAPPED, unpack};

impl Mapping {
    /// The first page from `page` on that was ever written, or trimmed.
    pub fn next_written(&self, page: u64) -> Option<u64> {
        self.next_where(page, |[.., low, middle, high]| {
            *low != 0 || *middle != 0 || high & !(REMAPPED | CLEAN) != 0
        })
    }

    /// The first page from `page` on that is out of date at the home of a cache.
    pub fn next_dirty(&self, page: u64) -> Option<u64> {
        self.next_where(page, |packed| unpack(packed, 0).is_dirty())
    }

    /// All pages with an entry. The cost depends on their number, not on the device's size.
    pub fn known_pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        let next = |page: u64| self.next_known(page);
        std::iter::successors(next(0), move |page| next(page + 1)).map(PageNo)
    }

    /// The first page from `page` on with an entry.
    pub fn next_known(&self, page: u64) -> Option<u64> {
        self.next_known_before(page, self.pages())
    }

    /// The same, before `end`.
    pub fn next_known_before(&self, page: u64, end: u64) -> Option<u64> {
        self.next_where_before(page, end, |packed| *packed != Packed::default())
    }

    /// The first page from `page` on whose entry is `wanted`. `wanted` must return false for pages that were never
    /// written.
    fn next_where(&self, page: u64, wanted: impl Fn(&Packed) -> bool) -> Option<u64> {
        self.next_where_before(page, self.pages(), wanted)
    }

    /// The same, before `limit`.
    fn next_where_before(
        &self,
        page: u64,
        limit: u64,
        wanted: impl Fn(&Packed) -> bool,
    ) -> Option<u64> {
        let limit = (limit as usize).min(self.forward.len());
        let mut at = page as usize;
        while at < limit {
            let end = (at / MARKED_PAGES + 1) * MARKED_PAGES;
            let end = end.min(limit);
            if self.written[at / MARKED_PAGES]
                && let Some(found) = self.forward[at..end].iter().position(&wanted)
            {
                return Some((at + found) as u64);
            }
            at = end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{MapEntry, Place};
    use tantalum_base::Version;

    #[test]
    fn pages_of_which_anything_is_known_are_found_wherever_they_are() {
        let pages = 5 * MARKED_PAGES as u64 + 7;
        let mut map = Mapping::new(pages, 16, true);
        assert_eq!((map.known_pages().next(), map.next_written(0)), (None, None));
        let marked = MARKED_PAGES as u64;
        let known = [0, 1, marked - 1, marked, 4 * marked - 1, pages - 2, pages - 1];
        for page in known {
            // A lost page with no version: it has an entry, too.
            let lost = MapEntry { place: Place::Lost, ..MapEntry::default() };
            let entry = if page == 1 { lost } else { MapEntry::trimmed(Version(page + 1)) };
            map.set(PageNo(page), entry);
        }
        assert!(map.known_pages().eq(known.map(PageNo)));
        let written = |page| map.next_written(page);
        assert_eq!((written(0), written(1), written(pages)), (Some(0), Some(marked - 1), None));
        let before = |page, end| map.next_known_before(page, end);
        assert_eq!((before(2, marked - 1), before(2, marked)), (None, Some(marked - 1)));
        assert_eq!((before(marked + 1, u64::MAX), before(3, 3)), (Some(4 * marked - 1), None));
    }
}
