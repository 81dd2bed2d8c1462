//! The counters of a cache.
use crate::mode::Mode;
use tantalum_base::PageNo;
use tantalum_runtime::metrics::{MetricKind, Readings};

/// Counters of a cache since it was opened, and its present dirty pages. In pages unless stated
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TieredStatistics {
    /// Pages read by hosts.
    pub pages_read: u64,
    /// Of these, pages read from the home.
    pub home_pages_read: u64,
    /// Number of reads of the home for these.
    pub home_reads: u64,
    /// Pages written by hosts.
    pub pages_written: u64,
    /// Pages written to the home.
    pub home_pages_written: u64,
    /// Number of writes to the home for these.
    pub home_writes: u64,
    /// Of the pages written to the home, clean ones that filled a gap between two dirty ones.
    pub home_pages_filled: u64,
    /// Dirty pages that became clean.
    pub pages_cleaned: u64,
    /// Pages zeroed on the home because hosts trimmed them.
    pub home_pages_zeroed: u64,
    /// Pages written to the journal beside the home.
    pub journal_pages_written: u64,
    /// Of these, pages written because a host was about to change them.
    pub journal_pages_preserved: u64,
    /// Rounds of the destager that succeeded; in ordered destaging these are epochs.
    pub rounds: u64,
    /// Pages that are now newer in the flash than on the home.
    pub dirty_pages: u64,
    /// `dirty_pages` and trimmed pages together; a page that changes while it is destaged counts twice.
    pub dirty_or_trimmed_pages: u64,
    /// Nanoseconds since everything written was safe without the flash, on the home or in its
    /// journal; 0 if nothing is dirty.
    pub destage_lag_ns: u64,
    /// The last epoch that is on the home; 0 if there is none.
    pub epoch: u64,
    /// The present mode.
    pub mode: Mode,
    /// Dirty pages that the flash cannot read now. They are retried; in ordered destaging nothing
    /// else is destaged meanwhile.
    pub unreadable_pages: u64,
    /// The first unreadable page.
    pub first_unreadable: Option<PageNo>,
    /// Pages that the flash has lost and that the home does not have either, now.
    pub lost_pages: u64,
    /// Pages that the flash could not read, but the home had.
    pub pages_read_again_from_home: u64,
    /// Operations of the home that failed.
    pub home_errors: u64,
    /// Nanoseconds that writes waited for room among the dirty pages.
    pub throttled_ns: u64,
    /// The last failure of the home, if it has not worked since.
    pub home_failure: Option<String>,
}

impl TieredStatistics {
    /// Reports all counters as metrics.
    pub(crate) fn tell(&self, out: &mut Readings) {
        self.tell_home(out);
        let read = "Pages that hosts read through the cache";
        out.counter("tantalum_cache_read_pages_total", read, self.pages_read);
        let hit = "Of those, pages found in the flash";
        let hits = self.pages_read.saturating_sub(self.home_pages_read);
        out.counter("tantalum_cache_hit_pages_total", hit, hits);
        let missed = "Of those, pages read from the home";
        out.counter("tantalum_cache_missed_pages_total", missed, self.home_pages_read);
        let mode = "Mode of the cache; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_cache_mode", mode);
        metric.with(&[("mode", self.mode.name())], 1u64);
        let dirty = "Pages that are newer in the flash than on the home";
        out.gauge("tantalum_cache_dirty_pages", dirty, self.dirty_pages);
        let behind = "Dirty pages, and trimmed pages that the home does not know of yet";
        out.gauge("tantalum_cache_behind_pages", behind, self.dirty_or_trimmed_pages);
        let lost =
            "Pages that the flash has lost and the home lacks: errors until they are written";
        out.gauge("tantalum_cache_lost_pages", lost, self.lost_pages);
        let again = "Pages that the flash could not read and the home served";
        out.counter("tantalum_cache_mended_pages_total", again, self.pages_read_again_from_home);
        let waited = "Time for which writes waited for room among the dirty pages";
        let waited_seconds = self.throttled_ns as f64 / 1e9;
        let name = "tantalum_cache_throttled_seconds_total";
        out.metric(MetricKind::Counter, name, waited).with(&[], waited_seconds);
        let rounds = "Rounds of destaging; with home.destage = \"ordered\" each is an epoch";
        out.counter("tantalum_destage_rounds_total", rounds, self.rounds);
        let lag = "Age of the home: time since the moment whose writes are all safe there";
        let lag_seconds = self.destage_lag_ns as f64 / 1e9;
        out.gauge("tantalum_destage_lag_seconds", lag, lag_seconds);
        let unreadable = "Dirty pages that the flash cannot read now and that cannot be destaged";
        out.gauge("tantalum_destage_unreadable_pages", unreadable, self.unreadable_pages);
        let filled = "Clean pages written to the home again because they lay between dirty ones";
        out.counter("tantalum_destage_filled_pages_total", filled, self.home_pages_filled);
        out.gauge(
            "tantalum_destage_epoch",
            "The last epoch that is complete on the home",
            self.epoch,
        );
        let journal = "Pages written to the journal beside the home";
        out.counter("tantalum_destage_journal_pages_total", journal, self.journal_pages_written);
    }

    fn tell_home(&self, out: &mut Readings) {
        out.counter("tantalum_home_reads_total", "Reads of the home", self.home_reads);
        let written = "Pages written to the home";
        out.counter("tantalum_home_written_pages_total", written, self.home_pages_written);
        out.counter("tantalum_home_writes_total", "Writes to the home", self.home_writes);
        let zeroed = "Pages zeroed on the home because hosts trimmed them";
        out.counter("tantalum_home_zeroed_pages_total", zeroed, self.home_pages_zeroed);
        let errors = "Failed operations of the home or its journal";
        out.counter("tantalum_home_errors_total", errors, self.home_errors);
        let failing = "1 if the last operation of the home or its journal failed, or the home has been silent for 10 s";
        out.gauge("tantalum_home_failing", failing, self.home_failure.is_some());
    }
}
