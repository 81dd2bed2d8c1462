//! The latest changes of a device, so that a client with pages in memory can find out which of them are stale.
//!
//! Changes are numbered consecutively as they complete. A bounded list records the pages of the latest changes. A
//! client whose last known change is older must treat all pages as changed.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tantalum_base::{PageNo, PageRange};

/// Total number of ranges recorded: 1.5 MiB.
const RANGES_MAX: usize = 1 << 16;

/// Ranges recorded for one change; a change with more counts as unknown.
pub(crate) const RANGES_OF_ONE_MAX: usize = 1 << 10;

/// The pages that changed since a given change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changed {
    /// These pages, possibly none.
    Pages(Vec<PageRange>),
    /// Possibly all pages.
    Everything,
}

impl Default for Changed {
    fn default() -> Self {
        Changed::Pages(Vec::new())
    }
}

impl Changed {
    /// Whether a page of `range` may have changed.
    pub fn concerns(&self, range: PageRange) -> bool {
        match self {
            Changed::Pages(changed) => changed.iter().any(|changed| changed.overlaps(range)),
            Changed::Everything => range.pages > 0,
        }
    }
}

/// The pages of one change: a few ranges, or unknown because there were too many.
#[derive(Clone, Debug)]
pub(crate) struct Touched(Option<Vec<PageRange>>);

impl Default for Touched {
    fn default() -> Self {
        Touched(Some(Vec::new()))
    }
}

impl Touched {
    pub(crate) fn range(range: PageRange) -> Touched {
        Touched(Some(vec![range]))
    }

    pub(crate) fn pages(pages: impl Iterator<Item = PageNo>) -> Touched {
        let mut touched = Touched::default();
        pages.for_each(|page| touched.add(PageRange::new(page, 1)));
        touched
    }

    /// Adds `range`, and merges it with the last range if it continues that.
    pub(crate) fn add(&mut self, range: PageRange) {
        let Some(ranges) = &mut self.0 else { return };
        let follows = |last: &&mut PageRange| last.end() == range.first;
        if let Some(last) = ranges.last_mut().filter(follows) {
            last.pages = last.pages.saturating_add(range.pages);
        } else if ranges.len() < RANGES_OF_ONE_MAX {
            ranges.push(range);
        } else {
            self.0 = None;
        }
    }
}

/// The recorded changes of a device.
#[derive(Default)]
pub struct Changes {
    /// Whether changes are recorded.
    watched: Cell<bool>,
    /// The number of the last change.
    last: Cell<u64>,
    /// The last change whose pages are unknown, or no longer recorded.
    last_unknown: Cell<u64>,
    /// A change was abandoned, and may take effect at any later time.
    in_doubt: Cell<bool>,
    /// The pages of the changes after `last_unknown`, in order.
    known: RefCell<VecDeque<(u64, PageRange)>>,
}

impl Changes {
    /// Starts recording. Before that, changes cost nothing.
    pub(crate) fn watch(&self) {
        self.watched.set(true);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watched.get()
    }

    /// The number of the last change.
    pub fn last(&self) -> u64 {
        self.last.get()
    }

    /// Records a completed change of these pages.
    pub(crate) fn done(&self, touched: Touched) {
        let number = self.last.get() + 1;
        self.last.set(number);
        let mut known = self.known.borrow_mut();
        let Some(ranges) = touched.0 else {
            self.last_unknown.set(number);
            known.clear();
            return;
        };
        known.extend(ranges.into_iter().map(|range| (number, range)));
        while known.len() > RANGES_MAX
            && let Some((number, _)) = known.pop_front()
        {
            self.last_unknown.set(number);
        }
    }

    /// Records that a caller abandoned a change, which may or may not take effect. From now on all pages always count as
    /// changed.
    pub(crate) fn given_up(&self) {
        self.in_doubt.set(true);
    }

    /// The pages that changed after change number `seen`; `Everything` if they would take more than `ranges_max`
    /// ranges.
    pub(crate) fn since(&self, seen: u64, ranges_max: usize) -> Changed {
        if self.in_doubt.get() || seen < self.last_unknown.get() || seen > self.last.get() {
            return Changed::Everything;
        }
        let known = self.known.borrow();
        let from = known.partition_point(|(number, _)| *number <= seen);
        match known.len() - from {
            ranges if ranges > ranges_max => Changed::Everything,
            _ => Changed::Pages(known.range(from..).map(|(_, range)| *range).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tantalum_base::Rng;

    fn pages(changed: Changed) -> Option<BTreeSet<u64>> {
        let Changed::Pages(ranges) = changed else { return None };
        Some(ranges.iter().flat_map(|range| range.iter()).map(|page| page.0).collect())
    }

    #[test]
    fn what_is_told_covers_what_was_done_since() {
        let mut rng = Rng::split(1, "changes");
        let (changes, mut model) = (Changes::default(), Vec::new());
        for _ in 0..3000 {
            let set: BTreeSet<u64> = (0..1 + rng.below(9)).map(|_| rng.below(1000)).collect();
            changes.done(Touched::pages(set.iter().copied().map(PageNo)));
            model.push(set);
            let seen = changes.last() - rng.below(changes.last().min(40) + 1);
            let expected: BTreeSet<u64> =
                model[seen as usize..].iter().flatten().copied().collect();
            assert_eq!(pages(changes.since(seen, usize::MAX)), Some(expected));
            assert_eq!(changes.since(changes.last(), 0), Changed::Pages(vec![]));
        }
        assert_eq!(changes.since(0, 100), Changed::Everything, "more than may be told");
        assert_eq!(
            changes.since(changes.last() + 1, 100),
            Changed::Everything,
            "of another server"
        );
    }

    #[test]
    fn what_nobody_remembers_is_everything() {
        let changes = Changes::default();
        let far = |number: u64| PageNo(number * 2);
        for number in 0..RANGES_MAX as u64 + 10 {
            changes.done(Touched::pages([far(number)].into_iter()));
        }
        assert_eq!(changes.since(9, usize::MAX), Changed::Everything);
        assert_eq!(pages(changes.since(10, usize::MAX)).map(|pages| pages.len()), Some(RANGES_MAX));
        let many = (0..=RANGES_OF_ONE_MAX as u64).map(far);
        changes.done(Touched::pages(many));
        let last = changes.last();
        assert_eq!(changes.since(last - 1, usize::MAX), Changed::Everything, "a large one");
        assert_eq!(changes.since(last, 0), Changed::Pages(vec![]), "which ends there");
        changes.given_up();
        assert_eq!(changes.since(last, usize::MAX), Changed::Everything);
    }
}
