//! What a TxCache counted.
use tantalum_ftl::FtlStatistics;

/// Counters of a TxCache since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxCacheStatistics {
    /// Pages that the host read.
    pub pages_read: u64,
    /// Of those, served from frames.
    pub read_hits: u64,
    /// Pages that the host wrote, in transactions or outside.
    pub pages_written: u64,
    /// Flush commands; they find nothing to do.
    pub flushes: u64,
    /// Pages of open transactions that were written again in their place.
    pub pages_rewritten: u64,
    /// Committed versions that a newer one replaced before they were written back.
    pub pages_coalesced: u64,
    /// Transactions begun, committed and aborted.
    pub begins: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions aborted.
    pub aborts: u64,
    /// Times that a `begin` waited for a header.
    pub begins_waited: u64,
    /// Pages of open transactions that went to the extended cache.
    pub pages_spilled: u64,
    /// Pages written to their home locations.
    pub pages_written_home: u64,
    /// Of those, copied from the extended cache.
    pub pages_copied_home: u64,
    /// Pages of the extended cache that the medium did not give back when they were to go home.
    pub pages_lost: u64,
    /// Batches written to their home locations.
    pub write_backs: u64,
    /// Stores to NVRAM, since it was made.
    pub nvram_stores: u64,
    /// The FTL's counters.
    pub ftl: FtlStatistics,
}

impl TxCacheStatistics {
    /// Slots programmed a page that the host wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.pages_written == 0 {
            return 0.0;
        }
        self.ftl.slots_programmed as f64 / self.pages_written as f64
    }
}
