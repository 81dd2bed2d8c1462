//! What an array has done, and how worn it is.

/// Operations so far. Failed ones count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NandCounters {
    /// Flash pages sensed.
    pub reads: u64,
    /// Flash pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Bytes that crossed the channels to be programmed, spare area not counted.
    pub bytes_in: u64,
    /// Bytes that crossed the channels from reads, spare area not counted.
    pub bytes_out: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Reads that found a page past correction.
    pub uncorrectable_reads: u64,
}

/// Erases a block, over all blocks that are not bad from the factory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// The least worn block's.
    pub min: u32,
    /// The average.
    pub mean: f64,
    /// The most worn block's.
    pub max: u32,
    /// Blocks that went bad in use.
    pub grown_bad_blocks: u32,
    /// Blocks that were bad from the factory.
    pub factory_bad_blocks: u32,
}
