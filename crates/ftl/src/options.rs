//! What an FTL is made with, and whether a geometry can carry it.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::ZoneGeometry;
use tantalum_policy::CleaningSpec;

use crate::checkpoints::pages;
use crate::dump::energy::{DumpOptions, Layout};

/// Resets that zones may differ by, unless told otherwise: a few percent of what MLC flash endures.
const WEAR_SPREAD_MAX: u32 = 128;

/// Slots between two checkpoints, in slots of a checkpoint: what they cost, and what a recovery
/// may have to scan.
const INTERVAL: u64 = 32;
/// The same where a dump is taken back instead, and only changes that are written down count.
const INTERVAL_WITH_DUMP: u64 = 256;

/// Settings of a page-mapping FTL. All sizes in pages, slots or zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FtlOptions {
    /// Logical pages offered.
    pub pages: u64,
    /// Cleaning starts when fewer zones than this are free beyond the reserve.
    pub cleaning_low_zones: u32,
    /// Cleaning stops when this many zones are free beyond the reserve.
    pub cleaning_high_zones: u32,
    /// A checkpoint is written after this many slots were appended; 0 chooses 32 times the
    /// size of a checkpoint, 256 times where there is energy for a dump, at least 4096.
    pub checkpoint_interval_slots: u64,
    /// Entries in the table of pages that share a slot, one a page beyond the first; `None` lets
    /// it grow. SHARE, section 4.2.1, has 250 or 500. Where it is full, contents to share are
    /// copied.
    pub share_entries_max: Option<u32>,
    /// What is dumped when the power is lost; none where there is no energy for it.
    pub dump: Option<DumpOptions>,
    /// Which zone is cleaned next.
    pub cleaning: CleaningSpec,
    /// Zones of cold content are emptied when the most worn zone has more resets than theirs by more
    /// than this; `u32::MAX` never empties any.
    pub wear_spread_max: u32,
    /// Nothing is written to the medium: recovery ends in memory alone, and every change is refused
    /// as [`ErrorKind::ReadOnly`].
    pub read_only: bool,
    /// Where changes that were durable are damaged and nobody knows which pages they were of, or a
    /// part of the map is, the device is opened all the same: what is given up the report of the
    /// recovery says. Otherwise that is `Corrupt`.
    pub accept_loss: bool,
}

impl FtlOptions {
    /// Defaults for `pages` logical pages.
    pub fn new(pages: u64) -> Self {
        FtlOptions {
            pages,
            cleaning_low_zones: 2,
            cleaning_high_zones: 4,
            checkpoint_interval_slots: 0,
            share_entries_max: None,
            dump: None,
            cleaning: CleaningSpec::Greedy,
            wear_spread_max: WEAR_SPREAD_MAX,
            read_only: false,
            accept_loss: false,
        }
    }

    /// How a dump's budget is divided up on `geometry`, where there is one.
    pub(crate) fn layout(&self, geometry: &ZoneGeometry) -> Result<Option<Layout>> {
        self.dump.as_ref().map(|dump| Layout::new(geometry, self.pages, dump)).transpose()
    }

    /// Zones that the dump and delta pages take besides what a device without them has.
    ///
    /// # Errors
    /// `InvalidInput` where the dump's budget is too small.
    pub fn dump_zones(&self, geometry: &ZoneGeometry) -> Result<u32> {
        // Deltas in force, and those that take their place.
        let zones = |layout: Layout| layout.zones + 2 * layout.delta_zones;
        Ok(self.layout(geometry)?.map_or(0, zones))
    }

    /// Checks that `geometry`, less `retired` zones, can carry the logical pages with space to
    /// clean in.
    pub fn check(&self, geometry: &ZoneGeometry, retired: u32) -> Result<()> {
        let most = pages_max(geometry, retired + self.dump_zones(geometry)?);
        if self.pages == 0 || self.pages > most {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{} logical pages do not fit: {} zones of {} slots can offer at most {most}",
                    self.pages, geometry.zones, geometry.slots_per_zone
                ),
            ));
        }
        if self.cleaning_low_zones > self.cleaning_high_zones {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "cleaning starts below {} free zones and stops at {}: the first must not be larger",
                    self.cleaning_low_zones, self.cleaning_high_zones
                ),
            ));
        }
        Ok(())
    }

    /// Slots appended between two checkpoints.
    pub(crate) fn checkpoint_interval(&self, geometry: &ZoneGeometry) -> u64 {
        if self.checkpoint_interval_slots > 0 {
            return self.checkpoint_interval_slots;
        }
        let checkpoints = if self.dump.is_some() { INTERVAL_WITH_DUMP } else { INTERVAL };
        (checkpoints * pages::slots_max(geometry, self.pages)).max(4096)
    }
}

/// Zones that hosts may not fill: one for cleaning to copy into, one in place of a zone in which
/// a program fails meanwhile, and enough for a checkpoint to be written beside the old one.
pub(crate) fn reserve_zones(geometry: &ZoneGeometry, pages: u64) -> u32 {
    2 + checkpoint_zones(geometry, pages)
}

/// Zones that one whole checkpoint takes when it starts in a fresh zone.
fn checkpoint_zones(geometry: &ZoneGeometry, pages: u64) -> u32 {
    pages::slots_max(geometry, pages).div_ceil(u64::from(packed_slots(geometry))).max(1) as u32
}

/// Slots of a zone that hold pages when it is filled with the longest appends.
pub(crate) fn packed_slots(geometry: &ZoneGeometry) -> u32 {
    let whole = geometry.append_slots(geometry.append_pages_max);
    let full_appends = geometry.slots_per_zone / whole;
    let rest = geometry.append_pages_fit(geometry.slots_per_zone - full_appends * whole);
    full_appends * geometry.append_pages_max + rest
}

/// Slots that relocating `live` pages takes at the most: the append that reaches a zone's end goes
/// on in the next, and what remains there may be too short for another.
pub(crate) fn relocation_slots_max(geometry: &ZoneGeometry, live: u32) -> u32 {
    let most = geometry.append_pages_max;
    let rest = live % most;
    let rest = if rest > 0 { geometry.append_slots(rest) } else { 0 };
    let split = if live > 0 { 2 * geometry.append_overhead_slots } else { 0 };
    live / most * geometry.append_slots(most) + rest + split
}

/// Live pages that a zone must have so that emptying it may give no space.
fn unrewarding_pages(geometry: &ZoneGeometry) -> u32 {
    let gives = |live: &u32| relocation_slots_max(geometry, *live) < geometry.slots_per_zone;
    (0..=geometry.slots_per_zone).take_while(gives).count() as u32
}

/// Logical pages that `geometry`, less `retired` zones, can offer at the most: what is left after the reserve, the
/// zones that are open, the checkpoint in force, and one zone of garbage to find. However evenly
/// the garbage is spread, some zone must be worth cleaning.
pub fn pages_max(geometry: &ZoneGeometry, retired: u32) -> u64 {
    let usable = geometry.zones.saturating_sub(retired);
    let packed = u64::from(packed_slots(geometry));
    let unrewarding = u64::from(unrewarding_pages(geometry));
    // The overhead depends on the pages offered; the fixed point is reached in a few steps.
    let mut pages = u64::from(usable) * packed;
    for _ in 0..8 {
        let checkpoints = checkpoint_zones(geometry, pages.max(1));
        // Reserve, checkpoint in force with its open zone, host's and cleaning's open zones,
        // one of garbage.
        let overhead = (2 + checkpoints) + (checkpoints + 1) + 2 + 1;
        let rest = u64::from(usable.saturating_sub(overhead));
        if usable == overhead {
            // The host's open zone and the one of garbage hold something, too: half of a zone's
            // pages leave space in either.
            return unrewarding / 2;
        }
        // The zone of garbage counts among those of which one must be worth cleaning.
        let next = (rest * packed).min(((rest + 1) * unrewarding).saturating_sub(1));
        if next == pages {
            break;
        }
        pages = next;
    }
    pages
}
