//! Which pages home does not have as they are, and which of them are on their way.
use tantalum_base::{PageNo, PageRange};

use crate::page_set::PageSet;

/// The dirty pages of a cache, as the destager sees them. It works in rounds: it takes pages, writes them
/// home, and marks those clean that nobody changed meanwhile.
#[derive(Default)]
pub(crate) struct DirtyPages {
    /// Changed since the present round took its pages, or not taken by it.
    pub fresh: PageSet,
    /// Taken by the present round, and not clean yet.
    pub round: PageSet,
    /// Of these, the pages whose content of the moment when they were taken is nowhere but in the cache.
    pub pending: PageSet,
    /// Of the round's pages, those that are clean and only fill gaps.
    filled: PageSet,
    /// Pages that are being read for the journal.
    pub moving: PageSet,
    /// Dirty pages of long streams, which do not stay when home has them.
    passing: PageSet,
    /// Dirty pages that the flash could not read when they were to go home. Nothing says that they are lost: they are tried
    /// again. In neither of the sets above.
    pub unreadable: PageSet,
    /// Pages that the flash has lost: nobody can write them home before they are changed.
    pub lost: PageSet,
    /// Those of them that the present round should have, also where they changed since it took its pages.
    pub lacked: PageSet,
}

/// What a write costs the home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Pages that are dirty then and were not.
    pub dirty: u64,
    /// Pages that go home one time more.
    pub going_home: u64,
}

impl DirtyPages {
    /// Notes that `page` changes.
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

    /// Notes that all of `range` changes.
    pub fn changed_range(&mut self, range: PageRange) {
        self.fresh.insert_range(range);
        self.unreadable.remove_range(range);
        self.lost.remove_range(range);
        self.passing.remove_range(range);
    }

    /// Notes that what `range` holds now is part of a stream that is too long to stay.
    pub fn passes(&mut self, range: PageRange) {
        self.passing.insert_range(range);
    }

    /// Forgets that `page`, which home has now, was part of such a stream; whether it was.
    pub fn take_passed(&mut self, page: PageNo) -> bool {
        !self.passing.is_empty() && self.passing.remove(page)
    }

    /// Whether `page` may change: what it held when the round took it is safe.
    pub fn may_change(&self, page: PageNo) -> bool {
        !self.pending.contains(page) && !self.moving.contains(page)
    }

    /// Whether every page may change.
    pub fn all_may_change(&self) -> bool {
        self.pending.is_empty() && self.moving.is_empty()
    }

    /// Of `pages`, how many are not dirty and how many have to be brought home once more, when they
    /// change.
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

    /// Whether `page` is dirty, or a change of it is under way.
    pub fn contains(&self, page: PageNo) -> bool {
        let sets = [&self.fresh, &self.round, &self.unreadable, &self.lost];
        sets.iter().any(|set| set.contains(page))
    }

    /// Number of dirty pages, trimmed and lost ones too; a page that changed since it was taken counts twice.
    pub fn len(&self) -> u64 {
        [&self.fresh, &self.round, &self.unreadable, &self.lost].map(PageSet::len).iter().sum()
    }

    /// Whether home has everything.
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

    /// Lets the next round take what could not be read.
    pub fn try_again(&mut self) {
        self.fresh.extend(&std::mem::take(&mut self.unreadable));
    }

    /// Pages that could not be read, and the first of them.
    pub fn count_unreadable(&self) -> (u64, Option<PageNo>) {
        (self.unreadable.len(), self.unreadable.next(PageNo(0)))
    }

    /// Notes that `page` could not be read, and that nothing says it is lost: no round has it until it is tried again.
    pub fn set_aside(&mut self, page: PageNo) {
        self.round.remove(page);
        // Where it changed meanwhile, that cannot be read, or is tried again with it.
        self.fresh.remove(page);
        self.unreadable.insert(page);
    }

    /// Notes that the flash has lost `page`: the round lacks it.
    pub fn lose(&mut self, page: PageNo) {
        self.round.remove(page);
        self.unreadable.remove(page);
        self.lost.insert(page);
        self.lacked.insert(page);
    }

    /// Begins a round with the pages of `ranges` alone.
    pub fn take(&mut self, ranges: &[PageRange]) {
        self.give_up();
        for range in ranges {
            self.fresh.runs_in(*range).for_each(|run| _ = self.round.insert_range(run));
            self.fresh.remove_range(*range);
        }
    }

    /// Gives the round up: what it took and did not mark clean is as before.
    pub fn give_up(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        self.filled.iter().for_each(|page| _ = round.remove(page));
        self.fresh.extend(&round);
        self.pending = PageSet::new();
        self.filled = PageSet::new();
    }

    /// Forgets what is left of the round: home has it.
    pub fn end_round(&mut self) {
        self.round = PageSet::new();
        self.filled = PageSet::new();
    }

    /// The pages of `range` that home has now as they are: those of the round that did not change. They
    /// leave it.
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
