//! The report of a recovery.

/// The findings and results of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The checkpoint from which it started.
    pub checkpoint: u64,
    /// Zones scanned for later changes.
    pub zones_scanned: u32,
    /// Changes replayed.
    pub replayed: u64,
    /// Changes found after a gap or in a torn batch, and dropped: none was acknowledged as durable.
    pub dropped: u64,
    /// Pages that the medium lost; reading them is an error.
    pub pages_lost: u64,
    /// Durable changes that were given up, as [`accept_loss`](crate::FtlOptions::accept_loss)
    /// allows: pages may hold older content.
    pub changes_given_up: u64,
    /// Pages given up likewise, because their part of the map is damaged: reading them is an error, even if they were
    /// never written.
    pub pages_given_up: u64,
    /// Pages given up likewise, because they could not be read as they were written: reading them is an error until
    /// they are written again.
    pub pages_unreadable: u64,
    /// Pages of a cache that were given up here, because home has later changes than the log, whose end is damaged.
    pub pages_taken_from_home: u64,
    /// Number of the dump in force; 0 if there was none.
    pub dump: u64,
    /// The mapping was taken from the dump, without a scan of the log.
    pub merged: bool,
    /// Delta pages that were read with the dump.
    pub delta_pages: u64,
    /// Frames of the buffer pool in the dump.
    pub frames: u32,
}
