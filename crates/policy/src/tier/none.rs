//! No cache at all: the baseline for the others.
use super::operations::{Operation, Told};
use super::{Found, MiddleTier, TierCounts};
use tantalum_base::PageNo;

/// No middle tier. Each request goes home, with a seek of its own.
#[derive(Debug, Default)]
pub struct NoTier {
    counts: TierCounts,
    told: Told,
}

impl MiddleTier for NoTier {
    fn read(&mut self, page: PageNo) -> Found {
        self.counts.reads += 1;
        self.counts.read_home();
        self.told.tell(Operation::ReadHome { page });
        Found::Missed
    }

    fn write(&mut self, page: PageNo) {
        self.counts.writes += 1;
        self.counts.overwrite_home();
        self.told.tell(Operation::WriteHome { page });
    }

    fn flush(&mut self) {}

    fn contains(&self, _page: PageNo) -> bool {
        false
    }

    fn dirty_pages(&self) -> u64 {
        0
    }

    fn counts(&self) -> &TierCounts {
        &self.counts
    }

    fn tell_operations(&mut self) -> bool {
        self.told.start();
        true
    }

    fn take_operations(&mut self, operations: &mut Vec<Operation>) {
        self.told.take(operations);
    }

    #[cfg(test)]
    fn validate(&self) {}
}
