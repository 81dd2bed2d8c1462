//! The settings of an FTL, and whether a geometry has room for them.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::ZoneGeometry;
use tantalum_policy::CleaningSpec;

use crate::cache::CacheOptions;
use crate::checkpoints::pages;
use crate::dump::energy::{DumpOptions, Layout};

/// Default of `wear_spread_max`: a few percent of the endurance of MLC flash.
const WEAR_SPREAD_MAX: u32 = 128;

/// Slots between two checkpoints, as a multiple of a checkpoint's slots: balances the cost of checkpoints against the
/// slots that a recovery must scan.
const INTERVAL: u64 = 32;
/// The same for a device with a dump: there, recovery reads only the delta pages instead of scanning.
const INTERVAL_WITH_DUMP: u64 = 256;

/// Settings of a page-mapping FTL. All sizes in pages, slots or zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FtlOptions {
    /// Logical pages offered.
    pub pages: u64,
    /// Most pages that may have content at once; there is room for no more, and the caller must enforce it. `None`: all
    /// of `pages`.
    pub mapped_pages_max: Option<u64>,
    /// Cleaning starts when fewer zones than this are free beyond the reserve.
    pub cleaning_low_zones: u32,
    /// Cleaning stops when this many zones are free beyond the reserve.
    pub cleaning_high_zones: u32,
    /// Cleaning keeps pace with the hosts' appends, in short copies, as long as there is room for them: no write waits
    /// long behind it. Otherwise cleaning uses all the bandwidth of the medium, to finish as soon as possible.
    pub paces_cleaning: bool,
    /// One log, as in simple firmware: hosts append behind cleaning's copies, in the zone that cleaning opened, and a
    /// zone is cleaned whenever the space is needed. Otherwise copies have zones of their own, which keeps long-lived
    /// data apart.
    pub copies_with_writes: bool,
    /// The medium allocates room as it is written: little is held beyond the live data, and the rest is released.
    pub gives_room_back: bool,
    /// A checkpoint is written after this many appended slots; 0 chooses 32 times the size of a checkpoint, 256 times
    /// with a dump, at least 4096.
    pub checkpoint_interval_slots: u64,
    /// Entries in the table of reference lists, one per page beyond the first of a slot; `None`: no limit. SHARE,
    /// section 4.2.1, has 250 or 500. When it is full, shared contents are copied instead.
    pub share_entries_max: Option<u32>,
    /// The limits of the dump at a power loss; `None` if there is no energy for one.
    pub dump: Option<DumpOptions>,
    /// The policy that chooses the next zone to clean.
    pub cleaning: CleaningSpec,
    /// Zones of cold content are emptied when the most worn zone exceeds their resets by more than this; `u32::MAX`
    /// never empties any.
    pub wear_spread_max: u32,
    /// Writes nothing to the medium: recovery builds its state in memory only, and every change is refused with
    /// [`ErrorKind::ReadOnly`].
    pub read_only: bool,
    /// Opens the device even if durable changes are damaged and their pages are unknown, or a part of the map is
    /// damaged; the recovery report counts the losses. Otherwise opening fails with `Corrupt`.
    pub accept_loss: bool,
    /// The device once had fewer pages: a checkpoint of fewer pages is valid, and the new pages are empty. Otherwise
    /// opening fails with `InvalidInput`.
    pub has_grown: bool,
    /// The pages have a home elsewhere, which holds `pages` pages; `None` if the device is no cache.
    pub cache: Option<CacheOptions>,
}

impl FtlOptions {
    /// Defaults for `pages` logical pages.
    pub fn new(pages: u64) -> Self {
        FtlOptions {
            pages,
            mapped_pages_max: None,
            cleaning_low_zones: 2,
            cleaning_high_zones: 4,
            paces_cleaning: false,
            copies_with_writes: false,
            gives_room_back: false,
            checkpoint_interval_slots: 0,
            share_entries_max: None,
            dump: None,
            cleaning: CleaningSpec::Greedy,
            wear_spread_max: WEAR_SPREAD_MAX,
            read_only: false,
            accept_loss: false,
            has_grown: false,
            cache: None,
        }
    }

    /// The division of the dump's budget on `geometry`, if there is a dump.
    pub(crate) fn layout(&self, geometry: &ZoneGeometry) -> Result<Option<Layout>> {
        self.dump.as_ref().map(|dump| Layout::new(geometry, self.pages, dump)).transpose()
    }

    /// Zones for the dump and delta pages, beyond those of a device without a dump.
    ///
    /// # Errors
    /// `InvalidInput` if the dump's budget is too small.
    pub fn dump_zones(&self, geometry: &ZoneGeometry) -> Result<u32> {
        // Both the delta pages in force and those that replace them need zones.
        let zones = |layout: Layout| layout.zones + 2 * layout.delta_zones;
        Ok(self.layout(geometry)?.map_or(0, zones))
    }

    /// Checks that `geometry`, without `retired` zones, has room for the logical pages and for
    /// cleaning.
    pub fn check(&self, geometry: &ZoneGeometry, retired: u32) -> Result<()> {
        if let Some(cache) = &self.cache {
            cache.check(geometry, retired)?;
            if self.dump.is_some() {
                let context = "a cache of a home cannot have a dump";
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
        let (wanted, most) = match (self.cache, self.mapped_pages_max) {
            (Some(_), _) => (self.pages, u64::from(u32::MAX / 2)),
            (None, None) => (self.pages, pages_max(geometry, retired + self.dump_zones(geometry)?)),
            (None, Some(mapped)) => {
                let retired = retired + self.dump_zones(geometry)?;
                (mapped, mapped_pages_max(geometry, retired, |_| self.pages))
            }
        };
        if wanted == 0 || wanted > most {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{wanted} logical pages do not fit: {} zones of {} slots can offer at most {most}",
                    geometry.zones, geometry.slots_per_zone
                ),
            ));
        }
        if self.cleaning_low_zones > self.cleaning_high_zones {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "cleaning starts below {} free zones and stops at {}: the start must not be above the stop",
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
        (checkpoints * pages::slots_max(geometry, self.entries_max(geometry))).max(4096)
    }

    /// Upper bound of the map's entries in a checkpoint, counted as if of consecutive pages.
    pub(crate) fn entries_max(&self, geometry: &ZoneGeometry) -> u64 {
        match self.cache {
            Some(_) => cache_entries_max(geometry),
            None => self.pages,
        }
    }

    /// Pages that have a home: in a cache the others are for staging; all pages if the device is no cache.
    pub fn home_pages(&self) -> u64 {
        self.pages - self.cache.map_or(0, |cache| cache.staging_pages.min(self.pages))
    }

    /// The most pages that cleaning must keep.
    pub(crate) fn kept_pages_max(&self) -> u64 {
        let mapped = self.mapped_pages_max.unwrap_or(self.pages);
        self.cache.map_or(mapped, |cache| cache.kept_pages_max)
    }
}

/// One entry per slot, and as many again for pages that were trimmed or evicted since the last checkpoint; a quarter
/// more, because each entry names its page.
fn cache_entries_max(geometry: &ZoneGeometry) -> u64 {
    let slots = u64::from(geometry.zones) * u64::from(geometry.slots_per_zone);
    2 * slots * 5 / 4
}

/// Zones that hosts may not fill: one for cleaning to copy into, one to replace a zone in which a
/// program fails, and enough for the next checkpoint beside the previous one.
pub(crate) fn reserve_zones(geometry: &ZoneGeometry, pages: u64) -> u32 {
    2 + checkpoint_zones(geometry, pages)
}

/// Zones of one whole checkpoint that starts in a fresh zone.
fn checkpoint_zones(geometry: &ZoneGeometry, pages: u64) -> u32 {
    pages::slots_max(geometry, pages).div_ceil(u64::from(packed_slots(geometry))).max(1) as u32
}

/// Slots with pages in a zone that is filled with the longest appends.
pub(crate) fn packed_slots(geometry: &ZoneGeometry) -> u32 {
    let whole = geometry.append_slots(geometry.append_pages_max);
    let full_appends = geometry.slots_per_zone / whole;
    let rest = geometry.append_pages_fit(geometry.slots_per_zone - full_appends * whole);
    full_appends * geometry.append_pages_max + rest
}

/// The most slots that relocating `live` pages needs: the append that reaches a zone's end continues in the next, and
/// the rest may be too short for another append.
pub(crate) fn relocation_slots_max(geometry: &ZoneGeometry, live: u32) -> u32 {
    let most = geometry.append_pages_max;
    let rest = live % most;
    let rest = if rest > 0 { geometry.append_slots(rest) } else { 0 };
    let split = if live > 0 { 2 * geometry.append_overhead_slots } else { 0 };
    live / most * geometry.append_slots(most) + rest + split
}

/// The least number of live pages with which emptying a zone may gain no space.
fn unrewarding_pages(geometry: &ZoneGeometry) -> u32 {
    let gives = |live: &u32| relocation_slots_max(geometry, *live) < geometry.slots_per_zone;
    (0..=geometry.slots_per_zone).take_while(gives).count() as u32
}

/// The most logical pages that `geometry`, without `retired` zones, can offer: the space left after the reserve, the
/// open zones, the checkpoint in force, and one zone of garbage. However the garbage is spread, some zone must be worth
/// cleaning.
pub fn pages_max(geometry: &ZoneGeometry, retired: u32) -> u64 {
    mapped_pages_max(geometry, retired, |pages| pages)
}

/// The most pages that a cache on `geometry`, without `retired` zones, can keep.
pub fn kept_pages_max(geometry: &ZoneGeometry, retired: u32) -> u64 {
    mapped_pages_max(geometry, retired, |_| cache_entries_max(geometry))
}

/// The most pages with content at once for which `geometry`, without `retired` zones, has room. `entries` returns the
/// map's entries for a given number of such pages.
pub fn mapped_pages_max(
    geometry: &ZoneGeometry,
    retired: u32,
    entries: impl Fn(u64) -> u64,
) -> u64 {
    let usable = geometry.zones.saturating_sub(retired);
    let packed = u64::from(packed_slots(geometry));
    let unrewarding = u64::from(unrewarding_pages(geometry));
    // The overhead depends on the pages offered; a few steps reach the fixed point.
    let mut pages = u64::from(usable) * packed;
    for _ in 0..8 {
        let checkpoints = checkpoint_zones(geometry, entries(pages.max(1)));
        // Reserve, checkpoint in force with its open zone, open zones of hosts and of cleaning, one
        // zone of garbage.
        let overhead = (2 + checkpoints) + (checkpoints + 1) + 2 + 1;
        let rest = u64::from(usable.saturating_sub(overhead));
        if usable == overhead {
            // Pages can then be only in the hosts' open zone and in the zone of garbage. With this many pages, both
            // have space left.
            return unrewarding / 2;
        }
        // The pages are in these zones and the zone of garbage. At least one of them must be worth cleaning.
        let next = (rest * packed).min(((rest + 1) * unrewarding).saturating_sub(1));
        if next == pages {
            break;
        }
        pages = next;
    }
    pages
}
