//! The FTL as a cache: its pages have a home elsewhere, slower and larger. Cleaning may let a page go
//! whose home has its content, instead of keeping it.
//!
//! A page is **at home** where nothing of it is here; **dirty** where what is here is newer than what its
//! home has (a trim as well: home does not know of it); otherwise **clean**. The caller writes dirty
//! pages home, and says so here. It never lets more than
//! [`dirty_pages_max`](CacheOptions::dirty_pages_max) be dirty at once.
//!
//! A page that is let go keeps its version, as one that is copied does: where it was, the next recovery finds
//! it at home. A clean page is as good as gone, so losing the mark only means that it is written home again.
pub(crate) mod clean_pages;
mod flows;

use tantalum_base::{Error, ErrorKind, PageNo, Result, Version};
use tantalum_media::ZoneGeometry;

use crate::options::kept_pages_max;

/// How much a cache keeps, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Most pages that are newer here than at home at once.
    pub dirty_pages_max: u64,
    /// Pages that cleaning keeps, clean and dirty together: beyond them the clean pages go that were used
    /// longest ago. More of them means fewer reads from home, fewer means cheaper cleaning.
    pub kept_pages_max: u64,
    /// So many of the last pages have no home: what they hold stays until it is given up, and is never dirty. The caller
    /// never lets more than [`dirty_pages_max`](Self::dirty_pages_max) be dirty or there.
    pub staging_pages: u64,
}

/// What the home of a cache has when the cache is opened, or gets before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeState {
    /// Every change up to this version, which was durable here.
    pub version: Version,
    /// But for these.
    pub lacks: Lacks,
}

/// What a home may lack of the changes up to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// The contents of these pages, ascending, which could not be read here.
    Pages(Vec<PageNo>),
    /// Those of pages that nobody noted.
    PagesUnknown,
    /// Any change: pages go home one by one.
    ChangesUnknown,
}

impl Default for Lacks {
    fn default() -> Self {
        Lacks::Pages(Vec::new())
    }
}

impl HomeState {
    /// Whether home certainly has the newest content of `page`, which is of `version`.
    pub fn has(&self, page: PageNo, version: Version) -> bool {
        let Lacks::Pages(lacks) = &self.lacks else { return false };
        version <= self.version && lacks.binary_search(&page).is_err()
    }
}

impl CacheOptions {
    /// Checks that `geometry`, without `retired` zones, can keep so much.
    pub(crate) fn check(&self, geometry: &ZoneGeometry, retired: u32) -> Result<()> {
        let most = kept_pages_max(geometry, retired);
        if self.kept_pages_max > most || self.dirty_pages_max > self.kept_pages_max {
            let context = format!(
                "a cache of {} zones of {} slots can keep at most {most} pages, and of those it keeps some \
                 may be dirty: not {} and {}",
                geometry.zones, geometry.slots_per_zone, self.kept_pages_max, self.dirty_pages_max
            );
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }
}
