//! Remapped pages: the origins that their slots' spares name.
//!
//! A slot's spare names the page and the version for which its content was written. For most pages
//! that is the page itself and its version in the map. A share remaps a page to a slot of another
//! page, whose entry may have changed since, so the origin of the slot is kept here. Pages that are
//! not remapped cost nothing; all origins together never take more than a table of all pages.
use tantalum_base::checksum::crc32c;
use tantalum_base::{FastMap, PageNo, Version};

/// Checksum of the page and version that a spare names.
pub fn origin(page: PageNo, version: Version) -> u32 {
    let mut named = [0; 16];
    named[..8].copy_from_slice(&page.0.to_le_bytes());
    named[8..].copy_from_slice(&version.0.to_le_bytes());
    crc32c(&named)
}

/// The [`origin`] of each remapped page.
pub struct Remapped {
    pages: u64,
    few: FastMap<u32, u32>,
    // The origins of all pages, instead of `few`, once that takes less memory.
    many: Vec<u32>,
}

impl Remapped {
    /// None of `pages` pages is remapped.
    pub fn new(pages: u64) -> Self {
        Remapped { pages, few: FastMap::default(), many: Vec::new() }
    }

    /// The origin kept for `page`, which is remapped.
    pub fn get(&self, page: PageNo) -> u32 {
        match self.many.get(page.index()) {
            Some(origin) => *origin,
            None => self.few[&(page.0 as u32)],
        }
    }

    /// Whether an origin is kept for `page`; always true once this is a table of all pages.
    pub fn knows(&self, page: PageNo) -> bool {
        !self.many.is_empty() || self.few.contains_key(&(page.0 as u32))
    }

    /// Number of origins kept; `None` once this is a table of all pages.
    pub fn entries(&self) -> Option<u64> {
        self.many.is_empty().then_some(self.few.len() as u64)
    }

    /// Sets the origin of `page`.
    pub fn insert(&mut self, page: PageNo, origin: u32) {
        if let Some(kept) = self.many.get_mut(page.index()) {
            *kept = origin;
            return;
        }
        self.few.insert(page.0 as u32, origin);
        if self.few.allocation_size() as u64 > self.pages * 4 {
            self.many = vec![0; self.pages as usize];
            for (page, origin) in std::mem::take(&mut self.few) {
                self.many[page as usize] = origin;
            }
        }
    }

    /// Removes the origin of `page`, which is no longer remapped.
    pub fn remove(&mut self, page: PageNo) {
        self.few.remove(&(page.0 as u32));
    }

    /// Bytes of memory that the table occupies.
    pub fn memory_bytes(&self) -> u64 {
        (self.few.allocation_size() + self.many.len() * 4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_takes_no_more_than_a_table_of_all_pages() {
        let pages = 10_000;
        let mut remapped = Remapped::new(pages);
        assert_eq!(remapped.memory_bytes(), 0);
        let of = |page: u64| origin(PageNo(page), Version(1 << 40 | page));
        for page in (0..pages).rev() {
            remapped.insert(PageNo(page), 7);
            remapped.insert(PageNo(page), of(page));
            assert!(remapped.memory_bytes() <= pages * 4);
            if page % 3 == 0 {
                remapped.remove(PageNo(page));
            }
            let known = (page..pages).filter(|page| page % 3 > 0).step_by(97);
            known.for_each(|page| assert_eq!(remapped.get(PageNo(page)), of(page)));
        }
        assert_eq!(remapped.memory_bytes(), pages * 4);
    }

    #[test]
    fn the_same_page_or_version_is_not_the_same_origin() {
        let origins = [(5, 9), (6, 9), (5, 10), (9, 5), (5, 9 | 1 << 32)];
        let origins = origins.map(|(page, version)| origin(PageNo(page), Version(version)));
        for (at, one) in origins.iter().enumerate() {
            assert!(!origins[..at].contains(one), "{origins:?}");
        }
    }
}
