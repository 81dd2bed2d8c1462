//! Room: the zones for which space is allocated, on a medium that allocates it as it is written and can take it back (a
//! sparse file).
//!
//! Free zones with room are filled before those without, so that a small area that is rewritten again and again stays
//! small. Cleaning frees zones in which nothing is live, and others while the zones in use far exceed the live data;
//! free zones beyond a reserve give their room back. The reserve is for data that must be written when the medium gets
//! no more room: a zone for cleaning to copy into, one for hosts, and the next checkpoint.
//!
//! A zone gives its room back only when a checkpoint is in force that was begun after the zone became free. That
//! checkpoint says the zone is empty, so recovery looks for nothing in it, and it does not matter how much of the old
//! content a power cut leaves there.
use std::cmp::Reverse;
use tantalum_base::ZoneNo;

use super::Space;
use crate::fault_points::Fault;
use crate::options::packed_slots;

/// The zones in use are limited to this many times the zones that the live data would fill.
const TIMES_LIVE: u64 = 2;

/// Beyond this multiple, cleaning does not wait for hosts' writes.
const TIMES_LAGGING: u64 = 3;

/// In both cases this many more may be in use: the open zone of each stream, and one in which cleaning finds something
/// to do.
const ZONES_BEYOND: u64 = 4;

/// Free zones that keep their room, besides those for a checkpoint.
const KEPT_ZONES: u32 = 2;

/// The room of all zones.
#[derive(Clone, Debug)]
pub(super) struct Room {
    zones: Vec<ZoneRoom>,
    /// Something changed since cleaning last checked whether a zone could give room back.
    changed: bool,
    /// A zone has lost its last live content since then: it gives room back without any copy.
    died: bool,
    /// The medium cannot take room back.
    refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct ZoneRoom {
    has_room: bool,
    /// Number of the checkpoint that was begun last when the zone became free. That checkpoint may name the zone.
    named_until: u64,
}

/// The next step for the room of free zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// This zone, taken from the pool, gives its room back.
    Zone(ZoneNo),
    /// Zones could give it back after a checkpoint, and are worth one.
    AfterCheckpoint,
    /// Nothing.
    Nothing,
}

impl Space {
    /// The same space, of a medium on which only zones `with_room` have room; `None` if all zones keep it for good.
    pub fn with_room(mut self, with_room: Option<Vec<bool>>) -> Self {
        let zone = |has_room| ZoneRoom { has_room, named_until: 0 };
        self.room = with_room.map(|with_room| Room {
            zones: with_room.into_iter().map(zone).collect(),
            changed: true,
            died: false,
            refused: false,
        });
        self.rebuild_free();
        self
    }

    /// Whether `zone` gets room only when it is written.
    pub(super) fn is_without_room(&self, zone: ZoneNo) -> bool {
        self.room.as_ref().is_some_and(|room| !room.zones[zone.index()].has_room)
    }

    /// Notes that `zone` is written from now on.
    pub(super) fn gets_room(&mut self, zone: ZoneNo) {
        if let Some(room) = &mut self.room {
            room.zones[zone.index()].has_room = true;
            room.changed = true;
        }
    }

    /// Notes that a zone may be able to give room back.
    pub fn look_for_room(&mut self) {
        if let Some(room) = &mut self.room {
            room.changed = true;
        }
    }

    /// Notes that a zone may have no live content any more.
    pub(super) fn zone_died(&mut self) {
        if let Some(room) = &mut self.room {
            (room.changed, room.died) = (true, true);
        }
    }

    /// Whether there may be a zone without live content that cleaning has not examined yet.
    fn has_dead_zone(&self) -> bool {
        self.room.as_ref().is_some_and(|room| room.died && !room.refused)
    }

    /// Notes that `zone` became free when `begun` was the last checkpoint begun.
    pub fn named_until(&mut self, zone: ZoneNo, begun: u64) {
        if let Some(room) = &mut self.room {
            room.zones[zone.index()].named_until = begun;
            room.changed = true;
        }
    }

    /// Whether cleaning should check if a zone can give room back.
    pub fn may_give_room_back(&self) -> bool {
        self.room.as_ref().is_some_and(|room| room.changed && !room.refused)
    }

    /// Called when cleaning begins to look for room to give back; returns false if nothing changed since it last
    /// looked.
    pub fn begin_look(&mut self) -> bool {
        let due = self.may_give_room_back();
        if let Some(room) = &mut self.room {
            (room.changed, room.died) = (false, false);
        }
        due
    }

    /// The most live pages with which a zone is worth cleaning for its room; a checkpoint has
    /// `checkpoint_slots` slots.
    pub fn live_max_for_room(&self, checkpoint_slots: usize) -> u32 {
        match self.is_over(TIMES_LIVE, checkpoint_slots) {
            true => self.geometry.slots_per_zone / 4 * 3,
            false => 0,
        }
    }

    /// Whether cleaning for room lags behind the hosts' writes.
    pub fn lags_behind(&self, checkpoint_slots: usize) -> bool {
        self.has_dead_zone()
            || self.gives_room_back() && self.is_over(TIMES_LAGGING, checkpoint_slots)
    }

    fn gives_room_back(&self) -> bool {
        self.room.as_ref().is_some_and(|room| !room.refused)
    }

    /// Whether the zones in use exceed `times` those that the live data would fill, and some more.
    fn is_over(&self, times: u64, checkpoint_slots: usize) -> bool {
        let slots = u64::from(self.geometry.slots_per_zone);
        let most = times * self.live_slots.div_ceil(slots)
            + ZONES_BEYOND
            + u64::from(self.zones_of(checkpoint_slots));
        let not_in_use = self.free_count() + self.prepared_count() + self.retired_count();
        self.zones.len() as u64 - u64::from(not_in_use) > most
    }

    fn zones_of(&self, checkpoint_slots: usize) -> u32 {
        (checkpoint_slots as u64).div_ceil(u64::from(packed_slots(&self.geometry))) as u32
    }

    /// Chooses a free zone beyond the reserve that gives its room back, and takes it from the pool. Checkpoint
    /// `in_force` has `checkpoint_slots`.
    pub fn take_spared(&mut self, in_force: u64, checkpoint_slots: usize) -> Spared {
        let checkpoint_zones = self.zones_of(checkpoint_slots);
        let Some(room) = self.room.as_ref().filter(|room| !room.refused) else {
            return Spared::Nothing;
        };
        let with_room = self.free.iter().filter(|Reverse((without, ..))| !without);
        let spared =
            (with_room.clone().count() as u32).saturating_sub(KEPT_ZONES + checkpoint_zones);
        // No task may have to wait for a zone that is taken only for a moment.
        if spared == 0 || self.is_short(2) {
            return Spared::Nothing;
        }
        let unnamed = |zone: &ZoneNo| {
            room.zones[zone.index()].named_until < in_force
                || Fault::RoomGivenBackEarly.is_planted()
        };
        // The last zones of the file: they are not the next to be written.
        let zones = with_room.map(|Reverse((_, _, zone))| *zone);
        match zones.filter(unnamed).max() {
            Some(zone) => {
                self.free.retain(|Reverse((_, _, free))| *free != zone);
                Spared::Zone(zone)
            }
            // A new checkpoint frees the zones of the previous one. That must not be a reason for yet another
            // checkpoint.
            None if spared > 2 * checkpoint_zones => Spared::AfterCheckpoint,
            None => Spared::Nothing,
        }
    }

    /// Returns `zone` to the pool after an attempt to give its room back: the medium took it (`gave`), or cannot.
    pub fn gave_room_back(&mut self, zone: ZoneNo, gave: bool) {
        if let Some(room) = &mut self.room {
            room.zones[zone.index()].has_room = !gave;
            room.refused |= !gave;
        }
        self.take_back(zone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Stream;
    use tantalum_media::ZoneGeometry;

    const ZONES: u32 = 16;

    fn space(with_room: impl Fn(u32) -> bool) -> Space {
        let geometry = ZoneGeometry {
            zones: ZONES,
            slots_per_zone: 8,
            append_unit_slots: 1,
            append_overhead_slots: 1,
            append_pages_max: 7,
        };
        let mut space = Space::new(geometry, &[], 2);
        for zone in (0..ZONES).map(ZoneNo) {
            space.get_mut(zone).needs_reset = false;
        }
        space.with_room(Some((0..ZONES).map(with_room).collect()))
    }

    #[test]
    fn zones_with_room_are_taken_first_and_those_beyond_the_reserve_give_it_back() {
        let mut space = space(|zone| zone >= 9);
        assert_eq!(space.next_free(2), [ZoneNo(9), ZoneNo(10)]);
        assert_eq!(space.take_worn(), Some(ZoneNo(15)));
        space.take_back(ZoneNo(15));
        let mut given = Vec::new();
        while let Spared::Zone(zone) = space.take_spared(1, 7) {
            given.push(zone.0);
            space.gave_room_back(zone, true);
        }
        // Two, and one for a checkpoint, keep theirs.
        assert_eq!(given, [15, 14, 13, 12]);
        assert_eq!(space.next_free(4), [9, 10, 11, 0].map(ZoneNo));
        space.validate();
    }

    #[test]
    fn a_zone_that_the_checkpoint_in_force_may_name_keeps_its_room() {
        let mut space = space(|zone| zone < 6);
        (0..6).for_each(|zone| space.named_until(ZoneNo(zone), 5));
        assert_eq!(space.take_spared(5, 7), Spared::AfterCheckpoint);
        // One of that size is not worth it.
        assert_eq!(space.take_spared(5, 14), Spared::Nothing);
        assert_eq!(space.take_spared(6, 14), Spared::Zone(ZoneNo(5)));
    }

    #[test]
    fn cleaning_is_worth_it_when_far_more_is_in_use_than_is_live() {
        let mut space = space(|_| false);
        for _ in 0..6 {
            let zone = space.take_free().unwrap();
            space.open(zone, Stream::Host);
            space.place(Stream::Host, 7);
        }
        assert_eq!(space.live_max_for_room(7), 6);
        space.add_live(tantalum_base::SlotNo(1));
        assert_eq!(space.live_max_for_room(7), 0, "two zones more may be in use");
        assert!(space.begin_look() && !space.begin_look());
        space.remove_live(tantalum_base::SlotNo(1));
        assert!(space.may_give_room_back(), "a zone died");
        space.gave_room_back(ZoneNo(9), false);
        assert!(!space.may_give_room_back(), "the medium cannot");
    }
}
