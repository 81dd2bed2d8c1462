//! Changes of the same pages become visible one after the other, in the order of arrival.
//!
//! A device without a write cache sends each command to the log at once, and the smaller of two
//! commands may finish first. If both change a page, readers could see the second change without the
//! first, and later the first one on top of it. So each command, once it is on the medium, waits
//! until all earlier ones are visible. They are still written side by side.
use crate::fault_points::Fault;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tantalum_base::{FastMap, PageNo, PageRange};
use tantalum_runtime::sync::{Semaphore, WaitQueue};

/// The pages with changes in progress.
pub(crate) struct PageTurns {
    /// A command that waits for a range keeps later ones from overtaking.
    coming: Semaphore,
    next: Cell<u64>,
    changing: RefCell<Changing>,
    ended: WaitQueue,
}

/// Numbers of commands, oldest first.
#[derive(Default)]
struct Changing {
    pages: FastMap<PageNo, VecDeque<u64>>,
    ranges: Vec<(u64, PageRange)>,
}

/// The change of one command; it ends when this is dropped.
pub(crate) struct PageTurn<'a> {
    turns: &'a PageTurns,
    number: u64,
    pages: Vec<PageNo>,
    range: Option<PageRange>,
}

impl PageTurns {
    pub(crate) fn new() -> Self {
        PageTurns {
            coming: Semaphore::new("the turn to change pages", 1),
            next: Cell::new(0),
            changing: RefCell::default(),
            ended: WaitQueue::new("changes of the same pages"),
        }
    }

    /// Enters a change of `pages`, which must be distinct. It may go to the log when this returns,
    /// in the order of the calls, and may become visible after [`PageTurn::first`].
    pub(crate) async fn pages(&self, pages: Vec<PageNo>) -> PageTurn<'_> {
        let _coming = self.coming.acquire(1).await;
        let turn = self.enter(pages, None);
        self.ended.until(|| turn.waits_for_no_range().then_some(())).await;
        turn
    }

    /// Enters a change of `range`, once all earlier changes of its pages have ended. Later ones wait
    /// until it is dropped.
    pub(crate) async fn range(&self, range: PageRange) -> PageTurn<'_> {
        let _coming = self.coming.acquire(1).await;
        let turn = self.enter(Vec::new(), Some(range));
        turn.first().await;
        turn
    }

    fn enter(&self, pages: Vec<PageNo>, range: Option<PageRange>) -> PageTurn<'_> {
        let number = self.next.replace(self.next.get() + 1);
        let mut changing = self.changing.borrow_mut();
        for page in &pages {
            changing.pages.entry(*page).or_default().push_back(number);
        }
        changing.ranges.extend(range.map(|range| (number, range)));
        PageTurn { turns: self, number, pages, range }
    }
}

impl PageTurn<'_> {
    /// Waits until all earlier changes of the same pages are visible.
    pub(crate) async fn first(&self) {
        self.turns.ended.until(|| self.is_first().then_some(())).await;
    }

    fn is_first(&self) -> bool {
        if Fault::ChangesOvertake.is_planted() {
            return true;
        }
        let changing = self.turns.changing.borrow();
        let own = |page: &PageNo| changing.pages[page].front() == Some(&self.number);
        let before = |range: PageRange| {
            let before = |numbers: &VecDeque<u64>| numbers.front() < Some(&self.number);
            changing.pages.iter().any(|(page, numbers)| range.contains(*page) && before(numbers))
        };
        self.pages.iter().all(own)
            && !self.range.is_some_and(before)
            && self.waits_for_no_range_of(&changing)
    }

    fn waits_for_no_range(&self) -> bool {
        Fault::ChangesOvertake.is_planted()
            || self.waits_for_no_range_of(&self.turns.changing.borrow())
    }

    fn waits_for_no_range_of(&self, changing: &Changing) -> bool {
        let overlaps = |other: PageRange| {
            self.range.is_some_and(|own| own.overlaps(other))
                || self.pages.iter().any(|page| other.contains(*page))
        };
        !changing.ranges.iter().any(|(number, other)| *number < self.number && overlaps(*other))
    }
}

impl Drop for PageTurn<'_> {
    fn drop(&mut self) {
        let mut changing = self.turns.changing.borrow_mut();
        for page in &self.pages {
            if let Some(numbers) = changing.pages.get_mut(page) {
                numbers.retain(|number| *number != self.number);
                if numbers.is_empty() {
                    changing.pages.remove(page);
                }
            }
        }
        changing.ranges.retain(|(number, _)| *number != self.number);
        drop(changing);
        self.turns.ended.wake_all();
    }
}
