//! What a personality counted since it was opened.

/// Counters since opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PersonalityStatistics {
    /// Pages that hosts read.
    pub host_reads: u64,
    /// Pages that hosts wrote.
    pub host_pages: u64,
    /// Flush commands; they find nothing to do.
    pub flushes: u64,
    /// Pages given up that held something; each costs a page of zeros, unless a whole block goes.
    pub pages_trimmed: u64,
    /// Pages programmed for any reason.
    pub programs: u64,
    /// Pages copied by merges and cleaning.
    pub pages_moved: u64,
    /// Places programmed with nothing, so that what follows lies at its offset.
    pub pages_padded: u64,
    /// Merges in which a log block took the place of its data block, with nothing copied.
    pub merges_switch: u64,
    /// Merges in which a log block was completed from its data block.
    pub merges_partial: u64,
    /// Merges into a fresh block.
    pub merges_full: u64,
    /// Blocks that cleaning emptied.
    pub blocks_cleaned: u64,
    /// Pages of the map read.
    pub map_reads: u64,
    /// Pages of the map written.
    pub map_writes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks free now.
    pub blocks_free: u32,
}

impl PersonalityStatistics {
    /// Pages programmed a page that hosts wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages == 0 {
            return 0.0;
        }
        self.programs as f64 / self.host_pages as f64
    }
}
