//! The FTL as a cache: its pages have a home elsewhere, slower and larger. Cleaning may evict a page whose home has its
//! content, instead of keeping it.
//!
//! A page is **at home** if nothing of it is here. It is **dirty** if its state here is newer than that at home; this
//! includes a trim, which home does not know of. Otherwise it is **clean**. The caller writes dirty pages home, and
//! reports that here. It never lets more than [`dirty_pages_max`](CacheOptions::dirty_pages_max) pages be dirty at
//! once.
//!
//! An evicted page keeps its version, as a relocated one does, and the next recovery finds it at home. A clean page is
//! redundant. If its clean mark is lost, the page is only written home again.
pub(crate) mod clean_pages;
mod flows;

use tantalum_base::{Error, ErrorKind, PageNo, Result, Version};
use tantalum_media::ZoneGeometry;

use crate::options::kept_pages_max;

/// The limits of a cache, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Most pages that may be newer here than at home at once.
    pub dirty_pages_max: u64,
    /// Pages that cleaning keeps, clean and dirty together: beyond them it evicts the least recently used clean pages.
    /// More of them means fewer reads from home, fewer means cheaper cleaning.
    pub kept_pages_max: u64,
    /// The number of pages at the end that have no home: their content stays until it is trimmed, and is never dirty.
    /// The caller never lets more than [`dirty_pages_max`](Self::dirty_pages_max) pages be dirty or staged here.
    pub staging_pages: u64,
}

/// The changes that the home of a cache has when the cache is opened. They include changes that are written home first,
/// before anything else happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeState {
    /// Home has every change up to this version, which was durable here.
    pub version: Version,
    /// The changes up to that version that home lacks.
    pub lacks: Lacks,
}

/// The changes up to a version that a home may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// The contents of these pages, ascending, which could not be read here.
    Pages(Vec<PageNo>),
    /// Home lacks the content of some pages, and it is not recorded which.
    PagesUnknown,
    /// Home may lack any change, because pages are written home one by one.
    ChangesUnknown,
}

impl Default for Lacks {
    fn default() -> Self {
        Lacks::Pages(Vec::new())
    }
}

impl HomeState {
    /// Whether home certainly has the newest content of `page`, whose version is `version`.
    pub fn has(&self, page: PageNo, version: Version) -> bool {
        let Lacks::Pages(lacks) = &self.lacks else { return false };
        version <= self.version && lacks.binary_search(&page).is_err()
    }
}

impl CacheOptions {
    /// Checks that `geometry`, without `retired` zones, can keep that many pages.
    pub(crate) fn check(&self, geometry: &ZoneGeometry, retired: u32) -> Result<()> {
        let most = kept_pages_max(geometry, retired);
        if self.kept_pages_max > most || self.dirty_pages_max > self.kept_pages_max {
            let context = format!(
                "a cache of {} zones of {} slots can keep at most {most} pages, of which some may \
                 be dirty: {} pages, {} of them dirty, are too many",
                geometry.zones, geometry.slots_per_zone, self.kept_pages_max, self.dirty_pages_max
            );
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }
}
