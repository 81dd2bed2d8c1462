//! Writes and trims: they go to the flash, once destaging has made enough room and preserved the
//! old content.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;

use crate::dirty::Costs;
use crate::fault_points::Fault;
use crate::large::too_many_zeros;
use crate::tiered::Tiered;

/// Pages of one write.
pub(crate) enum Pages<'a, P> {
    /// Consecutive, from this page on.
    Run(PageNo, &'a [P]),
    /// At any positions.
    Scattered(&'a [(PageNo, P)]),
}

impl<P> Clone for Pages<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Pages<'_, P> {}

impl<'a, P: Payload> Pages<'a, P> {
    fn len(self) -> usize {
        match self {
            Pages::Run(_, pages) => pages.len(),
            Pages::Scattered(pages) => pages.len(),
        }
    }

    fn number(self, at: usize) -> PageNo {
        match self {
            Pages::Run(first, _) => PageNo(first.0 + at as u64),
            Pages::Scattered(pages) => pages[at].0,
        }
    }

    fn numbers(self) -> impl Iterator<Item = PageNo> + Clone + 'a {
        (0..self.len()).map(move |at| self.number(at))
    }

    fn contents(self) -> impl Iterator<Item = (PageNo, P)> + 'a {
        (0..self.len()).map(move |at| match self {
            Pages::Run(_, pages) => (self.number(at), pages[at].clone()),
            Pages::Scattered(pages) => pages[at].clone(),
        })
    }

    /// The smallest range that contains all of them.
    fn range(self) -> PageRange {
        let (first, last) = (self.numbers().min(), self.numbers().max());
        let (first, last) = (first.unwrap_or(PageNo(0)), last.unwrap_or(PageNo(0)));
        PageRange::new(first, last.0 - first.0 + 1)
    }
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Writes `pages`, all or nothing. `accepted` is called in the step in which they become visible.
    pub(crate) async fn put(
        &self,
        pages: Pages<'_, M::Page>,
        accepted: impl FnOnce(),
    ) -> Result<()> {
        let mut accepted = Some(accepted);
        if pages.len() == 0 {
            return self.drive.check_failed();
        }
        let range = pages.range();
        let passes = matches!(pages, Pages::Run(..)) && self.passes(range);
        let mut round = 0;
        loop {
            self.drive.check_failed()?;
            let is_open = || (!self.destager.closing.get()).then_some(());
            self.may_change.until(is_open).await;
            self.wait_for_room(pages).await?;
            self.preserve(pages.numbers()).await?;
            let accept = || {
                let may_change = is_open().is_some() && self.may_change(pages.numbers());
                if !may_change || !self.has_room(pages) {
                    return None;
                }
                self.changes(pages.numbers());
                if passes {
                    self.dirty.borrow_mut().passes(range);
                }
                round = self.round_of_changes();
                if let Some(accepted) = accepted.take() {
                    accepted();
                }
                Some(pages.contents())
            };
            if self.drive.write_if(range, pages.len() as u32, accept).await? {
                self.count(|counts| counts.pages_written += pages.len() as u64);
                return self.until_safe(round).await;
            }
        }
    }

    /// Trims `range`, which lies on the device.
    pub(crate) async fn trim_range(self: Rc<Self>, range: PageRange) -> Result<()> {
        self.wait_for_trim_room(1).await?;
        // An epoch that is being closed and written to the journal must have all of a trim or
        // nothing of it.
        let turn = self.trim_turn.acquire(1).await;
        let round = Rc::new(Cell::new(0));
        self.trimming.borrow_mut().insert_range(range);
        let (tiered, round_of) = (Rc::clone(&self), Rc::clone(&round));
        let in_force = move || {
            let changed = tiered.trimming.take();
            round_of.set(tiered.changes_in_force(&changed, 1));
        };
        let trimmed = self.drive.trim_then(range, in_force).await;
        self.trimming.take();
        drop(turn);
        trimmed?;
        self.until_safe(round.get()).await
    }

    /// Waits until the next epoch has room for `trims` more trims. This waits only after tens of
    /// thousands of scattered trims.
    pub(crate) async fn wait_for_trim_room(&self, trims: u64) -> Result<()> {
        if self.has_room_for_trims(trims) {
            return Ok(());
        }
        if trims > self.trims_max() {
            return Err(too_many_zeros(trims, self.trims_max()));
        }
        self.destager.hurry();
        let room = || {
            let failed = self.drive.check_failed().err();
            failed.map(Err).or_else(|| self.has_room_for_trims(trims).then_some(Ok(())))
        };
        self.may_change.until(room).await
    }

    /// Records that the pages change in this step.
    fn changes(&self, pages: impl Iterator<Item = PageNo>) {
        let dirty = &mut *self.dirty.borrow_mut();
        if dirty.is_empty() {
            self.home_is_behind_now();
        }
        for page in pages {
            dirty.changed(page);
            self.reads.changed(PageRange::new(page, 1));
        }
        self.destager.wake();
    }

    fn may_change(&self, mut pages: impl Iterator<Item = PageNo>) -> bool {
        let dirty = self.dirty.borrow();
        Fault::PagesNotPreserved.is_planted()
            || dirty.all_may_change()
            || pages.all(|page| dirty.may_change(page))
    }

    fn costs(&self, pages: Pages<'_, M::Page>) -> Costs {
        self.dirty.borrow().costs(pages.numbers())
    }

    /// Whether these pages may become dirty, besides the staged pages. Pages that are already dirty
    /// may change at any time.
    fn has_room(&self, pages: Pages<'_, M::Page>) -> bool {
        let taken = self.dirty_and_staged();
        taken + pages.len() as u64 <= self.options.dirty_hard_pages
            || taken + self.costs(pages).dirty <= self.options.dirty_hard_pages
    }

    /// Waits until these pages may become dirty, and for the writer's turn if many pages are dirty.
    async fn wait_for_room(&self, pages: Pages<'_, M::Page>) -> Result<()> {
        let dirty = self.drive.ftl().dirty_pages();
        let is_slowed = dirty + pages.len() as u64 > self.options.dirty_soft_pages;
        if !is_slowed && self.has_room(pages) {
            return Ok(());
        }
        self.destager.hurry();
        let now_ns = self.runtime.now_ns();
        let turn_ns = self.pace.turn_ns(now_ns, dirty, self.costs(pages).going_home);
        if turn_ns > now_ns {
            self.runtime.sleep_until(turn_ns).await;
        }
        let room = || {
            let failed = self.drive.check_failed().err();
            failed.map(Err).or_else(|| self.has_room(pages).then_some(Ok(())))
        };
        let waited = self.may_change.until(room).await;
        let until_ns = self.runtime.now_ns();
        self.count(|counts| counts.throttled_ns += until_ns - now_ns);
        waited
    }

    /// Appends to the journal the content of these pages that the present epoch needs, before they
    /// change.
    async fn preserve(&self, pages: impl Iterator<Item = PageNo> + Clone) -> Result<()> {
        while !self.may_change(pages.clone()) {
            let pending: Vec<PageNo> = {
                let dirty = self.dirty.borrow();
                pages.clone().filter(|page| dirty.pending.contains(*page)).collect()
            };
            if pending.is_empty() {
                let moved = || self.may_change(pages.clone()).then_some(());
                self.may_change.until(moved).await;
                continue;
            }
            self.count(|counts| counts.journal_pages_preserved += pending.len() as u64);
            let preserve = |tiered: Rc<Self>| async move {
                tiered.write_to_journal(pending).await;
                Ok(())
            };
            self.commands.run("preserve", preserve).await?;
        }
        Ok(())
    }
}
