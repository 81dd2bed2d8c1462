//! Reference lists: the logical pages of each slot that has several.
//!
//! A slot of one page needs no entry here: `map` keeps that page in a table of fixed size. So only
//! sharing makes a device's reverse mapping grow, by these entries (SHARE, section 4.2.1, has 250
//! or 500 of 16 bytes).
use tantalum_base::{FastMap, PageNo, SlotNo};

/// Pages of one slot, as a list through `links`, oldest first.
#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
    pages: u32,
}

/// A page's neighbours in its slot's list; the page itself at an end.
#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

/// The pages of shared slots. A page is in at most one slot, so that each change takes constant
/// time, however many pages share the slot.
#[derive(Default)]
pub struct References {
    slots: FastMap<SlotNo, Ends>,
    links: FastMap<u32, Link>,
}

impl References {
    /// Entries beyond one page per slot, which `share_entries_max` limits.
    pub fn entries(&self) -> u64 {
        (self.links.len() - self.slots.len()) as u64
    }

    /// Slots that hold the content of several pages.
    pub fn slots(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Bytes of memory that the table occupies.
    pub fn memory_bytes(&self) -> u64 {
        (self.slots.allocation_size() + self.links.allocation_size()) as u64
    }

    /// Adds `page`, which is in no list, to the end of the list of `slot`.
    pub fn add(&mut self, slot: SlotNo, page: PageNo) {
        let page = page.0 as u32;
        let ends = self.slots.entry(slot).or_insert(Ends { first: page, last: page, pages: 0 });
        let before = ends.last;
        ends.last = page;
        ends.pages += 1;
        if let Some(link) = self.links.get_mut(&before) {
            link.after = page;
        }
        let known = self.links.insert(page, Link { before, after: page });
        debug_assert!(known.is_none(), "page {page} is in two slots");
    }

    /// Removes `page` from `slot`. If one page is left, returns it: the caller must keep it from
    /// now on.
    pub fn remove(&mut self, slot: SlotNo, page: PageNo) -> Option<PageNo> {
        let page = page.0 as u32;
        let link = self.links.remove(&page).expect("a page of a shared slot has a link");
        let ends = self.slots.get_mut(&slot).expect("a shared slot has its list");
        match self.links.get_mut(&link.before) {
            Some(before) if link.after == page => before.after = link.before,
            Some(before) => before.after = link.after,
            None => ends.first = link.after,
        }
        match self.links.get_mut(&link.after) {
            Some(after) if link.before == page => after.before = link.after,
            Some(after) => after.before = link.before,
            None => ends.last = link.before,
        }
        ends.pages -= 1;
        if ends.pages > 1 {
            return None;
        }
        let last = ends.first;
        self.slots.remove(&slot);
        self.links.remove(&last);
        Some(PageNo(u64::from(last)))
    }

    /// The pages of `slot`, oldest first.
    pub fn of(&self, slot: SlotNo) -> impl Iterator<Item = PageNo> + '_ {
        let mut next = self.slots.get(&slot).map(|ends| ends.first);
        std::iter::from_fn(move || {
            let page = next?;
            let after = self.links[&page].after;
            next = (after != page).then_some(after);
            Some(PageNo(u64::from(page)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Rng;

    #[test]
    fn beside_lists_of_pages() {
        let mut rng = Rng::split(1, "references");
        let mut table = References::default();
        let mut lists: Vec<Vec<u64>> = vec![Vec::new(); 4];
        for page in 0..4 {
            // A list needs at least two pages.
            lists[page as usize] = vec![page, page + 4];
            table.add(SlotNo(page as u32), PageNo(page));
            table.add(SlotNo(page as u32), PageNo(page + 4));
        }
        for _ in 0..2000 {
            let at = rng.below(4) as usize;
            let slot = SlotNo(at as u32);
            let free = (0..16).find(|page| lists.iter().all(|list| !list.contains(page)));
            match free {
                Some(page) if rng.chance(0.5) => {
                    table.add(slot, PageNo(page));
                    lists[at].push(page);
                }
                _ => {
                    let gone = rng.below(lists[at].len() as u64) as usize;
                    let page = lists[at].remove(gone);
                    let last = table.remove(slot, PageNo(page));
                    assert_eq!(last.is_some(), lists[at].len() == 1);
                    if let Some(last) = last {
                        assert_eq!(lists[at], [last.0]);
                        assert_eq!(table.of(slot).count(), 0);
                        let other = (0..16)
                            .find(|page| lists.iter().all(|list| !list.contains(page)))
                            .unwrap();
                        table.add(slot, last);
                        table.add(slot, PageNo(other));
                        lists[at].push(other);
                    }
                }
            }
            let found: Vec<u64> = table.of(slot).map(|page| page.0).collect();
            assert_eq!(found, lists[at]);
            let pages: usize = lists.iter().map(Vec::len).sum();
            assert_eq!((table.entries(), table.slots()), (pages as u64 - 4, 4));
        }
    }
}
