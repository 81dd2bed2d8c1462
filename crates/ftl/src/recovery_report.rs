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
    /// Number of the dump in force; 0 where there was none.
    pub dump: u64,
    /// The mapping came from it, without a scan of the log.
    pub merged: bool,
    /// Delta pages that were read for that.
    pub delta_pages: u64,
    /// Frames of the buffer pool that it holds.
    pub frames: u32,
}
