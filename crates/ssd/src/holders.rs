//! Records which transaction holds a page. The first transaction that writes a page holds it until
//! it ends. Until then readers see the old content, and nobody can write that content back over the
//! commit. Any other change of the page, in a transaction or outside, fails with `Conflict`.
//! Changes that were accepted before the page was held are not searched for.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, FastMap, PageNo, PageRange, Result, TxId};
use tantalum_runtime::sync::WaitQueue;

use crate::fault_points::Fault;

/// The pages that transactions hold.
pub(crate) struct Holders {
    by_page: FastMap<PageNo, TxId>,
    released: Rc<WaitQueue>,
}

impl Holders {
    /// No page is held.
    pub(crate) fn new() -> Self {
        let released = Rc::new(WaitQueue::new("a page that a transaction holds"));
        Holders { by_page: FastMap::default(), released }
    }

    /// Woken when pages are released.
    pub(crate) fn released(&self) -> Rc<WaitQueue> {
        Rc::clone(&self.released)
    }

    /// Records that `tx` holds `pages`, which are free or already its own.
    pub(crate) fn take(&mut self, tx: TxId, pages: impl Iterator<Item = PageNo>) {
        self.by_page.extend(pages.map(|page| (page, tx)));
    }

    /// Releases `pages`.
    pub(crate) fn release(&mut self, pages: &[PageNo]) {
        for page in pages {
            self.by_page.remove(page);
        }
        self.released.wake_all();
    }

    /// Fails with `Conflict` if a transaction other than `own` holds one of `pages`.
    pub(crate) fn check(
        &self,
        mut pages: impl Iterator<Item = PageNo>,
        own: Option<TxId>,
    ) -> Result<()> {
        if self.by_page.is_empty() {
            return Ok(());
        }
        let foreign = pages.find_map(|page| {
            let holder = *self.by_page.get(&page)?;
            (Some(holder) != own).then_some((page, holder))
        });
        foreign.map_or(Ok(()), |(page, holder)| Err(held(page, holder)))
    }

    /// Checks a change outside of transactions: fails with `Conflict` if any transaction holds one
    /// of `pages`.
    pub(crate) fn check_outside(&self, pages: impl Iterator<Item = PageNo>) -> Result<()> {
        if Fault::HeldPagesOpen.is_planted() { Ok(()) } else { self.check(pages, None) }
    }

    /// Like [`check_outside`](Self::check_outside), for a range of any length.
    pub(crate) fn check_range(&self, range: PageRange) -> Result<()> {
        if range.pages <= self.by_page.len() as u64 {
            return self.check_outside(range.iter());
        }
        let first = self.by_page.keys().filter(|page| range.contains(**page)).min();
        self.check_outside(first.copied().into_iter())
    }
}

fn held(page: PageNo, holder: TxId) -> Error {
    let context = format!(
        "page {page} is held by open transaction {holder}: try again when that is committed or aborted"
    );
    Error::new(ErrorKind::Conflict, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_page_is_found_in_short_ranges_and_in_long_ones() {
        let mut holders = Holders::new();
        holders.take(TxId(1), [70, 20, 30].into_iter().map(PageNo));
        let refused = |first, pages| {
            let checked = holders.check_range(PageRange::new(PageNo(first), pages));
            checked.err().map(|error| error.to_string())
        };
        for (first, pages, page) in [(19, 2, 20), (10, 50, 20), (21, 1 << 40, 30), (70, 1, 70)] {
            let text = refused(first, pages).unwrap();
            assert!(text.contains(&format!("page {page} ")), "{text}");
        }
        for (first, pages) in [(21, 9), (0, 20), (71, 1 << 40), (20, 0)] {
            assert_eq!(refused(first, pages), None, "{first}+{pages}");
        }
    }
}
