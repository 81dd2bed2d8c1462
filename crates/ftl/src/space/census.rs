//! Counts all zones by fill and by wear.
use super::{Space, ZoneState};

/// Classes of zones by the share of their slots that are live: none; up to a tenth; up to two tenths; ...
pub const FILL_CLASSES: usize = 11;
/// Classes of zones by their resets: of equal width, from the least worn to the most.
pub const WEAR_CLASSES: usize = 10;

/// Zones by fill and by wear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Slots with content that is needed.
    pub slots_live: u64,
    /// Slots written whose content is no longer needed, headers and padding included.
    pub slots_dead: u64,
    /// Zones that hosts may not fill.
    pub zones_reserve: u32,
    /// Zones in service by their live slots: `[0]` those without any, `[n]` those with more than `n - 1` and up to
    /// `n` tenths.
    pub by_fill: [u32; FILL_CLASSES],
    /// Zones by their resets: `[n]` those with `n * width` to `n * width + width - 1` more than the least.
    pub by_resets: [u32; WEAR_CLASSES],
    /// Resets in one of these classes: their width; at least 1.
    pub resets_width: u32,
}

impl Space {
    /// Counts all zones.
    pub fn census(&self) -> Census {
        let resets = || self.iter().map(|(_, zone)| zone.resets);
        let (least, most) = (resets().min().unwrap_or(0), resets().max().unwrap_or(0));
        let resets_width = (most - least + 1).div_ceil(WEAR_CLASSES as u32);
        let mut census =
            Census { zones_reserve: self.reserve_zones(), resets_width, ..Census::default() };
        let slots = self.geometry().slots_per_zone;
        for (_, zone) in self.iter() {
            census.by_resets[((zone.resets - least) / resets_width) as usize] += 1;
            if zone.state == ZoneState::Retired {
                continue;
            }
            census.slots_live += u64::from(zone.live_slots);
            if matches!(zone.state, ZoneState::Open | ZoneState::Full) {
                census.slots_dead += u64::from(zone.used_slots.saturating_sub(zone.live_slots));
            }
            let tenths = (u64::from(zone.live_slots) * 10).div_ceil(u64::from(slots));
            census.by_fill[tenths as usize] += 1;
        }
        census
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_media::ZoneGeometry;

    #[test]
    fn every_zone_is_counted_once_by_fill_and_by_wear() {
        let geometry = ZoneGeometry {
            zones: 5,
            slots_per_zone: 20,
            append_unit_slots: 1,
            append_overhead_slots: 0,
            append_pages_max: 8,
        };
        let mut space = Space::new(geometry, &[], 2);
        assert_eq!(space.census().by_resets[0], 5);
        // Live, used, resets.
        let zones = [(0, 0, 3), (1, 5, 3), (2, 20, 4), (20, 20, 23), (7, 9, 5)];
        for (zone, (live, used, resets)) in space.zones.iter_mut().zip(zones) {
            (zone.live_slots, zone.used_slots, zone.resets) = (live, used, resets);
            zone.state = if used == 0 { ZoneState::Free } else { ZoneState::Full };
        }
        space.zones[4].state = ZoneState::Retired;
        let census = space.census();
        assert_eq!((census.slots_live, census.slots_dead, census.zones_reserve), (23, 22, 2));
        assert_eq!(census.by_fill, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        // 3 to 23: 21 in ten classes are three in each.
        assert_eq!(census.resets_width, 3);
        assert_eq!(census.by_resets, [4, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
