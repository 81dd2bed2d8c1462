//! The cached mapping table: some entries of the map, evicted in LRU order.
//!
//! It has two segments, as in the paper (Gupta et al., ASPLOS 2009, after Karedla, Love and Wherry,
//! "Caching strategies to improve disk system performance", IEEE Computer 27(3), 1994): entries
//! used once are evicted before entries used again.
use std::collections::{BTreeMap, BTreeSet};
use tantalum_base::{FastMap, PageNo};

use super::Slot;

struct Translation {
    slot: Slot,
    /// Key in its segment.
    used: u64,
    protected: bool,
}

/// Cached entries of the map.
#[derive(Default)]
pub(super) struct Cmt {
    capacity: usize,
    entries: FastMap<PageNo, Translation>,
    /// Pages whose entry on flash is out of date.
    dirty: BTreeSet<PageNo>,
    // Least recently used first.
    probation: BTreeMap<u64, PageNo>,
    protected: BTreeMap<u64, PageNo>,
    clock: u64,
}

impl Cmt {
    /// A table for `capacity` entries, half of them protected.
    pub fn new(capacity: u32) -> Self {
        Cmt { capacity: capacity as usize, ..Cmt::default() }
    }

    /// Whether a victim must be evicted before another entry is inserted.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// The entry of `page`, if it is cached; counts as a use.
    pub fn get(&mut self, page: PageNo) -> Option<Slot> {
        self.clock += 1;
        let entry = self.entries.get_mut(&page)?;
        let segment = if entry.protected { &mut self.protected } else { &mut self.probation };
        segment.remove(&entry.used);
        (entry.used, entry.protected) = (self.clock, true);
        self.protected.insert(self.clock, page);
        let slot = entry.slot;
        if self.protected.len() > self.capacity.div_ceil(2)
            && let Some((_, demoted)) = self.protected.pop_first()
        {
            self.clock += 1;
            self.probation.insert(self.clock, demoted);
            if let Some(entry) = self.entries.get_mut(&demoted) {
                (entry.used, entry.protected) = (self.clock, false);
            }
        }
        Some(slot)
    }

    /// Whether `page` is cached; does not count as a use.
    pub fn contains(&self, page: PageNo) -> bool {
        self.entries.contains_key(&page)
    }

    /// Inserts a clean entry; there must be room for it.
    pub fn insert(&mut self, page: PageNo, slot: Slot) {
        self.clock += 1;
        let entry = Translation { slot, used: self.clock, protected: false };
        self.probation.insert(self.clock, page);
        let replaced = self.entries.insert(page, entry);
        assert!(replaced.is_none() && self.entries.len() <= self.capacity, "{page} is cached");
    }

    /// Changes a cached entry, which becomes dirty.
    pub fn set(&mut self, page: PageNo, slot: Slot) {
        let entry = self.entries.get_mut(&page).expect("only cached entries are changed");
        entry.slot = slot;
        self.dirty.insert(page);
    }

    /// The entry to evict next, and whether it is dirty.
    pub fn victim(&self) -> Option<(PageNo, bool)> {
        let first = self.probation.first_key_value().or(self.protected.first_key_value());
        first.map(|(_, page)| (*page, self.dirty.contains(page)))
    }

    /// Removes a clean entry.
    pub fn remove(&mut self, page: PageNo) {
        debug_assert!(!self.dirty.contains(&page));
        if let Some(entry) = self.entries.remove(&page) {
            let segment = if entry.protected { &mut self.protected } else { &mut self.probation };
            segment.remove(&entry.used);
        }
    }

    /// The dirty entries from `first` to before `end`, in ascending order.
    pub fn dirty(&self, first: PageNo, end: PageNo) -> impl Iterator<Item = (PageNo, Slot)> + '_ {
        self.dirty.range(first..end).map(|page| (*page, self.entries[page].slot))
    }

    /// Marks the entries from `first` to before `end` as clean: they were written to flash.
    pub fn set_clean(&mut self, first: PageNo, end: PageNo) {
        let behind = self.dirty.split_off(&first);
        self.dirty.extend(behind.range(end..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u32) -> Slot {
        Slot(number)
    }

    #[test]
    fn what_was_used_once_goes_before_what_was_used_again() {
        let mut cmt = Cmt::new(4);
        for page in 0..4 {
            cmt.insert(PageNo(page), slot(page as u32));
        }
        assert_eq!(cmt.get(PageNo(0)), Some(slot(0)));
        assert_eq!(cmt.get(PageNo(9)), None);
        assert_eq!(cmt.victim(), Some((PageNo(1), false)));
        cmt.remove(PageNo(1));
        cmt.insert(PageNo(5), slot(5));
        // Two more uses. Page 0 is then the oldest of three for two protected places, and is again
        // evicted after page 5.
        cmt.get(PageNo(2));
        cmt.get(PageNo(3));
        assert_eq!(cmt.victim(), Some((PageNo(5), false)));
        cmt.remove(PageNo(5));
        assert_eq!(cmt.victim(), Some((PageNo(0), false)));
    }

    #[test]
    fn dirty_entries_of_a_range_become_clean_together() {
        let mut cmt = Cmt::new(8);
        for page in [1, 3, 5, 1024] {
            cmt.insert(PageNo(page), slot(0));
            cmt.set(PageNo(page), slot(page as u32 + 1));
        }
        assert_eq!(cmt.victim(), Some((PageNo(1), true)));
        let dirty = |cmt: &Cmt, end| cmt.dirty(PageNo(0), PageNo(end)).collect::<Vec<_>>();
        assert_eq!(dirty(&cmt, 1024), [1, 3, 5].map(|page| (PageNo(page), slot(page as u32 + 1))));
        cmt.set_clean(PageNo(2), PageNo(1024));
        assert_eq!(cmt.victim(), Some((PageNo(1), true)));
        cmt.set_clean(PageNo(0), PageNo(1024));
        assert_eq!(cmt.victim(), Some((PageNo(1), false)));
        assert_eq!(dirty(&cmt, 4096), [(PageNo(1024), slot(1025))]);
    }
}
