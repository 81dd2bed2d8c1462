//! What a store did and holds.
use crate::records::RecordCounts;

/// What was written, in pages of the device, those of compactions not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CommitCounts {
    /// Commits that changed something.
    pub commits: u64,
    /// Documents that they set or deleted; several updates of one before a commit are one.
    pub documents: u64,
    /// Pages of documents.
    pub document_pages: u64,
    /// Pages of nodes.
    pub node_pages: u64,
    /// Pages of headers.
    pub header_pages: u64,
}

/// What a store did and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DocStoreStatistics {
    /// What commits wrote.
    pub commits: CommitCounts,
    /// What was asked of the device, by all but compactions.
    pub device: RecordCounts,
    /// What compactions asked of it.
    pub compaction: RecordCounts,
    /// Compactions that ended with a new file.
    pub compactions: u64,
    /// Those that failed or were stopped.
    pub compactions_failed: u64,
    /// Documents that commits changed during compactions, which brought them along; one may count several times.
    pub caught_up: u64,
    /// Committed documents.
    pub documents: u64,
    /// Nodes on the way to a document.
    pub depth: u8,
    /// Pages of the current file so far.
    pub used_pages: u64,
    /// Of these, what a compaction would leave out.
    pub stale_pages: u64,
    /// Pages that a file may have.
    pub file_pages: u64,
}

impl DocStoreStatistics {
    /// The part of the file that is stale, 0 to 1.
    pub fn stale_ratio(&self) -> f64 {
        self.stale_pages as f64 / self.used_pages.max(1) as f64
    }
}
