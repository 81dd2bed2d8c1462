//! The counters of an FTL.
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, DumpCounters};

use crate::space::census::Census;

/// Counters of an FTL since it was opened, and the present state of its zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlStatistics {
    /// Pages that hosts wrote (after coalescing above).
    pub host_pages: u64,
    /// Appends of the host stream.
    pub host_appends: u64,
    /// Slots programmed for any reason: pages, records, checkpoints, headers, padding.
    pub slots_programmed: u64,
    /// Pages that cleaning relocated.
    pub pages_moved: u64,
    /// Zones that cleaning emptied.
    pub zones_cleaned: u64,
    /// Zones of cold content that wear levelling emptied.
    pub zones_levelled: u64,
    /// Zone resets (superblock erases).
    pub zone_resets: u64,
    /// Pages trimmed that held content.
    pub pages_trimmed: u64,
    /// Pages that were remapped to another page's content: a change of the mapping alone.
    pub pages_shared: u64,
    /// Shared pages whose content was written again instead, because the table of reference lists
    /// was full or the content was being relocated.
    pub pages_share_copied: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Slots that checkpoints occupied.
    pub checkpoint_slots: u64,
    /// Appends that failed to program and were written elsewhere.
    pub program_failures: u64,
    /// Zones in all.
    pub zones: u32,
    /// Zones out of service.
    pub zones_retired: u32,
    /// Zones free now.
    pub zones_free: u32,
    /// The zones by fill and by wear.
    pub census: Census,
    /// Fewest and most resets of any zone, ever.
    pub zone_resets_min_max: (u32, u32),
    /// Logical pages that hold content.
    pub pages_mapped: u64,
    /// The clean ones among these: pages of a cache whose home has the content too.
    pub pages_clean: u64,
    /// Pages that cleaning could not read. They stay in place and are read again later.
    pub pages_unreadable: u64,
    /// Zones that hold such pages: they are not cleaned until these can be read.
    pub zones_unreadable: u32,
    /// Clean pages of a cache that cleaning evicted.
    pub pages_let_go: u64,
    /// Pages that a cache admitted from their home.
    pub pages_admitted: u64,
    /// Bytes of memory in the mapping tables.
    pub mapping_bytes: u64,
    /// Slots that hold the content of several pages.
    pub shared_slots: u64,
    /// Entries in the table of reference lists: pages beyond the first of a slot.
    pub shared_entries: u64,
    /// Bytes of memory in the table of reference lists, part of `mapping_bytes`.
    pub shared_bytes: u64,
    /// Mapping entries that a dump would hold now, if there is energy for one.
    pub changed_entries: u32,
    /// The largest `changed_entries` so far.
    pub changed_entries_max: u32,
    /// Delta pages written: a dump no longer needs to hold their changed entries.
    pub delta_pages: u64,
    /// Bytes that the stored energy can dump; 0 without stored energy.
    pub dump_budget_bytes: u64,
    /// Whether a failure of the log makes the FTL refuse writes until it is opened again.
    pub latched: bool,
}

impl FtlStatistics {
    /// Slots programmed per page that hosts wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages == 0 {
            return 0.0;
        }
        self.slots_programmed as f64 / self.host_pages as f64
    }

    /// The FTL's part of a device's counters.
    pub fn counters(&self) -> DeviceCounters {
        DeviceCounters {
            layer_pages_written: self.host_pages,
            slots_programmed: self.slots_programmed,
            pages_moved: self.pages_moved,
            zones_cleaned: self.zones_cleaned,
            checkpoints: self.checkpoints,
            dump: (self.dump_budget_bytes > 0).then_some(DumpCounters {
                bytes_max: 0,
                budget_bytes: self.dump_budget_bytes,
                delta_pages: self.delta_pages,
            }),
            ..DeviceCounters::default()
        }
    }

    /// Reports all numbers that can be watched.
    pub fn tell(&self, out: &mut Readings) {
        self.counters().tell_layer(out);
        self.tell_zones(out);
        let trimmed = "Trimmed pages that held content";
        out.counter("tantalum_ftl_trimmed_pages_total", trimmed, self.pages_trimmed);
        let shared = "Pages that took another page's content by a change of the mapping alone";
        out.counter("tantalum_ftl_shared_pages_total", shared, self.pages_shared);
        let slots = "Slots that checkpoints occupied";
        out.counter("tantalum_ftl_checkpoint_slots_total", slots, self.checkpoint_slots);
        let failures = "Appends that failed and were written elsewhere";
        out.counter("tantalum_ftl_program_failures_total", failures, self.program_failures);
        let mapped = "Pages with content: written and not trimmed since";
        out.gauge("tantalum_ftl_mapped_pages", mapped, self.pages_mapped);
        let unreadable = "Pages that cleaning could not read and tries again";
        out.gauge("tantalum_ftl_unreadable_pages", unreadable, self.pages_unreadable);
        let mapping = "Memory of the mapping";
        out.gauge("tantalum_ftl_mapping_bytes", mapping, self.mapping_bytes);
        let latched = "1 if a failure of the log stopped all writes until the next opening";
        out.gauge("tantalum_ftl_latched", latched, self.latched);
        if self.dump_budget_bytes > 0 {
            let budget = "Bytes that the stored energy can dump when the power is cut";
            out.gauge("tantalum_dump_budget_bytes", budget, self.dump_budget_bytes);
            let delta = "Delta pages written, which keep mapping entries out of the dump";
            out.counter("tantalum_dump_delta_pages_total", delta, self.delta_pages);
        }
    }

    fn tell_zones(&self, out: &mut Readings) {
        out.gauge("tantalum_ftl_zones", "All zones", self.zones);
        out.gauge("tantalum_ftl_free_zones", "Zones ready to be written", self.zones_free);
        out.gauge("tantalum_ftl_retired_zones", "Worn-out zones", self.zones_retired);
        let held = "Zones that cleaning leaves alone because pages in them cannot be read now";
        out.gauge("tantalum_ftl_unreadable_zones", held, self.zones_unreadable);
        let (resets_min, resets_max) = self.zone_resets_min_max;
        let least = "Resets of the least worn zone, ever";
        out.gauge("tantalum_ftl_zone_resets_min", least, resets_min);
        let most = "Resets of the most worn zone, ever";
        out.gauge("tantalum_ftl_zone_resets_max", most, resets_max);
        out.counter("tantalum_ftl_zone_resets_total", "Resets of zones", self.zone_resets);
        let levelled = "Zones of cold content that wear levelling emptied";
        out.counter("tantalum_ftl_levelled_zones_total", levelled, self.zones_levelled);
    }
}
