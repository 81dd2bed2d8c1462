//! What the stored energy is enough for: how the bytes that it can program are divided up among frames,
//! changed entries of the mapping, and programs that may fail.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};
use tantalum_media::ZoneGeometry;

use crate::checkpoints::pages::slots_max;
use crate::dump::delta_pages::ENTRIES_MIN;
use crate::log::records::REFERENCES_MAX;
use crate::options::packed_slots;

/// What a dump may take: set where the device has energy for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Bytes that the stored energy can program.
    pub budget_bytes: u64,
    /// Frames of the buffer pool.
    pub frames_max: u32,
    /// Programs that may fail in one dump: energy and zones are kept for as many. With more, the
    /// dump may not find space, and what it should keep is lost.
    pub program_failures_max: u32,
}

/// Programs that may fail in one dump, where nothing else is said.
const PROGRAM_FAILURES_MAX: u32 = 2;

impl DumpOptions {
    /// The least that `frames_max` frames on a device of `pages` logical pages need, with room for as many
    /// changed entries as the flows need at once. Two programs may fail.
    pub fn least(geometry: &ZoneGeometry, pages: u64, frames_max: u32) -> Self {
        let program_failures_max = PROGRAM_FAILURES_MAX;
        let none = DumpOptions { budget_bytes: 0, frames_max, program_failures_max };
        none.with_least_budget(geometry, pages)
    }

    /// The same with the least budget that its frames and failures need.
    pub fn with_least_budget(self, geometry: &ZoneGeometry, pages: u64) -> Self {
        let slots = dump_slots(geometry, least_entry_pages(geometry, pages), &self);
        DumpOptions { budget_bytes: slots * PAGE_BYTES as u64, ..self }
    }
}

/// How a budget is divided up on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Zones of the dump area.
    pub zones: u32,
    /// Mapping entries that may be changed and not written yet.
    pub entries_max: u32,
    /// Slots of delta pages that may be in force.
    pub delta_slots_max: u64,
    /// Zones that these take.
    pub delta_zones: u32,
    /// Pages that one batch may share.
    pub shares_max: u32,
}

/// Pages of entries without which appends of hosts and of cleaning might wait for each other.
fn least_entry_pages(geometry: &ZoneGeometry, pages: u64) -> u32 {
    let most = geometry.append_pages_max;
    // One append of cleaning changes as many entries as its slots have pages.
    let moved = pages.min(u64::from(most) * (1 + REFERENCES_MAX as u64)) as u32;
    (6 * most).max(2 * moved).div_ceil(ENTRIES_MIN as u32)
}

/// Slots that `pages` pages take in the longest appends.
fn packed_appends(geometry: &ZoneGeometry, pages: u64) -> u64 {
    let most = u64::from(geometry.append_pages_max);
    let rest = (pages % most) as u32;
    let rest = if rest > 0 { u64::from(geometry.append_slots(rest)) } else { 0 };
    pages / most * u64::from(geometry.append_slots(geometry.append_pages_max)) + rest
}

/// Slots at a zone's end that an append which is cut in two there may waste.
pub(crate) fn wasted_slots(geometry: &ZoneGeometry) -> u64 {
    u64::from(geometry.append_overhead_slots + geometry.append_unit_slots)
}

/// Zones that `slots` slots take besides what zones' ends waste.
pub(crate) fn zones_for(geometry: &ZoneGeometry, slots: u64) -> u64 {
    slots.div_ceil(u64::from(geometry.slots_per_zone) - wasted_slots(geometry))
}

/// Slots that a dump in which no program fails takes, besides what zones' ends waste.
pub(crate) fn plain_slots(geometry: &ZoneGeometry, entry_pages: u32, frames: u32) -> u64 {
    let pages = u64::from(entry_pages) + u64::from(frames);
    2 * u64::from(geometry.append_slots(1)) + packed_appends(geometry, pages)
}

/// Zones of the dump area. A program that fails gives the rest of its zone up, which may be all of it.
fn dump_zones(geometry: &ZoneGeometry, entry_pages: u32, options: &DumpOptions) -> u64 {
    let plain = zones_for(geometry, plain_slots(geometry, entry_pages, options.frames_max));
    plain + u64::from(options.program_failures_max)
}

/// Slots that a dump programs at the most: the energy for it. An append that fails is programmed
/// again, and each time that pages go on in another zone their appends may be cut differently.
pub(crate) fn dump_slots(geometry: &ZoneGeometry, entry_pages: u32, options: &DumpOptions) -> u64 {
    let append = u64::from(geometry.append_slots(geometry.append_pages_max));
    plain_slots(geometry, entry_pages, options.frames_max)
        + u64::from(options.program_failures_max) * append
        + dump_zones(geometry, entry_pages, options) * wasted_slots(geometry)
}

impl Layout {
    /// Divides `options` up for a device of `pages` logical pages.
    ///
    /// # Errors
    /// `InvalidInput` where the budget is too small for the frames and the least of entries.
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
        // Two whole lists, and what is written between two checkpoints: as much as a quarter of one,
        // and as what is left of the last zone, up to a whole one.
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
