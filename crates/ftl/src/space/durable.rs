//! Tracks which part of each zone survives a power cut, and which durable watermark it states.
use tantalum_base::{Version, ZoneNo};

use crate::space::{Space, Stream, ZoneState};

/// The zone that states the highest durable watermark, and the second highest.
#[derive(Clone, Copy, Debug)]
pub struct Stated {
    highest: Version,
    by: Option<ZoneNo>,
    second: Version,
}

impl Stated {
    /// The highest watermark still stated when `zone` is reset.
    pub fn without(&self, zone: ZoneNo) -> Version {
        if self.by == Some(zone) { self.second } else { self.highest }
    }
}

/// The part of one zone that a sync which begins now makes durable.
pub struct ZoneSync {
    zone: ZoneNo,
    epoch: u64,
    // Slots and highest version, if no append is in flight.
    written: Option<(u32, Version)>,
    stated: Version,
}

impl Space {
    /// Notes that an append to `zone`, which states the watermark `stated`, returned. `durable`: it
    /// survives a power cut already.
    pub fn append_returned(&mut self, zone: ZoneNo, durable: bool, stated: Version) {
        let zone = self.get_mut(zone);
        zone.stated = zone.stated.max(stated);
        if durable {
            zone.stated_durably = zone.stated_durably.max(stated);
        }
        zone.appends_in_flight -= 1;
        zone.needs_sync |= !durable;
        if zone.appends_in_flight == 0 && !zone.needs_sync {
            zone.durable_slots = zone.used_slots;
            zone.durable_version_max = zone.version_max;
        }
        if zone.appends_in_flight == 0 && zone.live_slots == 0 {
            // All of its content may have been replaced before it returned.
            self.zone_died();
        }
    }

    /// Notes that a program of `stream` failed in `zone`, which takes no more appends.
    pub fn append_failed(&mut self, zone: ZoneNo, stream: Stream) {
        if self.open_zone(stream) == Some(zone) {
            self.seal(stream);
        }
        self.append_returned(zone, false, Version::NEVER);
        self.get_mut(zone).failing = true;
    }

    /// Notes that versions up to `version` were placed in `zone`.
    pub fn holds_up_to(&mut self, zone: ZoneNo, version: Version) {
        let zone = self.get_mut(zone);
        zone.version_max = zone.version_max.max(version);
    }

    /// The parts of zones that a sync which begins now makes durable.
    pub fn before_sync(&self) -> Vec<ZoneSync> {
        let zones = self.iter().filter_map(|(number, zone)| {
            let written = (zone.needs_sync && zone.appends_in_flight == 0)
                .then_some((zone.used_slots, zone.version_max));
            let sync = ZoneSync { zone: number, epoch: zone.epoch, written, stated: zone.stated };
            (written.is_some() || zone.stated > zone.stated_durably).then_some(sync)
        });
        zones.collect()
    }

    /// Notes that the sync that began with `before` has completed.
    pub fn synced(&mut self, before: &[ZoneSync]) {
        for sync in before {
            let zone = self.get_mut(sync.zone);
            if zone.epoch != sync.epoch {
                continue;
            }
            if let Some((used_slots, version_max)) = sync.written {
                if used_slots >= zone.durable_slots {
                    zone.durable_slots = used_slots;
                    zone.durable_version_max = version_max;
                }
                zone.needs_sync = zone.used_slots != used_slots;
            }
            zone.stated_durably = zone.stated_durably.max(sync.stated);
        }
    }

    /// When a checkpoint begins that covers all changes up to `covered`, notes for each zone which
    /// leading slots it covers, so that recovery need not scan them.
    pub fn checkpoint_started(&mut self, covered: Version) {
        for zone in &mut self.zones {
            let is_covered = zone.durable_version_max <= covered;
            zone.covered_slots = match zone.state {
                ZoneState::Full if is_covered && zone.durable_slots == zone.used_slots => {
                    self.geometry.slots_per_zone
                }
                ZoneState::Open | ZoneState::Full if is_covered => zone.durable_slots,
                _ => 0,
            };
        }
    }

    /// The highest durable watermark that zones state.
    pub fn stated(&self) -> Stated {
        let (highest, second) = (Version::NEVER, Version::NEVER);
        let mut stated = Stated { highest, by: None, second };
        for (number, zone) in self.iter() {
            if !zone.is_in_use() || zone.being_emptied || zone.stated_durably <= stated.second {
                continue;
            }
            stated.second = zone.stated_durably;
            if stated.second > stated.highest {
                std::mem::swap(&mut stated.highest, &mut stated.second);
                stated.by = Some(number);
            }
        }
        stated
    }
}
