//! The counters of an FTL.
use tantalum_runtime::{DeviceCounters, DumpCounters};

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
    /// Pages to share whose content was written again instead, as the table of reference lists was
    /// full or the content was being relocated.
    pub pages_share_copied: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Slots that checkpoints took.
    pub checkpoint_slots: u64,
    /// Appends that failed to program and were written elsewhere.
    pub program_failures: u64,
    /// Zones out of service.
    pub zones_retired: u32,
    /// Zones free now.
    pub zones_free: u32,
    /// Fewest and most resets of a zone, ever.
    pub zone_resets_min_max: (u32, u32),
    /// Logical pages that hold content.
    pub pages_mapped: u64,
    /// Bytes of memory in the mapping tables.
    pub mapping_bytes: u64,
    /// Slots that hold the content of several pages.
    pub shared_slots: u64,
    /// Entries in the table of reference lists: pages beyond the first of a slot.
    pub shared_entries: u64,
    /// Bytes of memory in the table of reference lists, part of `mapping_bytes`.
    pub shared_bytes: u64,
    /// Mapping entries that a dump would hold now, where there is energy for one.
    pub changed_entries: u32,
    /// The largest `changed_entries` so far.
    pub changed_entries_max: u32,
    /// Delta pages written: changed entries that a dump need not hold any more.
    pub delta_pages: u64,
    /// Bytes that the stored energy can dump; 0 without any.
    pub dump_budget_bytes: u64,
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
}
