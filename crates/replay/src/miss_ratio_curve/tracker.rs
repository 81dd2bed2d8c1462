//! What each request means for caches of all sizes at once: from which size on it hits, and from
//! which size on the page's last update is not written back before its next.
//!
//! The second generalises stack distances. Under LRU with write-back an update of a page reaches the
//! disk before the page is updated again exactly if the page leaves the cache in between: in a cache
//! smaller than the greatest of the distances of its uses since that update, the next update's own
//! included. For the last update of a page its depth in the stack at the end stands in place of a
//! next use.
use super::stack_distance::{Id, StackDistances};
use tantalum_base::{FastMap, PageNo};

/// The page was not written yet.
const CLEAN: u64 = 0;
/// Every cache holds the page right after an update.
const JUST_WRITTEN: u64 = 1;

/// What one request means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Use {
    /// It hits in caches of at least so many pages; `None` on the first use.
    pub distance: Option<u64>,
    /// The update before this one was written back in smaller caches; `None` where this is none, or
    /// the first one.
    pub written_back_below: Option<u64>,
}

/// Follows the pages it is told of.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    stack: StackDistances,
    ids: FastMap<PageNo, Id>,
    free: Vec<Id>,
    /// The greatest distance of each page since its last update.
    since_update: Vec<u64>,
}

impl Tracker {
    /// Pages followed now.
    pub(super) fn pages(&self) -> usize {
        self.ids.len()
    }

    /// Whether `page` is followed.
    pub(super) fn contains(&self, page: PageNo) -> bool {
        self.ids.contains_key(&page)
    }

    /// A request for `page`. `pages_per_page` is how many pages of the whole each page followed
    /// stands for.
    #[inline]
    pub(super) fn request(&mut self, page: PageNo, is_write: bool, pages_per_page: f64) -> Use {
        let id = self.id(page);
        let distance = self.stack.access(id).map(|distance| scaled(distance, pages_per_page));
        let since = &mut self.since_update[id as usize];
        let greatest = (*since).max(distance.unwrap_or(0));
        let was_written = *since != CLEAN;
        *since = match (is_write, was_written) {
            (true, _) => JUST_WRITTEN,
            (false, true) => greatest,
            (false, false) => CLEAN,
        };
        Use { distance, written_back_below: (is_write && was_written).then_some(greatest) }
    }

    /// Follows `page` no longer.
    pub(super) fn forget(&mut self, page: PageNo) {
        if let Some(id) = self.ids.remove(&page) {
            self.stack.forget(id);
            self.since_update[id as usize] = CLEAN;
            self.free.push(id);
        }
    }

    /// Of each page that was ever updated: in which caches its last update was written back by now
    /// (those of fewer pages) and in which it is still dirty.
    pub(super) fn last_updates(&self, pages_per_page: f64) -> impl Iterator<Item = (PageNo, u64)> {
        self.ids.iter().filter_map(move |(page, &id)| {
            let since = self.since_update[id as usize];
            let depth = scaled(self.stack.distance(id)?, pages_per_page);
            (since != CLEAN).then_some((*page, since.max(depth)))
        })
    }

    #[inline]
    fn id(&mut self, page: PageNo) -> Id {
        if let Some(&id) = self.ids.get(&page) {
            return id;
        }
        let id = self.free.pop().unwrap_or(self.since_update.len() as Id);
        if id as usize == self.since_update.len() {
            self.since_update.push(CLEAN);
        }
        self.ids.insert(page, id);
        id
    }
}

/// A distance among the pages followed as one among all pages: the page itself, and each other one
/// for as many as it stands for.
#[inline]
fn scaled(distance: u32, pages_per_page: f64) -> u64 {
    1 + (f64::from(distance - 1) * pages_per_page).round() as u64
}
