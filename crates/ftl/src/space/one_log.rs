//! One log for writes and copies: hosts continue to write behind cleaning's copies, in the zone that it opened for
//! them.
//!
//! Firmware with a single open block works like this, such as that of the OpenSSD board (Jasmine 1.1.0, `ftl_greedy`,
//! the board of the SHARE paper): the victim's live pages go into the free block, hosts continue behind them, and the
//! victim becomes the free block. That needs no further zone, but long-lived pages come to lie among short-lived ones.
//!
//! The number and the stream of the zone stay those of cleaning's opening; each append names its own stream. Hosts get
//! the zone only while no zone is being emptied: then all copies in it are durable and their originals are gone. So if
//! a power cut interrupts a cleaning, the zone of its copies holds nothing else, and recovery can undo the copies.
//! Copies out of this zone go to a zone that is opened later.
use tantalum_base::ZoneNo;

use super::{Space, Stream};
use crate::fault_points::Fault;

/// Whether hosts write behind copies, and whether a zone is being emptied, which forbids it for now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneLog {
    on: bool,
    emptying: bool,
}

impl Space {
    /// The same space; hosts write behind copies if `on`.
    pub fn with_one_log(mut self, on: bool) -> Self {
        self.one_log.on = on;
        self
    }

    /// Notes whether cleaning is emptying a zone.
    pub fn cleaning_empties(&mut self, emptying: bool) {
        self.one_log.emptying = emptying;
    }

    /// Seals the zone of copies if originals of them are still there: hosts must not write behind them.
    pub(super) fn end_copies_with_originals(&mut self) {
        if self.one_log.on {
            self.seal(Stream::Cleaning);
        }
    }

    /// The zone of copies in which hosts may continue to write.
    fn zone_behind_copies(&self) -> Option<ZoneNo> {
        let OneLog { on, emptying } = self.one_log;
        let finished = !emptying || Fault::WritesBehindUnfinishedCopies.is_planted();
        self.open_zone(Stream::Cleaning).filter(|_| on && finished)
    }

    /// Whether there is such a zone.
    pub fn has_room_behind_copies(&self) -> bool {
        self.zone_behind_copies().is_some()
    }

    /// Pages that batches of hosts can hold in it.
    pub fn pages_behind_copies(&self) -> u64 {
        match self.zone_behind_copies() {
            Some(_) => self.pages_left(Stream::Cleaning),
            None => 0,
        }
    }

    /// Makes it the open zone of hosts, which must have none; returns false if there is no such zone.
    pub fn write_behind_copies(&mut self) -> bool {
        let zone = self.zone_behind_copies();
        if zone.is_some() {
            assert!(self.open[Stream::Host as usize].is_none(), "hosts already have an open zone");
            self.open[Stream::Host as usize] = zone;
            self.open[Stream::Cleaning as usize] = None;
        }
        zone.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_media::ZoneGeometry;

    const SLOTS: u32 = 8;

    fn space(one_log: bool) -> Space {
        let geometry = ZoneGeometry {
            zones: 6,
            slots_per_zone: SLOTS,
            append_unit_slots: 1,
            append_overhead_slots: 0,
            append_pages_max: 4,
        };
        let mut space = Space::new(geometry, &[], 2).with_one_log(one_log);
        for zone in (0..6).map(ZoneNo) {
            space.get_mut(zone).needs_reset = false;
        }
        space
    }

    #[test]
    fn hosts_get_the_zone_of_copies_when_nothing_is_being_emptied() {
        let mut space = space(true);
        let zone = space.take_free().unwrap();
        space.cleaning_empties(true);
        space.open(zone, Stream::Cleaning);
        space.place(Stream::Cleaning, 3);
        assert_eq!((space.pages_behind_copies(), space.host_pages()), (0, 0));
        assert!(!space.write_behind_copies());
        space.cleaning_empties(false);
        assert_eq!(space.host_pages(), 5);
        assert!(space.write_behind_copies());
        assert_eq!(space.place(Stream::Host, 4), (zone, 3));
        assert_eq!((space.open_zone(Stream::Cleaning), space.host_pages()), (None, 1));
        assert!(!space.has_room_behind_copies(), "the next copies go to another zone");
        space.validate();
    }

    #[test]
    fn copies_that_are_kept_apart_stay_so() {
        let mut space = space(false);
        let zone = space.take_free().unwrap();
        space.open(zone, Stream::Cleaning);
        space.place(Stream::Cleaning, 3);
        assert!(!space.write_behind_copies() && space.host_pages() == 0);
    }
}
