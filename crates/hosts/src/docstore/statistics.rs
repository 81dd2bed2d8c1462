//! Counters of a store, and its content in numbers.
use crate::records::RecordCounts;

/// Writes in pages of the device, without those of compactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CommitCounts {
    /// Commits that changed something.
    pub commits: u64,
    /// Documents that they set or deleted; several updates of one document before a commit count once.
    pub documents: u64,
    /// Pages of documents.
    pub document_pages: u64,
    /// Pages of nodes.
    pub node_pages: u64,
    /// Pages of headers.
    pub header_pages: u64,
}

/// Counters of a store, and its content in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DocStoreStatistics {
    /// Writes of commits.
    pub commits: CommitCounts,
    /// Device accesses, except those of compactions.
    pub device: RecordCounts,
    /// Device accesses of compactions.
    pub compaction: RecordCounts,
    /// Compactions that ended with a new file.
    pub compactions: u64,
    /// Those that failed or were stopped.
    pub compactions_failed: u64,
    /// Documents that commits changed during compactions, which transferred them; one may count several times.
    pub caught_up: u64,
    /// Committed documents.
    pub documents: u64,
    /// Number of nodes on the path to a document.
    pub depth: u8,
    /// Pages of the current file so far.
    pub used_pages: u64,
    /// Number of these pages that a compaction would drop.
    pub stale_pages: u64,
    /// Maximum number of pages of a file.
    pub file_pages: u64,
}

impl DocStoreStatistics {
    /// The stale part of the file, 0 to 1.
    pub fn stale_ratio(&self) -> f64 {
        self.stale_pages as f64 / self.used_pages.max(1) as f64
    }
}
