//! Counters of a personality since it was opened.

/// Counters since opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PersonalityStatistics {
    /// Pages read by hosts.
    pub host_reads: u64,
    /// Pages written by hosts.
    pub host_pages: u64,
    /// Flush commands; they have no effect.
    pub flushes: u64,
    /// Trimmed pages that had content; each costs a page of zeros, unless a whole block is trimmed.
    pub pages_trimmed: u64,
    /// Pages programmed for any reason.
    pub programs: u64,
    /// Pages copied by merges and cleaning.
    pub pages_moved: u64,
    /// Pages programmed as padding, so that later pages lie at their offsets.
    pub pages_padded: u64,
    /// Merges in which a log block replaced its data block, without copies.
    pub merges_switch: u64,
    /// Merges in which a log block was completed from its data block.
    pub merges_partial: u64,
    /// Merges into a fresh block.
    pub merges_full: u64,
    /// Blocks cleaned.
    pub blocks_cleaned: u64,
    /// Map pages read.
    pub map_reads: u64,
    /// Map pages written.
    pub map_writes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks free now.
    pub blocks_free: u32,
}

impl PersonalityStatistics {
    /// Pages programmed per page that hosts wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages == 0 {
            return 0.0;
        }
        self.programs as f64 / self.host_pages as f64
    }
}
