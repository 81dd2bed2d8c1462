//! Changes of the same pages take effect one after the other, in the order in which they came.
//!
//! A device without a write cache sends what comes to the log at once, and the smaller of two
//! commands may be done first. Were both to change a page, readers could see the second without the
//! first, and later the first behind it.
use std::cell::RefCell;
use tantalum_base::{FastSet, PageNo, PageRange};
use tantalum_ftl::planted::{Fault, is_planted};
use tantalum_runtime::sync::{Semaphore, WaitQueue};

/// The pages that are being changed.
pub(crate) struct PageTurns {
    /// Who waits for pages keeps those behind it from overtaking.
    coming: Semaphore,
    busy: RefCell<Busy>,
    ended: WaitQueue,
}

#[derive(Default)]
struct Busy {
    pages: FastSet<PageNo>,
    ranges: Vec<PageRange>,
}

/// What one command changes, until it is dropped.
pub(crate) struct PageTurn<'a> {
    turns: &'a PageTurns,
    pages: Vec<PageNo>,
    range: Option<PageRange>,
}

impl PageTurns {
    pub(crate) fn new() -> Self {
        PageTurns {
            coming: Semaphore::new("the turn to change pages", 1),
            busy: RefCell::default(),
            ended: WaitQueue::new("changes of the same pages"),
        }
    }

    /// Waits until nobody else changes one of `pages`, none of which occurs twice.
    pub(crate) async fn pages(&self, pages: Vec<PageNo>) -> PageTurn<'_> {
        self.turn(pages, None).await
    }

    /// Waits until nobody else changes a page of `range`.
    pub(crate) async fn range(&self, range: PageRange) -> PageTurn<'_> {
        self.turn(Vec::new(), Some(range)).await
    }

    async fn turn(&self, pages: Vec<PageNo>, range: Option<PageRange>) -> PageTurn<'_> {
        let _coming = self.coming.acquire(1).await;
        let free = || {
            let overlaps = self.busy.borrow().overlaps(&pages, range);
            (!overlaps || is_planted(Fault::ChangesOvertake)).then_some(())
        };
        self.ended.until(free).await;
        let mut busy = self.busy.borrow_mut();
        busy.pages.extend(&pages);
        busy.ranges.extend(range);
        PageTurn { turns: self, pages, range }
    }
}

impl Busy {
    fn overlaps(&self, pages: &[PageNo], range: Option<PageRange>) -> bool {
        let mut others = self.ranges.iter();
        match range {
            Some(range) => {
                others.any(|other| other.overlaps(range))
                    || self.pages.iter().any(|page| range.contains(*page))
            }
            None => {
                pages.iter().any(|page| self.pages.contains(page))
                    || others.any(|other| pages.iter().any(|page| other.contains(*page)))
            }
        }
    }
}

impl Drop for PageTurn<'_> {
    fn drop(&mut self) {
        let mut busy = self.turns.busy.borrow_mut();
        for page in &self.pages {
            busy.pages.remove(page);
        }
        if let Some(at) = busy.ranges.iter().position(|range| Some(*range) == self.range) {
            busy.ranges.swap_remove(at);
        }
        drop(busy);
        self.turns.ended.wake_all();
    }
}
