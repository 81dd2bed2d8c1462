//! What a cache counts.
use crate::mode::Mode;
use tantalum_base::PageNo;
use tantalum_runtime::metrics::{MetricKind, Readings};

/// Counters of a cache since it was opened, and what is dirty now. In pages unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TieredStatistics {
    /// Read by hosts.
    pub pages_read: u64,
    /// Of these, read from home.
    pub home_pages_read: u64,
    /// Reads of home that took.
    pub home_reads: u64,
    /// Written by hosts.
    pub pages_written: u64,
    /// Written home.
    pub home_pages_written: u64,
    /// Writes that took.
    pub home_writes: u64,
    /// Of the pages written home, those that were clean, and filled a gap between two that were not.
    pub home_pages_filled: u64,
    /// Dirty pages that became clean.
    pub pages_cleaned: u64,
    /// Zeroed at home, as hosts trimmed them.
    pub home_pages_zeroed: u64,
    /// Written to the journal beside the home.
    pub journal_pages_written: u64,
    /// Of these, because a host was about to change them.
    pub journal_pages_preserved: u64,
    /// Rounds of the destager that ended: epochs, where they are ordered.
    pub rounds: u64,
    /// Newer here than at home, now.
    pub dirty_pages: u64,
    /// The same with those that were trimmed; a page that changes on its way home counts twice.
    pub dirty_or_trimmed_pages: u64,
    /// Nanoseconds since all that had been written was safe at home; 0 where all is.
    pub destage_lag_ns: u64,
    /// The epoch that home has; 0 where there is none.
    pub epoch: u64,
    /// What the cache is for, now.
    pub mode: Mode,
    /// Dirty pages that cannot be read, now: they are tried again, and where pages go home in epochs nothing else goes
    /// there meanwhile.
    pub unreadable_pages: u64,
    /// The first of them.
    pub first_unreadable: Option<PageNo>,
    /// Pages that the flash has lost and home has not, now.
    pub lost_pages: u64,
    /// Pages that the flash lost and home had.
    pub pages_read_again_from_home: u64,
    /// Operations of the home that failed.
    pub home_errors: u64,
    /// Nanoseconds that writes waited for room among the dirty pages.
    pub throttled_ns: u64,
    /// The last failure of the home, where it has not worked since.
    pub home_failure: Option<String>,
}

impl TieredStatistics {
    /// Tells all of it that can be watched.
    pub(crate) fn tell(&self, out: &mut Readings) {
        self.tell_home(out);
        let read = "Pages that hosts asked the cache for";
        out.counter("tantalum_cache_read_pages_total", read, self.pages_read);
        let hit = "Of those, pages that the flash had";
        let hits = self.pages_read.saturating_sub(self.home_pages_read);
        out.counter("tantalum_cache_hit_pages_total", hit, hits);
        let missed = "Of those, pages that had to be read from home";
        out.counter("tantalum_cache_missed_pages_total", missed, self.home_pages_read);
        let mode = "What the cache is for; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_cache_mode", mode);
        metric.with(&[("mode", self.mode.name())], 1u64);
        let dirty = "Pages that are newer in the flash than at home";
        out.gauge("tantalum_cache_dirty_pages", dirty, self.dirty_pages);
        let behind = "Pages that home does not have as they are, trimmed ones too";
        out.gauge("tantalum_cache_behind_pages", behind, self.dirty_or_trimmed_pages);
        let lost = "Pages that the flash has lost and home has not: errors until they are written";
        out.gauge("tantalum_cache_lost_pages", lost, self.lost_pages);
        let again = "Pages that the flash could not read and home had";
        out.counter("tantalum_cache_mended_pages_total", again, self.pages_read_again_from_home);
        let waited = "Time that writes waited for room among the dirty pages";
        let waited_seconds = self.throttled_ns as f64 / 1e9;
        let name = "tantalum_cache_throttled_seconds_total";
        out.metric(MetricKind::Counter, name, waited).with(&[], waited_seconds);
        let rounds = "Rounds in which dirty pages went home: epochs, where they are ordered";
        out.counter("tantalum_destage_rounds_total", rounds, self.rounds);
        let lag = "Time since all that was written until then was safe at home";
        let lag_seconds = self.destage_lag_ns as f64 / 1e9;
        out.gauge("tantalum_destage_lag_seconds", lag, lag_seconds);
        let unreadable = "Dirty pages that the flash cannot read now, and that cannot go home";
        out.gauge("tantalum_destage_unreadable_pages", unreadable, self.unreadable_pages);
        let filled = "Clean pages that went home because they lay between dirty ones";
        out.counter("tantalum_destage_filled_pages_total", filled, self.home_pages_filled);
        out.gauge("tantalum_destage_epoch", "The epoch that home has", self.epoch);
        let journal = "Pages written to the journal beside the home";
        out.counter("tantalum_destage_journal_pages_total", journal, self.journal_pages_written);
    }

    fn tell_home(&self, out: &mut Readings) {
        out.counter("tantalum_home_reads_total", "Reads of the home", self.home_reads);
        let written = "Pages written home";
        out.counter("tantalum_home_written_pages_total", written, self.home_pages_written);
        out.counter("tantalum_home_writes_total", "Writes to the home", self.home_writes);
        let zeroed = "Pages zeroed at home, as hosts trimmed them";
        out.counter("tantalum_home_zeroed_pages_total", zeroed, self.home_pages_zeroed);
        let errors = "Operations of the home or its journal that failed";
        out.counter("tantalum_home_errors_total", errors, self.home_errors);
        let failing = "1 where the last of them failed";
        out.gauge("tantalum_home_failing", failing, self.home_failure.is_some());
    }
}
