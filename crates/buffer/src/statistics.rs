//! What a pool counts.
use tantalum_base::PageNo;

/// Counters since the pool was made. Pages, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Fixes; the policy was asked once for each.
    pub requests: u64,
    /// Fixes whose page the policy had.
    pub hits: u64,
    /// Fixes whose page the policy did not have.
    pub misses: u64,
    /// The misses that were updates.
    pub write_misses: u64,
    /// Pages that the policy let go.
    pub evictions: u64,
    /// Write-backs that the policy asked for: what the cache-only replay counts. The device may see
    /// fewer, as a page may be updated again before its turn comes.
    pub write_backs: u64,
    /// Pages read from the device.
    pub physical_reads: u64,
    /// Pages written to the device.
    pub physical_writes: u64,
    /// Reads that the device was asked for.
    pub device_reads: u64,
    /// Writes that the device was asked for, of one or more adjacent pages.
    pub device_writes: u64,
    /// Of the pages written, those written ahead of their eviction by the flusher.
    pub flusher_writes: u64,
    /// Cluster switches of the physical writes (dissertation, formula 3.3).
    pub cluster_switches: u64,
    /// Cluster switches of the requests: what the physical ones are a factor of (formula 3.5).
    pub request_cluster_switches: u64,
    /// Missed pages that were on their way out and needed no read.
    pub rescues: u64,
    /// Pages read before they were asked for; they are in `physical_reads` too.
    pub prefetched: u64,
    /// Of these, the ones that were asked for before they had to go: misses without a read.
    pub prefetch_hits: u64,
    /// Fixes that waited because no frame was free.
    pub free_frame_waits: u64,
    /// Pages whose write-back a fix waited for: written by the fix itself, or while one waited for
    /// a frame.
    pub write_backs_waited: u64,
    /// Frames taken from pages that the policy has, because all others were pinned. Such a page
    /// is read again when it is asked for.
    pub frames_taken: u64,
    /// Device reads that failed.
    pub read_failures: u64,
    /// Device writes that failed; their pages stay, dirty.
    pub write_failures: u64,
}

impl PoolStatistics {
    /// Share of the requests that hit; 0 where there were none.
    pub fn hit_ratio(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.hits as f64 / self.requests as f64 }
    }

    /// Cluster-switch factor (dissertation, formula 3.5): physical writes against requests.
    pub fn cluster_switch_factor(&self) -> f64 {
        if self.request_cluster_switches == 0 {
            0.0
        } else {
            self.cluster_switches as f64 / self.request_cluster_switches as f64
        }
    }
}

/// Counts the cluster switches of a sequence of pages (dissertation, formulas 3.3 and 3.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterCounter {
    cluster_pages: u64,
    last: Option<u64>,
}

impl ClusterCounter {
    pub(crate) fn new(cluster_pages: u64) -> Self {
        ClusterCounter { cluster_pages, last: None }
    }

    /// 1 where `page` is in another cluster than the page before it, or is the first.
    #[inline]
    pub(crate) fn switch(&mut self, page: PageNo) -> u64 {
        let cluster = Some(page.0 / self.cluster_pages);
        u64::from(std::mem::replace(&mut self.last, cluster) != cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_counted_as_in_formula_3_3() {
        let mut counter = ClusterCounter::new(16);
        let pages = [0, 15, 16, 17, 3, 3, 40];
        let switches: Vec<u64> = pages.map(|page| counter.switch(PageNo(page))).into();
        assert_eq!(switches, [1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn shares_of_nothing_are_zero() {
        let none = PoolStatistics::default();
        assert_eq!((none.hit_ratio(), none.cluster_switch_factor()), (0.0, 0.0));
        let some = PoolStatistics {
            requests: 8,
            hits: 6,
            cluster_switches: 1,
            request_cluster_switches: 4,
            ..none
        };
        assert_eq!((some.hit_ratio(), some.cluster_switch_factor()), (0.75, 0.25));
    }
}
