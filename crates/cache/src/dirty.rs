//! The pages that differ from the home, and those of them that are being destaged.
use tantalum_base::{PageNo, PageRange};

use crate::page_set::PageSet;

/// The dirty pages of a cache, as the destager sees them. The destager works in rounds: it takes
/// pages, writes them to the home, and marks those clean that did not change meanwhile.
#[derive(Default)]
pub(crate) struct DirtyPages {
    /// Changed since the present round took its pages, or not taken by it.
    pub fresh: PageSet,
    /// Taken by the present round, and not clean yet.
    pub round: PageSet,
    /// Pages of the round whose content is not in the journal yet, in epochs. They must not change
    /// before it has been read for the journal.
    pub pending: PageSet,
    /// The pages of the round that are clean and only fill gaps.
    filled: PageSet,
    /// Pages that are being read for the journal.
    pub moving: PageSet,
    /// Dirty pages of long streams, which do not stay in the cache once the home has them.
    passing: PageSet,
    /// Dirty pages that the flash could not read for destaging. They are not known to be lost, and
    /// are retried. None of them is in the sets above.
    pub unreadable: PageSet,
    /// Pages that the flash has lost: they cannot be destaged before they are changed.
    pub lost: PageSet,
    /// The lost pages that the present round should contain. A page stays here even if it changes
    /// after the round took its pages.
    pub lacked: PageSet,
}

/// The cost of a write: the work that it adds to destaging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Pages that become dirty by it.
    pub dirty: u64,
    /// Pages that must be destaged once more.
    pub going_home: u64,
}

impl DirtyPages {
    /// Records that `page` changes.
    pub fn changed(&mut self, page: PageNo) {
        self.fresh.insert(page);
        for absent in [&mut self.unreadable, &mut self.lost] {
            if !absent.is_empty() {
                absent.remove(page);
            }
        }
        if !self.passing.is_empty() {
            self.passing.remove(page);
        }
    }

    /// Records that all of `range` changes.
    pub fn changed_range(&mut self, range: PageRange) {
        self.fresh.insert_range(range);
        self.unreadable.remove_range(range);
        self.lost.remove_range(range);
        self.passing.remove_range(range);
    }

    /// Records that the present content of `range` belongs to a stream that is too long to stay.
    pub fn passes(&mut self, range: PageRange) {
        self.passing.insert_range(range);
    }

    /// Removes `page`, which the home has now, from the pages of long streams; returns whether it
    /// was one of them.
    pub fn take_passed(&mut self, page: PageNo) -> bool {
        !self.passing.is_empty() && self.passing.remove(page)
    }

    /// Whether `page` may change: the round no longer needs its old content.
    pub fn may_change(&self, page: PageNo) -> bool {
        !self.pending.contains(page) && !self.moving.contains(page)
    }

    /// Whether every page may change.
    pub fn all_may_change(&self) -> bool {
        self.pending.is_empty() && self.moving.is_empty()
    }

    /// The cost of changing `pages`: how many are not dirty yet, and how many must be destaged once
    /// more.
    pub fn costs(&self, pages: impl Iterator<Item = PageNo>) -> Costs {
        let mut costs = Costs::default();
        for page in pages.filter(|page| !self.fresh.contains(*page)) {
            costs.going_home += 1;
            let is_dirty = self.round.contains(page) && !self.filled.contains(page);
            costs.dirty += u64::from(!is_dirty && !self.unreadable.contains(page));
        }
        costs
    }

    /// Adds a clean page to the round.
    pub fn fill(&mut self, page: PageNo) {
        self.round.insert(page);
        self.pending.insert(page);
        self.filled.insert(page);
    }

    /// Whether `page` is dirty, or is a clean page of the round that fills a gap.
    pub fn contains(&self, page: PageNo) -> bool {
        let sets = [&self.fresh, &self.round, &self.unreadable, &self.lost];
        sets.iter().any(|set| set.contains(page))
    }

    /// Number of dirty pages, including trimmed and lost ones; a page that changed since it was
    /// taken counts twice.
    pub fn len(&self) -> u64 {
        [&self.fresh, &self.round, &self.unreadable, &self.lost].map(PageSet::len).iter().sum()
    }

    /// Whether the home has everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins a round with all pages that are not lost.
    pub fn take_all(&mut self) {
        self.give_up();
        self.try_again();
        self.round = std::mem::take(&mut self.fresh);
        self.lacked = self.lost.clone();
    }

    /// Lets the next round take the unreadable pages.
    pub fn try_again(&mut self) {
        self.fresh.extend(&std::mem::take(&mut self.unreadable));
    }

    /// The number of unreadable pages, and the first of them.
    pub fn count_unreadable(&self) -> (u64, Option<PageNo>) {
        (self.unreadable.len(), self.unreadable.next(PageNo(0)))
    }

    /// Records that `page` could not be read, but is not known to be lost: no round has it until it
    /// is retried.
    pub fn set_aside(&mut self, page: PageNo) {
        self.round.remove(page);
        // If it changed meanwhile, the new content is unreadable too, or is retried with it.
        self.fresh.remove(page);
        self.unreadable.insert(page);
    }

    /// Records that the flash has lost `page`: the round goes on without it.
    pub fn lose(&mut self, page: PageNo) {
        self.round.remove(page);
        self.unreadable.remove(page);
        self.lost.insert(page);
        self.lacked.insert(page);
    }

    /// Begins a round with only the pages of `ranges`.
    pub fn take(&mut self, ranges: &[PageRange]) {
        self.give_up();
        for range in ranges {
            self.fresh.runs_in(*range).for_each(|run| _ = self.round.insert_range(run));
            self.fresh.remove_range(*range);
        }
    }

    /// Abandons the round: the pages that it took and did not mark clean are dirty as before.
    pub fn give_up(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        self.filled.iter().for_each(|page| _ = round.remove(page));
        self.fresh.extend(&round);
        self.pending = PageSet::new();
        self.filled = PageSet::new();
    }

    /// Drops the remaining pages of the round: the home has them.
    pub fn end_round(&mut self) {
        self.round = PageSet::new();
        self.filled = PageSet::new();
    }

    /// Returns the pages of `range` whose current content is now on the home: those of the round
    /// that did not change. All pages of `range` leave the round.
    pub fn arrived(&mut self, range: PageRange) -> Vec<PageNo> {
        let mut arrived = Vec::new();
        let mut next = range.first;
        while let Some(page) = self.round.next(next).filter(|page| range.contains(*page)) {
            if !self.fresh.contains(page) {
                arrived.push(page);
            }
            next = PageNo(page.0 + 1);
        }
        self.round.remove_range(range);
        arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pages: &[u64]) -> PageSet {
        let mut set = PageSet::new();
        pages.iter().for_each(|page| _ = set.insert(PageNo(*page)));
        set
    }

    fn pages(set: &PageSet) -> Vec<u64> {
        set.iter().map(|page| page.0).collect()
    }

    #[test]
    fn what_changes_during_a_round_is_not_clean_after_it() {
        let mut dirty = DirtyPages { fresh: set(&[1, 2, 5, 9]), ..DirtyPages::default() };
        dirty.take_all();
        dirty.changed(PageNo(2));
        assert_eq!(dirty.arrived(PageRange::new(PageNo(0), 6)), [PageNo(1), PageNo(5)]);
        assert_eq!((pages(&dirty.fresh), pages(&dirty.round)), (vec![2], vec![9]));
        dirty.give_up();
        assert_eq!((pages(&dirty.fresh), pages(&dirty.round)), (vec![2, 9], vec![]));
    }

    #[test]
    fn a_write_costs_what_is_not_dirty_yet_and_what_goes_home_again() {
        let mut dirty = DirtyPages { fresh: set(&[1, 4]), ..DirtyPages::default() };
        dirty.take_all();
        dirty.changed(PageNo(7));
        dirty.fill(PageNo(2));
        let costs = |pages: &[u64], dirty: &DirtyPages| {
            let costs = dirty.costs(pages.iter().map(|page| PageNo(*page)));
            (costs.dirty, costs.going_home)
        };
        assert_eq!(costs(&[7], &dirty), (0, 0), "it goes with the next round as it is");
        assert_eq!(costs(&[1, 4], &dirty), (0, 2));
        assert_eq!(costs(&[2, 9], &dirty), (2, 2));
        assert!(!dirty.may_change(PageNo(2)), "it is not in the journal yet");
        dirty.changed(PageNo(2));
        assert_eq!(costs(&[2], &dirty), (0, 0));
        dirty.give_up();
        assert_eq!(pages(&dirty.fresh), [1, 2, 4, 7]);
        dirty.take_all();
        dirty.fill(PageNo(3));
        dirty.give_up();
        assert_eq!(pages(&dirty.fresh), [1, 2, 4, 7], "what only filled a gap is clean");
    }

    #[test]
    fn a_round_takes_what_it_asks_for() {
        let mut dirty = DirtyPages { fresh: set(&[1, 2, 3, 5, 8, 9]), ..DirtyPages::default() };
        dirty.take(&[PageRange::new(PageNo(2), 4), PageRange::new(PageNo(9), 100)]);
        assert_eq!((pages(&dirty.fresh), pages(&dirty.round)), (vec![1, 8], vec![2, 3, 5, 9]));
    }
}
