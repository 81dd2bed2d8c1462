//! Space: which zones are free, open or full, and how much in each is live.
pub(crate) mod admission;
pub(crate) mod census;
pub(crate) mod durable;
mod one_log;
pub(crate) mod pins;
pub(crate) mod room;
pub(crate) mod zone;

pub(crate) use zone::{Stream, Zone, ZoneState};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tantalum_base::{SlotNo, Version, ZoneNo};
use tantalum_media::ZoneGeometry;

use crate::fault_points::Fault;
use crate::options::packed_slots;
use one_log::OneLog;
use room::Room;
use zone::STREAMS;

/// A zone may be closed if at most one in this many of its slots is unused.
const UNUSED_SLOTS_DIVISOR: u32 = 32;

/// The state of all zones.
pub struct Space {
    geometry: ZoneGeometry,
    // Zones that hosts may not fill.
    reserve_zones: u32,
    zones: Vec<Zone>,
    // Zones that have room first, then the least worn, then the lowest number: dynamic wear
    // levelling.
    free: BinaryHeap<Reverse<(bool, u32, ZoneNo)>>,
    // Free zones that are taken only when there are no others.
    last: Vec<ZoneNo>,
    // Reset zones that the next batches of the host stream will open.
    prepared: VecDeque<ZoneNo>,
    open: [Option<ZoneNo>; STREAMS],
    epoch: u64,
    retired: u32,
    // Slots whose content is live, in all zones.
    live_slots: u64,
    one_log: OneLog,
    // `None` if every zone keeps its room for good.
    room: Option<Room>,
}

impl Space {
    /// All zones free and still to be reset, except those that the medium `retired`.
    pub fn new(geometry: ZoneGeometry, retired: &[ZoneNo], reserve_zones: u32) -> Self {
        let blank = Zone { needs_reset: true, ..Zone::empty(ZoneState::Free, Stream::Host, 0, 0) };
        let mut zones = vec![blank; geometry.zones as usize];
        for zone in retired {
            zones[zone.index()].state = ZoneState::Retired;
        }
        let mut space = Space {
            geometry,
            reserve_zones,
            zones,
            free: BinaryHeap::new(),
            last: Vec::new(),
            prepared: VecDeque::new(),
            open: [None; STREAMS],
            epoch: 0,
            retired: retired.len() as u32,
            live_slots: 0,
            one_log: OneLog::default(),
            room: None,
        };
        space.rebuild_free();
        space
    }

    /// Zones that hosts may not fill.
    pub fn reserve_zones(&self) -> u32 {
        self.reserve_zones
    }

    /// Rebuilds the pool of free zones after the states of zones were set directly.
    pub fn rebuild_free(&mut self) {
        self.last.clear();
        let free = self.iter().filter(|(_, zone)| zone.state == ZoneState::Free);
        let place = |(number, zone): (ZoneNo, &Zone)| {
            Reverse((self.is_without_room(number), zone.resets, number))
        };
        self.free = free.map(place).collect();
    }

    /// Adds `zone` to the pool of free zones.
    fn push_free(&mut self, zone: ZoneNo) {
        let (without, resets) = (self.is_without_room(zone), self.get(zone).resets);
        self.free.push(Reverse((without, resets, zone)));
    }

    /// Takes free zones for which `last` returns true only when there are no others, until
    /// [`rebuild_free`](Self::rebuild_free).
    pub fn keep_for_last(&mut self, last: impl Fn(ZoneNo) -> bool) {
        let free = std::mem::take(&mut self.free).into_vec();
        let (kept, free): (Vec<_>, Vec<_>) = free.into_iter().partition(|free| last(free.0.2));
        self.free = free.into();
        self.last.extend(kept.into_iter().map(|Reverse((_, _, zone))| zone));
        self.last.sort_unstable();
    }

    /// The shape of the medium.
    pub fn geometry(&self) -> &ZoneGeometry {
        &self.geometry
    }

    /// One zone.
    #[inline]
    pub fn get(&self, zone: ZoneNo) -> &Zone {
        &self.zones[zone.index()]
    }

    /// One zone, to change.
    #[inline]
    fn get_mut(&mut self, zone: ZoneNo) -> &mut Zone {
        &mut self.zones[zone.index()]
    }

    /// All zones in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (ZoneNo, &Zone)> {
        self.zones.iter().enumerate().map(|(number, zone)| (ZoneNo(number as u32), zone))
    }

    /// Number of free zones.
    pub fn free_count(&self) -> u32 {
        (self.free.len() + self.last.len()) as u32
    }

    /// Zones that could be filled again, including those of the dump area.
    pub fn unused_count(&self) -> u32 {
        let unused = |zone: &&Zone| zone.state != ZoneState::Retired && zone.live_slots == 0;
        self.zones.iter().filter(unused).count() as u32
    }

    /// Whether fewer than `wanted` zones are free beyond the reserve, or none.
    pub fn is_short(&self, wanted: u32) -> bool {
        self.is_short_but_for(0, wanted)
    }

    /// The same, if `more` further zones were free.
    pub fn is_short_but_for(&self, more: u32, wanted: u32) -> bool {
        self.free_count() + more < self.reserve_zones + wanted.max(1)
    }

    /// Number of zones that cannot be used any more.
    pub fn retired_count(&self) -> u32 {
        self.retired
    }

    /// Number of the latest zone opening.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Numbers later openings from `epoch` on.
    pub fn continue_epochs(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
    }

    /// The open zone of `stream`.
    pub fn open_zone(&self, stream: Stream) -> Option<ZoneNo> {
        self.open[stream as usize]
    }

    /// Number of reset zones that wait for the host stream.
    pub fn prepared_count(&self) -> u32 {
        self.prepared.len() as u32
    }

    /// Adds `zone`, taken from the pool and reset, to those that the host stream will open.
    pub fn prepare(&mut self, zone: ZoneNo) {
        self.prepared.push_back(zone);
    }

    /// Opens the first prepared zone for the host stream.
    ///
    /// # Panics
    /// If none is prepared.
    pub fn open_prepared(&mut self) {
        let zone = self.prepared.pop_front().expect("a batch is placed when there is space for it");
        self.open(zone, Stream::Host);
    }

    /// Returns the prepared zones to the pool.
    pub fn put_prepared_back(&mut self) {
        for zone in std::mem::take(&mut self.prepared) {
            self.take_back(zone);
        }
    }

    /// Pages that batches of hosts can hold without another zone from the pool.
    pub fn host_pages(&self) -> u64 {
        let packed = u64::from(packed_slots(&self.geometry));
        self.pages_left(Stream::Host)
            + self.pages_behind_copies()
            + self.prepared.len() as u64 * packed
    }

    /// Pages that appends to the stream's open zone can still hold.
    pub fn pages_left(&self, stream: Stream) -> u64 {
        let Some(zone) = self.open_zone(stream) else { return 0 };
        let mut free = self.geometry.slots_per_zone - self.get(zone).used_slots;
        let mut pages = 0;
        loop {
            let fit = self.geometry.append_pages_fit(free);
            if fit == 0 {
                return pages;
            }
            pages += u64::from(fit);
            free -= self.geometry.append_slots(fit);
        }
    }

    /// Whether a batch of `pages` of hosts that would be split over two zones should go to the next
    /// one as one append instead: only if few slots are left, as these stay unused. That does not
    /// hinder cleaning: a zone with unused slots has less to relocate.
    pub fn better_in_fresh_zone(&self, pages: u32) -> bool {
        let Some(zone) = self.open_zone(Stream::Host) else { return false };
        let next_is_fresh = !self.prepared.is_empty() && !self.has_room_behind_copies();
        if self.append_pages_fit(Stream::Host) >= pages || !next_is_fresh {
            return false;
        }
        let unused_slots = self.geometry.slots_per_zone - self.get(zone).used_slots;
        pages <= self.geometry.append_pages_fit(self.geometry.slots_per_zone)
            && unused_slots <= self.geometry.slots_per_zone / UNUSED_SLOTS_DIVISOR
    }

    /// Pages that the next append to `stream` can hold without another zone.
    pub fn append_pages_fit(&self, stream: Stream) -> u32 {
        self.open[stream as usize].map_or(0, |zone| {
            let used = self.get(zone).used_slots;
            self.geometry.append_pages_fit(self.geometry.slots_per_zone - used)
        })
    }

    /// Takes a free zone for the dump area; returns false if none is free.
    pub fn set_aside(&mut self) -> bool {
        let zone = self.take_free();
        if let Some(zone) = zone {
            self.get_mut(zone).state = ZoneState::Dump;
        }
        zone.is_some()
    }

    /// Returns a free zone to the pool that was taken from it and not opened.
    pub fn take_back(&mut self, zone: ZoneNo) {
        debug_assert_eq!(self.get(zone).state, ZoneState::Free, "{zone:?} was opened");
        self.push_free(zone);
    }

    /// Returns a zone of the dump area to the pool.
    pub fn give_back(&mut self, zone: ZoneNo) {
        let given = self.get_mut(zone);
        assert_eq!(given.state, ZoneState::Dump, "{zone:?} is not set aside");
        given.state = ZoneState::Free;
        self.push_free(zone);
    }

    /// The zones of the dump area, in ascending order.
    pub fn dump_zones(&self) -> Vec<ZoneNo> {
        let dump = self.iter().filter(|(_, zone)| zone.state == ZoneState::Dump);
        dump.map(|(number, _)| number).collect()
    }

    /// Takes the next free zone from the pool, to be reset and opened.
    pub fn take_free(&mut self) -> Option<ZoneNo> {
        self.free.pop().map(|Reverse((_, _, zone))| zone).or_else(|| self.last.pop())
    }

    /// The free zones that will be taken next, at most `most`.
    pub fn next_free(&self, most: usize) -> Vec<ZoneNo> {
        let mut free: Vec<_> = self.free.iter().map(|Reverse(free)| *free).collect();
        free.sort_unstable();
        free.into_iter().take(most).map(|(_, _, zone)| zone).collect()
    }

    /// Takes the most worn free zone from the pool, for cold content.
    pub fn take_worn(&mut self) -> Option<ZoneNo> {
        let mut free = std::mem::take(&mut self.free).into_vec();
        let worn = (0..free.len()).max_by_key(|at| (!free[*at].0.0, free[*at].0.1, free[*at].0.2));
        let taken = worn.map(|at| free.swap_remove(at).0.2);
        self.free = free.into();
        taken.or_else(|| self.last.pop())
    }

    /// Opens `zone` (taken from the pool and reset) for `stream`, which must have no open zone.
    pub fn open(&mut self, zone: ZoneNo, stream: Stream) {
        assert!(self.open[stream as usize].is_none(), "{stream:?} already has an open zone");
        self.epoch += 1;
        let epoch = self.epoch;
        let opened = self.get_mut(zone);
        debug_assert!(opened.state == ZoneState::Free && !opened.needs_reset);
        *opened = Zone::empty(ZoneState::Open, stream, epoch, opened.resets);
        self.gets_room(zone);
        self.open[stream as usize] = Some(zone);
    }

    /// Ends appending to the stream's open zone.
    pub fn seal(&mut self, stream: Stream) {
        if let Some(zone) = self.open[stream as usize].take() {
            self.get_mut(zone).state = ZoneState::Full;
        }
    }

    /// Takes space for `pages` pages at the end of the stream's open zone; seals it when it is
    /// full. Returns zone and offset of the append's first slot.
    pub fn place(&mut self, stream: Stream, pages: u32) -> (ZoneNo, u32) {
        let zone = self.open[stream as usize].expect("a zone was opened before placing");
        let slots = self.geometry.append_slots(pages);
        let geometry = self.geometry;
        let placed = self.get_mut(zone);
        let offset = placed.used_slots;
        placed.used_slots += slots;
        assert!(placed.used_slots <= geometry.slots_per_zone, "an append does not fit its zone");
        placed.appends_in_flight += 1;
        if geometry.append_pages_fit(geometry.slots_per_zone - placed.used_slots) == 0 {
            self.seal(stream);
        }
        (zone, offset)
    }

    /// Notes that the caller will reset `zone`; no other task may.
    pub fn begin_emptying(&mut self, zone: ZoneNo) {
        self.get_mut(zone).being_emptied = true;
    }

    /// Notes that `zone` is not reset after all, because not all of its content can be moved.
    pub fn stop_emptying(&mut self, zone: ZoneNo) {
        self.get_mut(zone).being_emptied = false;
        self.end_copies_with_originals();
        self.cleaning_empties(false);
    }

    /// Notes that `zone` holds a list of dead versions, which is needed until a checkpoint with a
    /// higher number than `until` is in force.
    pub fn lists_dead(&mut self, zone: ZoneNo, until: u64) {
        self.get_mut(zone).lists_dead_until = Some(until);
    }

    /// Sets the state of `zone`, which recovery found filled for `stream` by opening `epoch`. A
    /// retired zone stays retired.
    pub fn found(&mut self, zone: ZoneNo, state: ZoneState, stream: Stream, epoch: u64) {
        let slots = self.geometry.slots_per_zone;
        let zone = self.get_mut(zone);
        if zone.state == ZoneState::Retired {
            return;
        }
        (zone.state, zone.needs_reset) = (state, true);
        if state != ZoneState::Dump {
            zone.epoch = epoch;
        }
        if state == ZoneState::Full {
            zone.stream = stream;
            (zone.used_slots, zone.durable_slots) = (slots, slots);
        }
    }

    /// Sets how many leading slots of each zone the checkpoint in force covers.
    pub fn found_covered(&mut self, covered_slots: &[u32]) {
        for (zone, covered) in self.zones.iter_mut().zip(covered_slots) {
            zone.covered_slots = *covered;
        }
    }

    /// Sets the number of resets of `zone`, from a checkpoint.
    pub fn was_reset(&mut self, zone: ZoneNo, resets: u32) {
        self.get_mut(zone).resets = resets;
    }

    /// The zones of checkpoints and delta pages without live slots: the caller resets them, and no
    /// other task may.
    pub fn empty_meta_zones(&mut self) -> Vec<ZoneNo> {
        let emptied = self.iter().filter(|(_, zone)| {
            zone.stream == Stream::Meta
                && zone.state == ZoneState::Full
                && zone.live_slots == 0
                && !zone.being_emptied
        });
        let emptied: Vec<ZoneNo> = emptied.map(|(number, _)| number).collect();
        for number in &emptied {
            self.begin_emptying(*number);
        }
        emptied
    }

    /// Counts `slot` as live in its zone.
    #[inline]
    pub fn add_live(&mut self, slot: SlotNo) {
        let zone = self.geometry.zone_of(slot);
        self.zones[zone.index()].live_slots += 1;
        self.live_slots += 1;
    }

    /// Counts `slot` as no longer live in its zone.
    #[inline]
    pub fn remove_live(&mut self, slot: SlotNo) {
        let zone = self.geometry.zone_of(slot);
        self.slot_died(zone);
    }

    #[inline]
    fn slot_died(&mut self, zone: ZoneNo) {
        let live_slots = &mut self.zones[zone.index()].live_slots;
        *live_slots -= 1;
        self.live_slots -= 1;
        if *live_slots == 0 {
            self.zone_died();
        }
    }

    /// Notes that a page left `slot` by the change `version`: the slot is no longer live, unless
    /// other pages keep it alive.
    #[inline]
    pub fn left(&mut self, slot: SlotNo, version: Version, alive: bool) {
        let zone = self.geometry.zone_of(slot);
        let left = &mut self.zones[zone.index()];
        left.replaced_by = left.replaced_by.max(version);
        match alive {
            true => left.extra_references -= 1,
            false => self.slot_died(zone),
        }
    }

    /// Notes that the change `version` had replaced the content of `slot` before the append of that
    /// content returned.
    pub fn replaced(&mut self, slot: SlotNo, version: Version) {
        let zone = self.geometry.zone_of(slot);
        let replaced_by = &mut self.zones[zone.index()].replaced_by;
        *replaced_by = version.max(*replaced_by);
    }

    /// Notes that the change `version` remapped a page to the live `slot`. Cleaning's copy of it is
    /// then as new as that change, and must not be found before it is durable.
    #[inline]
    pub fn joined(&mut self, slot: SlotNo, version: Version) {
        let zone = self.geometry.zone_of(slot);
        let zone = &mut self.zones[zone.index()];
        zone.extra_references += 1;
        if !Fault::CopiesOfUndurableShares.is_planted() {
            zone.version_max = zone.version_max.max(version);
        }
    }

    /// Returns `zone`, which was reset, to the pool.
    pub fn freed(&mut self, zone: ZoneNo) {
        let freed = self.get_mut(zone);
        debug_assert_eq!(freed.live_slots, 0);
        assert_eq!(freed.state, ZoneState::Full, "{zone:?} is freed twice");
        freed.state = ZoneState::Free;
        freed.being_emptied = false;
        freed.failing = false;
        freed.needs_reset = false;
        freed.lists_dead_until = None;
        freed.resets += 1;
        self.push_free(zone);
    }

    /// Takes `zone` out of service.
    pub fn retire(&mut self, zone: ZoneNo) {
        let zone = self.get_mut(zone);
        debug_assert!(zone.state != ZoneState::Retired, "a zone is retired once");
        zone.state = ZoneState::Retired;
        zone.lists_dead_until = None;
        zone.failing = false;
        self.retired += 1;
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        let pool = self.free.iter().map(|Reverse((_, _, zone))| zone).chain(&self.last);
        let mut seen = vec![false; self.zones.len()];
        for zone in pool.chain(&self.prepared) {
            assert_eq!(self.get(*zone).state, ZoneState::Free, "{zone:?} is offered as free");
            assert!(!std::mem::replace(&mut seen[zone.index()], true), "{zone:?} is offered twice");
        }
        assert!(self.prepared.iter().all(|zone| !self.get(*zone).needs_reset));
        let mut retired = 0;
        for (number, zone) in self.iter() {
            let open = self.open.contains(&Some(number));
            assert_eq!(open, zone.state == ZoneState::Open, "{number:?} is {:?}", zone.state);
            assert!(zone.epoch <= self.epoch, "{number:?} was opened by opening {}", zone.epoch);
            retired += u32::from(zone.state == ZoneState::Retired);
            zone.validate(number, self.geometry.slots_per_zone);
        }
        assert_eq!(retired, self.retired, "zones out of service");
        let live = self.zones.iter().map(|zone| u64::from(zone.live_slots)).sum::<u64>();
        assert_eq!(live, self.live_slots, "live slots");
    }
}
