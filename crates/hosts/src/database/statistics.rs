//! Counters.

/// Device accesses for an engine's pages, in device pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostStatistics {
    /// Accesses to pages of the database.
    pub accesses: u64,
    /// Device pages read.
    pub pages_read: u64,
    /// Device pages written to the double-write area.
    pub area_pages: u64,
    /// Device pages written to their homes.
    pub home_pages: u64,
    /// Device pages that were shared into homes.
    pub shared_pages: u64,
    /// Device pages of the file system's metadata.
    pub metadata_pages: u64,
    /// Batches flushed.
    pub batches: u64,
}

impl HostStatistics {
    /// Device pages that were written, of any kind (SHARE, figure 6a).
    pub fn pages_written(&self) -> u64 {
        self.area_pages + self.home_pages + self.metadata_pages
    }

    /// The difference to the counters at `start`.
    pub fn since(&self, start: &HostStatistics) -> HostStatistics {
        HostStatistics {
            accesses: self.accesses - start.accesses,
            pages_read: self.pages_read - start.pages_read,
            area_pages: self.area_pages - start.area_pages,
            home_pages: self.home_pages - start.home_pages,
            shared_pages: self.shared_pages - start.shared_pages,
            metadata_pages: self.metadata_pages - start.metadata_pages,
            batches: self.batches - start.batches,
        }
    }
}

/// The counters of an engine since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EngineStatistics {
    /// Those of its pages.
    pub pages: HostStatistics,
    /// Device pages written to the redo log.
    pub log_pages: u64,
    /// Flushes of the log: simultaneous commits share one.
    pub log_flushes: u64,
    /// Pages whose whole content went into the log, by full-page writes or as the result of a split.
    pub whole_pages: u64,
    /// Device transactions that made commits durable: simultaneous commits share one.
    pub device_commits: u64,
    /// Transactions that changed something and were committed.
    pub commits: u64,
    /// Transactions that were refused because another one holds a row's lock.
    pub conflicts: u64,
    /// Checkpoints.
    pub checkpoints: u64,
}
