//! No cache at all: what the others are measured against.
use super::{Found, MiddleTier, TierCounts};
use tantalum_base::PageNo;

/// A middle tier that is not there. Each request goes home, with a seek of its own.
#[derive(Debug, Default)]
pub struct NoTier(TierCounts);

impl MiddleTier for NoTier {
    fn read(&mut self, _page: PageNo) -> Found {
        self.0.reads += 1;
        self.0.read_home();
        Found::Missed
    }

    fn write(&mut self, _page: PageNo) {
        self.0.writes += 1;
        self.0.overwrite_home();
    }

    fn flush(&mut self) {}

    fn contains(&self, _page: PageNo) -> bool {
        false
    }

    fn dirty_pages(&self) -> u64 {
        0
    }

    fn counts(&self) -> &TierCounts {
        &self.0
    }

    #[cfg(test)]
    fn validate(&self) {}
}
