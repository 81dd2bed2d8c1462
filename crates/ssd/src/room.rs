//! Admits writes to pages without content, if not all pages may have content at once. The staged
//! pages of open transactions use up this space too.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ZoneMedia;

use crate::options::SsdOptions;
use crate::ssd::Drive;

/// Checks that the FTL can serve the staging pages of `options`, if there are any.
///
/// # Errors
/// `InvalidInput` if it cannot.
pub(crate) fn check_staging<M: ZoneMedia>(ftl: &Ftl<M>, options: &SsdOptions) -> Result<()> {
    let FtlOptions { pages, mapped_pages_max, cache, dump, .. } = ftl.options();
    let without_home = cache.map(|cache| cache.staging_pages);
    let problem = if without_home.unwrap_or(options.staging_pages) != options.staging_pages {
        "the cache of the home has a different number of staging pages"
    } else if options.staging_pages == 0 {
        return Ok(());
    } else if *pages <= options.staging_pages {
        "they leave no page for hosts"
    } else if cache.is_none()
        && mapped_pages_max.is_none_or(|most| most < pages - options.staging_pages)
    {
        "the FTL has no room for all pages that hosts see"
    } else if dump.is_some() {
        "a dump does not cover them"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("pages cannot be staged: {problem}")))
}

/// Number of staging pages that still have content from before the device was opened.
pub(crate) fn left_staged<M: ZoneMedia>(ftl: &Ftl<M>, options: &SsdOptions) -> u64 {
    match options.staging_pages {
        0 => 0,
        staged => ftl.mapped_from(PageNo(ftl.options().pages - staged)),
    }
}

/// The number of pages that may have content at once, and of those that have it.
struct Room {
    pages: u64,
    mapped: u64,
    /// Upper bound of the pages in the write cache that have no place in the log yet.
    waiting_at_most: u64,
}

impl Room {
    /// Whether there is enough room for a write of `needed` pages. `new` counts its pages without
    /// content. `waiting` counts the pages without a place that are in the write cache; it walks
    /// the whole cache. Both are called only if the device is full or nearly full, `waiting` only
    /// if some page is new.
    fn is_enough(
        &self,
        needed: u32,
        new: impl FnOnce() -> u64,
        waiting: impl FnOnce() -> u64,
    ) -> bool {
        let is_enough_for = |new: u64, waiting: u64| self.mapped + waiting + new <= self.pages;
        if is_enough_for(needed.into(), self.waiting_at_most) {
            return true;
        }
        let new = new();
        new == 0 || is_enough_for(new, self.waiting_at_most) || is_enough_for(new, waiting())
    }
}

impl<M: ZoneMedia> Drive<M> {
    /// The pages in which transactions are staged.
    pub fn staging(&self) -> PageRange {
        let pages = self.ftl.options().pages;
        let staged = self.options.staging_pages;
        PageRange::new(PageNo(pages - staged), staged)
    }

    /// Whether content of transactions that ended may still be in staging pages.
    pub fn has_left_staged(&self) -> bool {
        self.leaving.get() > 0
    }

    /// Whether there is room for `needed` more pages; some of `pages` may already have content.
    pub(crate) fn has_room(&self, needed: u32, pages: impl Iterator<Item = PageNo>) -> bool {
        let Some(most) = self.ftl.options().mapped_pages_max else { return true };
        let cache = self.cache.borrow();
        // Staging pages of committed transactions will be trimmed soon. Meanwhile they share slots
        // with the committed pages.
        let mapped = self.ftl.mapped_pages().saturating_sub(self.leaving.get());
        let room = Room { pages: most, mapped, waiting_at_most: cache.new_frames().into() };
        let is_new = |page: &PageNo| !self.ftl.is_mapped(*page);
        let new = || pages.filter(|page| cache.get(*page).is_none()).filter(is_new).count() as u64;
        let waiting = || cache.pages().filter(is_new).count() as u64;
        room.is_enough(needed, new, waiting)
    }

    /// The error of a write that has no room.
    pub(crate) fn no_room(&self) -> Error {
        let most = self.ftl.options().mapped_pages_max.unwrap_or(0);
        let context = format!(
            "the device is full: {most} pages may have content at once, including those that open transactions \
             wrote (trim pages, or commit in smaller parts; more device.over_provisioning gives more room)"
        );
        Error::new(ErrorKind::OutOfSpace, context)
    }

    /// Remaps the pages of a transaction to their staging pages, and trims the pages that it wrote
    /// zeros to. `ended` is called in the step in which readers see this. Runs to the end even if
    /// the caller drops the future.
    pub(crate) async fn take_over_pairs(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let take_over = |drive: Rc<Self>| async move {
            let leaving = Rc::clone(&drive);
            let count = pairs.len() as u64;
            let placed = move || {
                leaving.leaving.set(leaving.leaving.get() + count);
                ended();
            };
            drive.share_in_turn(&pairs, &zeros, placed).await
        };
        self.commands.run("commit of a large transaction", take_over).await
    }

    /// Records that the trim of `range` is in force.
    pub(crate) fn trimmed(&self, range: PageRange) {
        if range.first >= self.staging().first {
            self.leaving.set(self.leaving.get().saturating_sub(range.pages));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { pages: 100, mapped: 90, waiting_at_most: 6 };

    fn not_asked() -> u64 {
        panic!("there is no need to count")
    }

    #[test]
    fn pages_are_looked_at_where_the_room_is_short_alone() {
        assert!(ROOM.is_enough(4, not_asked, not_asked));
        assert!(ROOM.is_enough(5, || 4, not_asked), "one of them has content");
    }

    #[test]
    fn the_write_cache_is_not_walked_for_pages_that_have_content() {
        let full = Room { mapped: 100, ..ROOM };
        assert!(full.is_enough(200, || 0, not_asked));
    }

    #[test]
    fn pages_that_got_their_place_meanwhile_are_not_counted_twice() {
        assert!(ROOM.is_enough(5, || 5, || 5));
        assert!(!ROOM.is_enough(5, || 5, || 6));
    }
}
