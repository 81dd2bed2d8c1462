//! The counters of a device.
use tantalum_ftl::FtlStatistics;
use tantalum_runtime::metrics::Readings;

/// Counters of a device since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsdStatistics {
    /// Pages that the host read.
    pub pages_read: u64,
    /// Pages read from the write cache.
    pub read_hits: u64,
    /// Pages that the host wrote, transactions included when they commit.
    pub pages_written: u64,
    /// Of those, rewrites that replaced a page waiting in the write cache.
    pub pages_coalesced: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Share commands, each a batch of pairs.
    pub shares: u64,
    /// Bytes that a power loss now would dump; 0 without stored energy.
    pub dump_bytes: u64,
    /// The largest `dump_bytes` so far. Never more than the FTL's `dump_budget_bytes`.
    pub dump_bytes_max: u64,
    /// The FTL's counters.
    pub ftl: FtlStatistics,
}

impl SsdStatistics {
    /// Slots programmed per page that the host wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.pages_written == 0 {
            return 0.0;
        }
        self.ftl.slots_programmed as f64 / self.pages_written as f64
    }

    /// Reports the counters that only this kind of device has.
    pub(crate) fn tell(&self, out: &mut Readings) {
        let coalesced = "Page writes that replaced a page waiting in the write cache";
        out.counter("tantalum_write_cache_coalesced_pages_total", coalesced, self.pages_coalesced);
        out.counter("tantalum_device_shares_total", "Share commands", self.shares);
        if self.ftl.dump_budget_bytes > 0 {
            let now = "Bytes that a power cut would dump now";
            out.gauge("tantalum_dump_bytes", now, self.dump_bytes);
            let most = "The most bytes that a power cut would have dumped so far";
            out.gauge("tantalum_dump_bytes_max", most, self.dump_bytes_max);
        }
        self.ftl.tell(out);
    }
}
