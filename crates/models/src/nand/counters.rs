//! Counters and wear of an array.

/// Operation counts. Failed operations are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NandCounters {
    /// Flash pages sensed.
    pub reads: u64,
    /// Flash pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Bytes transferred over the channels for programs, without spare areas.
    pub bytes_in: u64,
    /// Bytes transferred over the channels by reads, without spare areas.
    pub bytes_out: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Reads of pages with uncorrectable errors.
    pub uncorrectable_reads: u64,
}

/// Erase counts of blocks, over all blocks that are not bad from the factory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// The erase count of the least worn block.
    pub min: u32,
    /// The mean erase count.
    pub mean: f64,
    /// The erase count of the most worn block.
    pub max: u32,
    /// Number of blocks that went bad in use.
    pub grown_bad_blocks: u32,
    /// Number of blocks bad from the factory.
    pub factory_bad_blocks: u32,
}
