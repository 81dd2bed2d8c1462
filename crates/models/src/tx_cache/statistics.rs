//! Counters of a TxCache.
use tantalum_ftl::FtlStatistics;

/// Counters of a TxCache since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxCacheStatistics {
    /// Pages read by the host.
    pub pages_read: u64,
    /// Of those, pages found in frames.
    pub read_hits: u64,
    /// Pages written by the host, in transactions or outside.
    pub pages_written: u64,
    /// Flush commands; they have no effect.
    pub flushes: u64,
    /// Pages of open transactions that were overwritten by the same transaction.
    pub pages_rewritten: u64,
    /// Committed versions that a newer one replaced before they were written back.
    pub pages_coalesced: u64,
    /// Transactions begun.
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
    /// Pages of the extended cache that the medium could not read when they were to be written
    /// home.
    pub pages_lost: u64,
    /// Batches written to their home locations.
    pub write_backs: u64,
    /// Stores to NVRAM since the NVRAM was made.
    pub nvram_stores: u64,
    /// The FTL's counters.
    pub ftl: FtlStatistics,
}

impl TxCacheStatistics {
    /// Slots programmed per page that the host wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.pages_written == 0 {
            return 0.0;
        }
        self.ftl.slots_programmed as f64 / self.pages_written as f64
    }
}
