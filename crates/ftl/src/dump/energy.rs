//! Divides the bytes that the stored energy can program among frames, changed entries of the
//! mapping, and programs that may fail.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};
use tantalum_media::ZoneGeometry;

use crate::checkpoints::pages::slots_max;
use crate::dump::delta_pages::ENTRIES_MIN;
use crate::log::records::REFERENCES_MAX;
use crate::options::packed_slots;

/// The limits of a dump, if the device has energy for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Bytes that the stored energy can program.
    pub budget_bytes: u64,
    /// Frames of the buffer pool.
    pub frames_max: u32,
    /// Most programs that may fail in one dump: energy and zones are reserved for them. With more,
    /// the dump may not find space, and its content is lost.
    pub program_failures_max: u32,
}

/// The default of `program_failures_max`.
const PROGRAM_FAILURES_MAX: u32 = 2;

impl DumpOptions {
    /// The least budget for `frames_max` frames on a device of `pages` logical pages, with room for
    /// as many changed entries as the flows need at once. Two programs may fail.
    pub fn least(geometry: &ZoneGeometry, pages: u64, frames_max: u32) -> Self {
        let program_failures_max = PROGRAM_FAILURES_MAX;
        let none = DumpOptions { budget_bytes: 0, frames_max, program_failures_max };
        none.with_least_budget(geometry, pages)
    }

    /// The same options with the least budget for these frames and failures.
    pub fn with_least_budget(self, geometry: &ZoneGeometry, pages: u64) -> Self {
        let slots = dump_slots(geometry, least_entry_pages(geometry, pages), &self);
        DumpOptions { budget_bytes: slots * PAGE_BYTES as u64, ..self }
    }
}

/// The division of a budget on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Zones of the dump area.
    pub zones: u32,
    /// Most mapping entries that may be changed and not written yet.
    pub entries_max: u32,
    /// Most slots of delta pages in force.
    pub delta_slots_max: u64,
    /// Zones for these slots.
    pub delta_zones: u32,
    /// Most pages that one batch may share.
    pub shares_max: u32,
}

/// Least pages of entries with which appends of hosts and of cleaning never wait for each other.
fn least_entry_pages(geometry: &ZoneGeometry, pages: u64) -> u32 {
    let most = geometry.append_pages_max;
    // One append of cleaning changes an entry for each page in its slots.
    let moved = pages.min(u64::from(most) * (1 + REFERENCES_MAX as u64)) as u32;
    (6 * most).max(2 * moved).div_ceil(ENTRIES_MIN as u32)
}

/// Slots of `pages` pages in the longest appends.
fn packed_appends(geometry: &ZoneGeometry, pages: u64) -> u64 {
    let most = u64::from(geometry.append_pages_max);
    let rest = (pages % most) as u32;
    let rest = if rest > 0 { u64::from(geometry.append_slots(rest)) } else { 0 };
    pages / most * u64::from(geometry.append_slots(geometry.append_pages_max)) + rest
}

/// Slots that may be wasted at a zone's end, if an append is split.
pub(crate) fn wasted_slots(geometry: &ZoneGeometry) -> u64 {
    u64::from(geometry.append_overhead_slots + geometry.append_unit_slots)
}

/// Zones for `slots` slots, with those wasted at the zones' ends.
pub(crate) fn zones_for(geometry: &ZoneGeometry, slots: u64) -> u64 {
    slots.div_ceil(u64::from(geometry.slots_per_zone) - wasted_slots(geometry))
}

/// Slots of a dump without failed programs, without those wasted at zones' ends.
pub(crate) fn plain_slots(geometry: &ZoneGeometry, entry_pages: u32, frames: u32) -> u64 {
    let pages = u64::from(entry_pages) + u64::from(frames);
    2 * u64::from(geometry.append_slots(1)) + packed_appends(geometry, pages)
}

/// Zones of the dump area. A failed program ends the use of its zone, perhaps at its start.
fn dump_zones(geometry: &ZoneGeometry, entry_pages: u32, options: &DumpOptions) -> u64 {
    let plain = zones_for(geometry, plain_slots(geometry, entry_pages, options.frames_max));
    plain + u64::from(options.program_failures_max)
}

/// Most slots that a dump programs, and needs energy for. A failed append is programmed again, and
/// each time the pages continue in another zone they may be split differently.
pub(crate) fn dump_slots(geometry: &ZoneGeometry, entry_pages: u32, options: &DumpOptions) -> u64 {
    let append = u64::from(geometry.append_slots(geometry.append_pages_max));
    plain_slots(geometry, entry_pages, options.frames_max)
        + u64::from(options.program_failures_max) * append
        + dump_zones(geometry, entry_pages, options) * wasted_slots(geometry)
}

impl Layout {
    /// Divides the budget of `options` on a device of `pages` logical pages.
    ///
    /// # Errors
    /// `InvalidInput` if the budget is too small for the frames and the least number of entries.
    pub fn new(geometry: &ZoneGeometry, pages: u64, options: &DumpOptions) -> Result<Layout> {
        let budget_slots = options.budget_bytes / PAGE_BYTES as u64;
        let fits = |pages: u32| dump_slots(geometry, pages, options) <= budget_slots;
        let least = least_entry_pages(geometry, pages);
        if !fits(least) {
            let needed = options.with_least_budget(geometry, pages).budget_bytes;
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{} frames cannot be dumped with energy for {} bytes while {} programs fail: \
                     at least {needed} are needed",
                    options.frames_max, options.budget_bytes, options.program_failures_max
                ),
            ));
        }
        // Each page may be in three lists at once.
        let useful = (3 * pages).div_ceil(ENTRIES_MIN as u64).min(u64::from(u32::MAX / 256)) as u32;
        let (mut entry_pages, mut too_many) = (least, useful.max(least) + 1);
        while too_many - entry_pages > 1 {
            let middle = entry_pages + (too_many - entry_pages) / 2;
            *(if fits(middle) { &mut entry_pages } else { &mut too_many }) = middle;
        }
        let zones = dump_zones(geometry, entry_pages, options) as u32;
        // Two whole lists, and the pages written between two checkpoints: at least a quarter of a
        // checkpoint's slots, and up to all of them if the last zone has room.
        let lists = packed_appends(geometry, 2 * u64::from(entry_pages))
            + 4 * u64::from(geometry.append_slots(1));
        let checkpoint = slots_max(geometry, pages);
        let packed = u64::from(packed_slots(geometry));
        let delta_zones = (lists + checkpoint / 4).div_ceil(packed) as u32;
        let delta_slots_max = (lists + checkpoint).min(u64::from(delta_zones) * packed);
        let entries_max = entry_pages * ENTRIES_MIN as u32;
        let shares_max = entries_max / 4;
        Ok(Layout { zones, entries_max, delta_slots_max, delta_zones, shares_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: ZoneGeometry = ZoneGeometry {
        zones: 20,
        slots_per_zone: 32,
        append_unit_slots: 2,
        append_overhead_slots: 0,
        append_pages_max: 16,
    };

    #[test]
    fn a_budget_is_used_up_and_never_overdrawn() {
        for frames_max in [1, 24, 500] {
            let least = DumpOptions::least(&GEOMETRY, 1 << 20, frames_max);
            let mut entries_before = 0;
            for more_slots in 0..400 {
                let budget_bytes = least.budget_bytes + more_slots * PAGE_BYTES as u64;
                let options = DumpOptions { budget_bytes, ..least };
                let layout = Layout::new(&GEOMETRY, 1 << 20, &options).unwrap();
                let pages = layout.entries_max / ENTRIES_MIN as u32;
                assert!(dump_slots(&GEOMETRY, pages, &options) * 4096 <= budget_bytes);
                assert!(dump_slots(&GEOMETRY, pages + 1, &options) * 4096 > budget_bytes);
                assert!(layout.entries_max >= entries_before);
                entries_before = layout.entries_max;
            }
            let budget_bytes = least.budget_bytes - 1;
            let refused = Layout::new(&GEOMETRY, 1 << 20, &DumpOptions { budget_bytes, ..least });
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}
