//! The zones' states: which are free, open, full; how much in each is live.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tantalum_base::{SlotNo, Version, ZoneNo};
use tantalum_media::ZoneGeometry;

use crate::fault_points::Fault;

/// The streams that appends belong to. Each has one open zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stream {
    /// What hosts write, and records.
    Host = 0,
    /// What cleaning moves.
    Cleaning = 1,
    /// Checkpoints and deltas.
    Meta = 2,
    /// The dump at a power loss. Nothing is appended to it before, so it has no open zone.
    Dump = 3,
}

/// Number of streams that have an open zone.
pub const STREAMS: usize = 3;

impl Stream {
    /// The stream that is stored as `byte`.
    pub fn from_byte(byte: u8) -> Stream {
        match byte {
            0 => Stream::Host,
            1 => Stream::Cleaning,
            2 => Stream::Meta,
            _ => Stream::Dump,
        }
    }
}

/// Where a zone is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Holds nothing that is needed.
    Free,
    /// Appended to.
    Open,
    /// Read only, until it is cleaned.
    Full,
    /// Out of service.
    Retired,
    /// Set aside for a dump: erased, or holding one that is in force.
    Dump,
}

/// One zone.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    /// Where it is in its life.
    pub state: ZoneState,
    /// Which stream filled it.
    pub stream: Stream,
    /// Slots whose content is in force.
    pub live_slots: u32,
    /// Pages in these slots beyond one a slot.
    pub sharers: u32,
    /// Slots appended to (padding and headers included).
    pub used_slots: u32,
    /// From slot 0 on, slots known to survive a power cut.
    pub durable_slots: u32,
    /// Highest version in these.
    pub durable_version_max: Version,
    /// From slot 0 on, slots of which all is in the checkpoint that was begun last.
    pub covered_slots: u32,
    /// Appends that have not returned yet.
    pub appends_in_flight: u32,
    /// Something was appended since `durable_slots` was set that only a sync makes durable.
    pub needs_sync: bool,
    /// Must be reset before it can be opened.
    pub needs_reset: bool,
    /// A program failed here; it is to be emptied first.
    pub failing: bool,
    /// It holds a list of dead versions: recovery needs that until a checkpoint with a higher
    /// number than this is in force.
    pub lists_dead_until: Option<u64>,
    /// Cleaning or the end of a checkpoint is about to reset it; the other must not as well.
    pub being_emptied: bool,
    /// Number of its present opening.
    pub epoch: u64,
    /// Highest version placed in it.
    pub version_max: Version,
    /// Highest version that replaced something in it.
    pub replaced_by: Version,
    /// Highest durable watermark that an append in it says.
    pub says: Version,
    /// Highest durable watermark that it says also after a power cut.
    pub says_durably: Version,
    /// Resets since the volume was made.
    pub resets: u32,
}

/// Where the highest durable watermark is written down.
#[derive(Clone, Copy, Debug)]
pub struct Stated {
    highest: Version,
    by: Option<ZoneNo>,
    second: Version,
}

impl Stated {
    /// What is left of it when `zone` is reset.
    pub fn without(&self, zone: ZoneNo) -> Version {
        if self.by == Some(zone) { self.second } else { self.highest }
    }
}

/// All zones, and which are free.
pub struct Zones {
    geometry: ZoneGeometry,
    zones: Vec<Zone>,
    // Least worn first, then lowest number: dynamic wear levelling.
    free: BinaryHeap<Reverse<(u32, ZoneNo)>>,
    // Free ones that are taken when there are no others.
    last: Vec<ZoneNo>,
    open: [Option<ZoneNo>; STREAMS],
    epoch: u64,
    retired: u32,
}

impl Zones {
    /// All zones free, none of them known to be reset.
    pub fn new(geometry: ZoneGeometry, retired: &[ZoneNo]) -> Self {
        let blank = Zone {
            state: ZoneState::Free,
            stream: Stream::Host,
            live_slots: 0,
            sharers: 0,
            used_slots: 0,
            durable_slots: 0,
            durable_version_max: Version::NEVER,
            covered_slots: 0,
            appends_in_flight: 0,
            needs_sync: false,
            needs_reset: true,
            failing: false,
            lists_dead_until: None,
            being_emptied: false,
            epoch: 0,
            version_max: Version::NEVER,
            replaced_by: Version::NEVER,
            says: Version::NEVER,
            says_durably: Version::NEVER,
            resets: 0,
        };
        let mut zones = vec![blank; geometry.zones as usize];
        for zone in retired {
            zones[zone.index()].state = ZoneState::Retired;
        }
        let (free, retired) = (BinaryHeap::new(), retired.len() as u32);
        let (last, open) = (Vec::new(), [None; STREAMS]);
        let mut this = Zones { geometry, zones, free, last, open, epoch: 0, retired };
        this.rebuild_free();
        this
    }

    /// Collects the free zones anew, after states were set from outside.
    pub fn rebuild_free(&mut self) {
        self.last.clear();
        let free = self.iter().filter(|(_, zone)| zone.state == ZoneState::Free);
        self.free = free.map(|(number, zone)| Reverse((zone.resets, number))).collect();
    }

    /// Of the free zones those are taken last that `last` says, until
    /// [`rebuild_free`](Self::rebuild_free).
    pub fn keep_for_last(&mut self, last: impl Fn(ZoneNo) -> bool) {
        let free = std::mem::take(&mut self.free).into_vec();
        let (kept, free): (Vec<_>, Vec<_>) = free.into_iter().partition(|free| last(free.0.1));
        self.free = free.into();
        self.last.extend(kept.into_iter().map(|Reverse((_, zone))| zone));
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
    pub fn get_mut(&mut self, zone: ZoneNo) -> &mut Zone {
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

    /// Number of zones that cannot be used any more.
    pub fn retired_count(&self) -> u32 {
        self.retired
    }

    /// Number of the latest zone opening.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Continues the count of openings behind `epoch`.
    pub fn continue_epochs(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
    }

    /// The open zone of `stream`.
    pub fn open_zone(&self, stream: Stream) -> Option<ZoneNo> {
        self.open[stream as usize]
    }

    /// Pages that the next append to `stream` can hold without another zone.
    pub fn room_pages(&self, stream: Stream) -> u32 {
        self.open[stream as usize].map_or(0, |zone| {
            let used = self.get(zone).used_slots;
            self.geometry.append_pages_fit(self.geometry.slots_per_zone - used)
        })
    }

    /// Takes a free zone for the dump area; false where none is free.
    pub fn set_aside(&mut self) -> bool {
        let zone = self.take_free();
        if let Some(zone) = zone {
            self.get_mut(zone).state = ZoneState::Dump;
        }
        zone.is_some()
    }

    /// Takes a free zone back into the pool that was taken from it and not opened.
    pub fn take_back(&mut self, zone: ZoneNo) {
        debug_assert_eq!(self.get(zone).state, ZoneState::Free, "{zone:?} was opened");
        self.free.push(Reverse((self.get(zone).resets, zone)));
    }

    /// Gives a zone of the dump area back to the pool.
    pub fn give_back(&mut self, zone: ZoneNo) {
        let given = self.get_mut(zone);
        assert_eq!(given.state, ZoneState::Dump, "{zone:?} is not set aside");
        given.state = ZoneState::Free;
        let resets = given.resets;
        self.free.push(Reverse((resets, zone)));
    }

    /// The zones of the dump area, in ascending order.
    pub fn dump_zones(&self) -> Vec<ZoneNo> {
        let dump = self.iter().filter(|(_, zone)| zone.state == ZoneState::Dump);
        dump.map(|(number, _)| number).collect()
    }

    /// Takes the next free zone out of the pool, to be reset and opened.
    pub fn take_free(&mut self) -> Option<ZoneNo> {
        self.free.pop().map(|Reverse((_, zone))| zone).or_else(|| self.last.pop())
    }

    /// The free zones that will be taken next, at most `most` of them.
    pub fn next_free(&self, most: usize) -> Vec<ZoneNo> {
        let mut free: Vec<_> = self.free.iter().map(|Reverse(free)| *free).collect();
        free.sort_unstable();
        free.into_iter().take(most).map(|(_, zone)| zone).collect()
    }

    /// Gives back a zone that was taken out of the pool and not opened.
    pub fn put_back(&mut self, zone: ZoneNo) {
        self.free.push(Reverse((self.get(zone).resets, zone)));
    }

    /// Takes the most worn free zone out of the pool, for content that will stay.
    pub fn take_worn(&mut self) -> Option<ZoneNo> {
        let mut free = std::mem::take(&mut self.free).into_vec();
        let worn = (0..free.len()).max_by_key(|at| free[*at].0);
        let taken = worn.map(|at| free.swap_remove(at).0.1);
        self.free = free.into();
        taken.or_else(|| self.last.pop())
    }

    /// Opens `zone` (taken from the pool and reset) for `stream`; the stream must have none.
    pub fn open(&mut self, zone: ZoneNo, stream: Stream) {
        assert!(self.open[stream as usize].is_none(), "{stream:?} already has an open zone");
        self.epoch += 1;
        let epoch = self.epoch;
        let opened = self.get_mut(zone);
        debug_assert!(opened.state == ZoneState::Free && !opened.needs_reset);
        *opened = Zone {
            state: ZoneState::Open,
            stream,
            live_slots: 0,
            sharers: 0,
            used_slots: 0,
            durable_slots: 0,
            durable_version_max: Version::NEVER,
            covered_slots: 0,
            appends_in_flight: 0,
            needs_sync: false,
            needs_reset: false,
            failing: false,
            lists_dead_until: None,
            being_emptied: false,
            epoch,
            version_max: Version::NEVER,
            replaced_by: Version::NEVER,
            says: Version::NEVER,
            says_durably: Version::NEVER,
            resets: opened.resets,
        };
        self.open[stream as usize] = Some(zone);
    }

    /// Ends appending to the stream's open zone.
    pub fn seal(&mut self, stream: Stream) {
        if let Some(zone) = self.open[stream as usize].take() {
            self.get_mut(zone).state = ZoneState::Full;
        }
    }

    /// Takes `pages` pages' room at the stream's open zone's end; seals it when it is full.
    /// Returns zone and offset of the append's first slot.
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

    /// An append to `zone` that says the watermark `says` returned. `durable`: it survives a
    /// power cut already.
    pub fn append_returned(&mut self, zone: ZoneNo, durable: bool, says: Version) {
        let zone = self.get_mut(zone);
        zone.says = zone.says.max(says);
        if durable {
            zone.says_durably = zone.says_durably.max(says);
        }
        zone.appends_in_flight -= 1;
        zone.needs_sync |= !durable;
        if zone.appends_in_flight == 0 && !zone.needs_sync {
            zone.durable_slots = zone.used_slots;
            zone.durable_version_max = zone.version_max;
        }
    }

    /// A checkpoint begins that covers all changes up to `covered`: notes of each zone which of its
    /// slots hold nothing else, so that recovery need not look at them.
    pub fn checkpoint_started(&mut self, covered: Version) {
        for zone in &mut self.zones {
            let settled = zone.durable_version_max <= covered;
            zone.covered_slots = match zone.state {
                ZoneState::Full if settled && zone.durable_slots == zone.used_slots => {
                    self.geometry.slots_per_zone
                }
                ZoneState::Open | ZoneState::Full if settled => zone.durable_slots,
                _ => 0,
            };
        }
    }

    /// Where the highest durable watermark is written down, in zones that stay as they are.
    pub fn stated(&self) -> Stated {
        let (highest, second) = (Version::NEVER, Version::NEVER);
        let mut stated = Stated { highest, by: None, second };
        for (number, zone) in self.iter() {
            let holds = matches!(zone.state, ZoneState::Open | ZoneState::Full);
            if !holds || zone.being_emptied || zone.says_durably <= stated.second {
                continue;
            }
            stated.second = zone.says_durably;
            if stated.second > stated.highest {
                std::mem::swap(&mut stated.highest, &mut stated.second);
                stated.by = Some(number);
            }
        }
        stated
    }

    /// Adds to the live slots of the zone of `slot`.
    #[inline]
    pub fn add_live(&mut self, slot: SlotNo) {
        let zone = self.geometry.zone_of(slot);
        self.zones[zone.index()].live_slots += 1;
    }

    /// Takes from the live slots of the zone of `slot`.
    #[inline]
    pub fn remove_live(&mut self, slot: SlotNo) {
        let zone = self.geometry.zone_of(slot);
        self.zones[zone.index()].live_slots -= 1;
    }

    /// A page that was in `slot` has its content elsewhere since `version`: takes the slot from
    /// the live ones of its zone, unless others keep it alive.
    #[inline]
    pub fn left(&mut self, slot: SlotNo, version: Version, alive: bool) {
        let zone = self.geometry.zone_of(slot);
        let zone = &mut self.zones[zone.index()];
        *(if alive { &mut zone.sharers } else { &mut zone.live_slots }) -= 1;
        zone.replaced_by = zone.replaced_by.max(version);
    }

    /// What `slot` was filled with had been replaced by the change `version` before that was known.
    pub fn replaced(&mut self, slot: SlotNo, version: Version) {
        let zone = self.geometry.zone_of(slot);
        let replaced_by = &mut self.zones[zone.index()].replaced_by;
        *replaced_by = version.max(*replaced_by);
    }

    /// A page took the content of the live `slot` by the change `version`. What cleaning copies
    /// from there is then as new as that change, and must not be found before it is durable.
    #[inline]
    pub fn joined(&mut self, slot: SlotNo, version: Version) {
        let zone = self.geometry.zone_of(slot);
        let zone = &mut self.zones[zone.index()];
        zone.sharers += 1;
        if !Fault::SharersAheadOfLog.is_planted() {
            zone.version_max = zone.version_max.max(version);
        }
    }

    /// `zone` was reset: back to the pool.
    pub fn freed(&mut self, zone: ZoneNo) {
        let freed = self.get_mut(zone);
        debug_assert_eq!(freed.live_slots, 0);
        assert_eq!(freed.state, ZoneState::Full, "{zone:?} is freed twice");
        freed.state = ZoneState::Free;
        freed.being_emptied = false;
        freed.needs_reset = false;
        freed.lists_dead_until = None;
        freed.resets += 1;
        let resets = freed.resets;
        self.free.push(Reverse((resets, zone)));
    }

    /// `zone` cannot be used again.
    pub fn retire(&mut self, zone: ZoneNo) {
        let zone = self.get_mut(zone);
        debug_assert!(zone.state != ZoneState::Retired, "a zone is retired once");
        zone.state = ZoneState::Retired;
        zone.lists_dead_until = None;
        self.retired += 1;
    }
}
