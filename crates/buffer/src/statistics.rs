//! The counters of a pool.
use tantalum_base::PageNo;
use tantalum_runtime::metrics::Readings;

/// Counters since the pool was made, in pages unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Fixes; the policy is called once for each.
    pub requests: u64,
    /// Fixes whose page the policy had cached.
    pub hits: u64,
    /// Fixes whose page the policy had not cached.
    pub misses: u64,
    /// The misses that were updates.
    pub write_misses: u64,
    /// Pages that the policy evicted.
    pub evictions: u64,
    /// Write-backs that the policy requested, as the cache-only replay counts them. The device may
    /// see fewer, as a page may be updated again before it is written.
    pub write_backs: u64,
    /// Pages read from the device.
    pub physical_reads: u64,
    /// Pages written to the device.
    pub physical_writes: u64,
    /// Read commands to the device.
    pub device_reads: u64,
    /// Write commands to the device, of one or more adjacent pages each.
    pub device_writes: u64,
    /// Pages that the flusher wrote ahead of their eviction.
    pub flusher_writes: u64,
    /// Cluster switches of the physical writes (dissertation, formula 3.3).
    pub cluster_switches: u64,
    /// Cluster switches of the requests, the denominator of the factor (formula 3.5).
    pub request_cluster_switches: u64,
    /// Missed pages that were still in a transit frame and needed no read.
    pub rescues: u64,
    /// Pages read ahead; `physical_reads` includes them.
    pub prefetched: u64,
    /// Prefetched pages that were requested before they were dropped: misses without a read.
    pub prefetch_hits: u64,
    /// Fixes that waited because no frame was free.
    pub free_frame_waits: u64,
    /// Pages whose write-back a fix waited for: written by the fix itself, or while a fix waited
    /// for a frame.
    pub write_backs_waited: u64,
    /// Frames reused although the policy still caches their pages, because all others were pinned.
    /// Such a page is read again when it is requested.
    pub frames_taken: u64,
    /// Device reads that failed.
    pub read_failures: u64,
    /// Device writes that failed; their pages stay dirty.
    pub write_failures: u64,
}

impl PoolStatistics {
    /// Share of the requests that hit; 0 without requests.
    pub fn hit_ratio(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.hits as f64 / self.requests as f64 }
    }

    /// Cluster-switch factor (dissertation, formula 3.5): physical writes relative to requests.
    pub fn cluster_switch_factor(&self) -> f64 {
        if self.request_cluster_switches == 0 {
            0.0
        } else {
            self.cluster_switches as f64 / self.request_cluster_switches as f64
        }
    }
}

impl PoolStatistics {
    /// Reports the counters of a read cache of `capacity_pages`.
    pub(crate) fn tell(&self, capacity_pages: u32, out: &mut Readings) {
        out.gauge("tantalum_buffer_capacity_pages", "Pages that the buffer holds", capacity_pages);
        let asked = "Pages read outside of transactions, and pages written";
        out.counter("tantalum_buffer_requested_pages_total", asked, self.requests);
        let hits = "Of those, pages found in the buffer";
        out.counter("tantalum_buffer_hit_pages_total", hits, self.hits);
        let evicted = "Evicted pages";
        out.counter("tantalum_buffer_evicted_pages_total", evicted, self.evictions);
        let read = "Pages that the buffer read from the device";
        out.counter("tantalum_buffer_read_pages_total", read, self.physical_reads);
        let written = "Pages written through the buffer";
        out.counter("tantalum_buffer_written_pages_total", written, self.physical_writes);
    }
}

/// Counts cluster switches in a sequence of pages (dissertation, formulas 3.3 and 3.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterCounter {
    cluster_pages: u64,
    last: Option<u64>,
}

impl ClusterCounter {
    pub(crate) fn new(cluster_pages: u64) -> Self {
        ClusterCounter { cluster_pages, last: None }
    }

    /// Returns 1 if `page` is in another cluster than the page before it, or is the first;
    /// otherwise 0.
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
