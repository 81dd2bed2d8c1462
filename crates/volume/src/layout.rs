//! The number of zones for a capacity.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_ftl::mapped_pages_max;
use tantalum_media::ZoneGeometry;

/// The smallest number of zones with which a medium like `template` has room for `pages`, for a share of
/// `over_provisioning` of them for cleaning, and for the FTL's own needs with a map of `entries` entries.
pub fn zones_for(
    template: &ZoneGeometry,
    pages: u64,
    entries: u64,
    over_provisioning: f64,
) -> Result<u32> {
    let wanted = pages + (pages as f64 * over_provisioning).ceil() as u64;
    let offers =
        |zones: u32| mapped_pages_max(&ZoneGeometry { zones, ..*template }, 0, |_| entries);
    let most = u32::MAX / template.slots_per_zone;
    if offers(most) < wanted {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{pages} pages take more than the {most} zones that slot numbers reach"),
        ));
    }
    // The room grows with the zones, so a binary search works.
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if offers(middle) >= wanted { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zones_carry_what_they_must_and_no_more() {
        for slots_per_zone in [16, 256, 4096] {
            let template = ZoneGeometry {
                zones: 0,
                slots_per_zone,
                append_unit_slots: 1,
                append_overhead_slots: 1,
                append_pages_max: 100,
            };
            for pages in [16, 1000, 100_000] {
                let entries = 2 * pages;
                let zones = zones_for(&template, pages, entries, 0.12).unwrap();
                let offers =
                    |zones| mapped_pages_max(&ZoneGeometry { zones, ..template }, 0, |_| entries);
                let wanted = (pages as f64 * 1.12).ceil() as u64;
                assert!(offers(zones) >= wanted && offers(zones - 1) < wanted);
            }
        }
    }
}
