//! What a recovery tells of itself.

/// What a recovery found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The checkpoint that it started from.
    pub checkpoint: u64,
    /// Zones scanned for what came after.
    pub zones_scanned: u32,
    /// Changes replayed.
    pub replayed: u64,
    /// Changes found behind a gap or in a torn batch, and dropped: none was acknowledged as
    /// durable.
    pub dropped: u64,
    /// Pages that the medium lost; reading them is an error.
    pub pages_lost: u64,
    /// Changes that were durable and are given up, where [`accept_loss`](crate::FtlOptions::accept_loss)
    /// says so: pages may hold what they held before these.
    pub changes_given_up: u64,
    /// Pages given up likewise, since the part of the map that knew of them is damaged: reading them
    /// is an error, also of those that were never written.
    pub pages_given_up: u64,
    /// Number of the dump in force; 0 where there was none.
    pub dump: u64,
    /// The mapping came from it, without a scan of the log.
    pub merged: bool,
    /// Delta pages that were read for that.
    pub delta_pages: u64,
    /// Frames of the buffer pool that it holds.
    pub frames: u32,
}
