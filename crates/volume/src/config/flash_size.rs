//! The flash of a tiered volume: its zones, and whether it is large enough for the settings.
use tantalum_base::size::human_bytes;
use tantalum_base::{ErrorKind, PAGE_BYTES, Result};
use tantalum_media::ZoneGeometry;

use super::VolumeConfig;
use crate::home_config::default_dirty_max;
use crate::refusals::{FLASH_TOO_SMALL, FLASH_ZONES};
use crate::sizes::whole_pages;
use crate::superblock::FIRST_ZONE_BYTE;

/// Minimum number of zones, so that cleaning has a choice of victims.
const ZONES_MIN: u64 = 16;

/// Limit of the search for a large enough flash, in MiB.
const LEAST_MIB_MAX: u64 = 1 << 18;

impl VolumeConfig {
    /// Pages of the flash of a tiered volume.
    pub(super) fn flash_pages(&self) -> Result<u64> {
        whole_pages("media.size", self.media.size.as_deref().unwrap_or("0MiB"))
    }

    fn flash_zones_fit(&self) -> Result<u64> {
        let usable = self.flash_pages()?.saturating_sub(FIRST_ZONE_BYTE / PAGE_BYTES as u64);
        Ok(usable / u64::from(self.zone_slots()?))
    }

    /// Zones of the flash of a tiered volume.
    ///
    /// # Errors
    /// `InvalidInput` if the flash is too small or too large.
    pub fn flash_zones(&self) -> Result<u32> {
        let zones = self.flash_zones_fit()?;
        let most = u32::MAX / 2 / self.zone_slots()?;
        if zones < ZONES_MIN || zones > u64::from(most) {
            let zone = u64::from(self.zone_slots()?) * PAGE_BYTES as u64;
            let [least, largest] = [ZONES_MIN, u64::from(most)].map(|zones| zones * zone);
            let context = format!(
                "media.size (--flash-size) makes {zones} {FLASH_ZONES} {ZONES_MIN} to {most}, which take {} to {} \
                 (media.zone is {})",
                human_bytes(least),
                human_bytes(largest),
                human_bytes(zone)
            );
            return Err(FLASH_ZONES.error(ErrorKind::InvalidInput, context));
        }
        Ok(zones as u32)
    }

    /// The shape of the zones of a tiered volume.
    pub(super) fn flash_geometry(&self) -> Result<ZoneGeometry> {
        Ok(ZoneGeometry {
            zones: self.flash_zones()?,
            slots_per_zone: self.zone_slots()?,
            append_unit_slots: 1,
            append_overhead_slots: 1,
            append_pages_max: tantalum_media::file_zones::APPEND_PAGES_MAX,
        })
    }

    /// Checks that the flash of a tiered volume is large enough for the settings.
    ///
    /// # Errors
    /// `InvalidInput` with the smallest size that is large enough.
    pub(super) fn check_flash(&self) -> Result<()> {
        if self.is_flash_large_enough()? {
            // Reports other problems with the size.
            return self.flash_zones().map(drop);
        }
        let least = match self.least_flash_mib()? {
            Some(mib) => format!("at least {mib}MiB"),
            None => format!("over {LEAST_MIB_MAX}MiB"),
        };
        let context = format!(
            "media.size (--flash-size) = {:?} {FLASH_TOO_SMALL}: with {} it must be {least}",
            self.media.size.as_deref().unwrap_or_default(),
            self.flash_takers()
        );
        Err(FLASH_TOO_SMALL.error(ErrorKind::InvalidInput, context))
    }

    /// The settings that require a large flash: the write cache, and others that the configuration
    /// sets.
    fn flash_takers(&self) -> String {
        let device = &self.device;
        let share = self.home.as_ref().map(|home| &home.dirty_max);
        let said = [
            ("device.cache", Some(&device.cache)),
            ("device.transaction_memory", device.transaction_memory.as_ref()),
            ("media.zone", self.media.zone.as_ref()),
            ("home.dirty_max", share.filter(|share| **share != default_dirty_max())),
        ];
        let said = said.into_iter().filter_map(|(key, text)| Some(format!("{key} = {:?}", text?)));
        said.collect::<Vec<String>>().join(", ")
    }

    /// Whether the write cache and one transaction fit four times into the limit on dirty pages.
    fn is_flash_large_enough(&self) -> Result<bool> {
        let Some(home) = &self.home else { return Ok(true) };
        let ssd = self.ssd_options()?;
        if self.flash_zones_fit()? < ZONES_MIN {
            return Ok(false);
        }
        let cache = home.cache_options(&self.flash_geometry()?)?;
        Ok(cache.dirty_pages_max >= 4 * u64::from(ssd.cache_pages.max(ssd.transaction_pages_max)))
    }

    /// The next larger size, in MiB, that is large enough.
    fn least_flash_mib(&self) -> Result<Option<u64>> {
        let from = (self.flash_pages()? * PAGE_BYTES as u64) >> 20;
        let mut larger = self.clone();
        for mib in from + 1..=LEAST_MIB_MAX {
            larger.media.size = Some(format!("{mib}MiB"));
            if larger.is_flash_large_enough()? {
                return Ok(Some(mib));
            }
        }
        Ok(None)
    }
}
