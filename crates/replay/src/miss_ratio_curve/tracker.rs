//! The effect of each request in caches of all sizes at once: the smallest size in which it hits,
//! and the smallest size in which the page's last update is not written back before the next one.
//!
//! The second generalises stack distances. Under LRU with write-back an update of a page reaches the
//! disk before the page is updated again if and only if the page leaves the cache in between: in a
//! cache smaller than the greatest of the distances of its uses since that update, including the
//! next update's own. For the last update of a page its depth in the stack at the end replaces the
//! next use.
use super::stack_distance::{Id, StackDistances};
use tantalum_base::{FastMap, PageNo};

/// The page was not written yet.
const CLEAN: u64 = 0;
/// Every cache holds the page right after an update.
const JUST_WRITTEN: u64 = 1;

/// The effect of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Use {
    /// It hits in caches of at least this many pages; `None` on the first use.
    pub distance: Option<u64>,
    /// The previous update was written back in smaller caches than this; `None` if this is no
    /// update, or the first one.
    pub written_back_below: Option<u64>,
}

/// Follows the pages of the requests passed to it.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    stack: StackDistances,
    ids: FastMap<PageNo, Id>,
    free: Vec<Id>,
    /// The greatest distance of each page since its last update.
    since_update: Vec<u64>,
}

impl Tracker {
    /// Number of pages followed now.
    pub(super) fn pages(&self) -> usize {
        self.ids.len()
    }

    /// Whether `page` is followed.
    pub(super) fn contains(&self, page: PageNo) -> bool {
        self.ids.contains_key(&page)
    }

    /// A request for `page`. `pages_per_page` is the number of all pages that each followed page
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

    /// Stops following `page`.
    pub(super) fn forget(&mut self, page: PageNo) {
        if let Some(id) = self.ids.remove(&page) {
            self.stack.forget(id);
            self.since_update[id as usize] = CLEAN;
            self.free.push(id);
        }
    }

    /// For each page that was ever updated: the number of pages of a cache below which its last
    /// update has been written back by now; in larger caches it is still dirty.
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

/// Converts a distance among the followed pages to one among all pages: the page itself counts once,
/// and each other one for the number that it stands for.
#[inline]
fn scaled(distance: u32, pages_per_page: f64) -> u64 {
    1 + (f64::from(distance - 1) * pages_per_page).round() as u64
}
