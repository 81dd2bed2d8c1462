//! Pages that the medium did not return when cleaning was to move them. Each keeps its place, and the zone that holds
//! one is left alone: it is no candidate for cleaning until all of its pages can be read, or are no longer needed.
//!
//! An I/O error implies nothing about the content: a path may be down for a while. Only the medium itself reports that
//! content is wrong, or cannot be corrected; and even that is believed only if each of several reads, over a while,
//! reports it.
use std::collections::{BTreeMap, BTreeSet};
use tantalum_base::{Error, SlotNo, ZoneNo};
use tantalum_media::ZoneGeometry;

use crate::read::is_damage;

/// Least number of reads with wrong content before a page is lost.
pub(crate) const LOST_AFTER_READS: u32 = 5;

/// Least time from the first of these reads to the last.
pub(crate) const LOST_AFTER_NS: u64 = 10_000_000_000;

/// Slots that could not be read, and how long writers wait for them.
pub(crate) struct Unreadable {
    geometry: ZoneGeometry,
    slots: BTreeMap<SlotNo, FailedReads>,
    /// Zones that a task reads again.
    tried: BTreeSet<ZoneNo>,
    pub patience: Patience,
}

/// The reads of one slot that failed.
struct FailedReads {
    last: Error,
    /// Reads that returned content which is not the slot's, or reported that it cannot be corrected.
    wrong: u32,
    wrong_since_ns: u64,
}

/// The limited time for which writers wait for room that there would be if all pages could be read.
#[derive(Default)]
pub(crate) struct Patience {
    /// The time at which cleaning began to find only zones with unreadable pages.
    since_ns: Option<u64>,
    /// Writers have waited as long as they should.
    is_over: bool,
    /// A task watches the time.
    is_watched: bool,
}

impl Unreadable {
    pub fn new(geometry: ZoneGeometry) -> Self {
        let (slots, tried) = (BTreeMap::new(), BTreeSet::new());
        Unreadable { geometry, slots, tried, patience: Patience::default() }
    }

    /// Whether no slot is unreadable.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether a slot of `zone` could not be read.
    pub fn holds(&self, zone: ZoneNo) -> bool {
        !self.is_empty() && self.slots_in(zone).next().is_some()
    }

    /// The slots of `zone` that could not be read.
    pub fn slots_in(&self, zone: ZoneNo) -> impl Iterator<Item = SlotNo> + '_ {
        let slots = self.geometry.slots_per_zone;
        let range = SlotNo(zone.0 * slots)..SlotNo((zone.0 + 1) * slots);
        self.slots.range(range).map(|(slot, _)| *slot)
    }

    /// All unreadable slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = SlotNo> + '_ {
        self.slots.keys().copied()
    }

    /// The number of zones that hold unreadable slots.
    pub fn zones(&self) -> u32 {
        let mut zones: Vec<ZoneNo> = self.slots().map(|slot| self.geometry.zone_of(slot)).collect();
        zones.dedup();
        zones.len() as u32
    }

    /// The first unreadable slot, and the error of its last read.
    pub fn first(&self) -> Option<(SlotNo, &Error)> {
        self.slots.first_key_value().map(|(slot, reads)| (*slot, &reads.last))
    }

    /// Notes that a read of `slot` failed with `error`. An I/O error between two reads of wrong content changes
    /// nothing.
    pub fn failed(&mut self, slot: SlotNo, error: Error, now_ns: u64) {
        let is_wrong = is_damage(error.kind());
        let new = FailedReads { last: error.clone(), wrong: 0, wrong_since_ns: now_ns };
        let reads = self.slots.entry(slot).or_insert(new);
        if is_wrong {
            if reads.wrong == 0 {
                reads.wrong_since_ns = now_ns;
            }
            reads.wrong += 1;
        }
        reads.last = error;
    }

    /// Whether the content of `slot` was wrong so often, and for so long, that it is lost.
    pub fn is_lost(&self, slot: SlotNo, now_ns: u64) -> bool {
        self.slots.get(&slot).is_some_and(|reads| {
            reads.wrong >= LOST_AFTER_READS && now_ns - reads.wrong_since_ns >= LOST_AFTER_NS
        })
    }

    /// Notes that `slot` can be read, or that nothing in it is needed any more.
    pub fn forget(&mut self, slot: SlotNo) {
        if !self.is_empty() {
            self.slots.remove(&slot);
        }
    }

    /// Notes that a task reads `zone` again; returns false if one does already.
    pub fn begin_tries(&mut self, zone: ZoneNo) -> bool {
        self.tried.insert(zone)
    }

    /// Notes that no task reads `zone` again any more.
    pub fn end_tries(&mut self, zone: ZoneNo) {
        self.tried.remove(&zone);
    }

    /// Panics if it is inconsistent, or if `is_live` returns false for one of its slots. For tests.
    pub fn validate(&self, is_live: impl Fn(SlotNo) -> bool) {
        for (slot, reads) in &self.slots {
            assert!(is_live(*slot), "slot {slot} cannot be read, and nothing in it is needed");
            assert!(
                reads.wrong == 0 || reads.wrong_since_ns > 0,
                "slot {slot} was wrong at no time"
            );
        }
    }
}

impl Patience {
    /// Begins the wait, unless it has begun; returns true if no task watches the time yet.
    pub fn begin(&mut self, now_ns: u64) -> bool {
        self.since_ns.get_or_insert(now_ns);
        !std::mem::replace(&mut self.is_watched, true)
    }

    /// Ends the wait, as there is room, or may be.
    pub fn end(&mut self) {
        (self.since_ns, self.is_over) = (None, false);
    }

    /// Whether writers may continue to wait.
    pub fn lasts(&self) -> bool {
        self.since_ns.is_some() && !self.is_over
    }

    /// Notes the time. Returns how long to wait until it must be noted again, if the wait lasts at most `most_ns`.
    /// `None`: there is no wait, or it is over.
    pub fn watch(&mut self, now_ns: u64, most_ns: u64) -> Option<u64> {
        let left_ns = self.since_ns.map(|since_ns| (since_ns + most_ns).saturating_sub(now_ns));
        self.is_over = left_ns == Some(0);
        let left_ns = left_ns.filter(|left_ns| *left_ns > 0);
        self.is_watched = left_ns.is_some();
        left_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::ErrorKind;

    const SECOND_NS: u64 = 1_000_000_000;

    fn unreadable() -> Unreadable {
        Unreadable::new(ZoneGeometry {
            zones: 4,
            slots_per_zone: 8,
            append_unit_slots: 1,
            append_overhead_slots: 0,
            append_pages_max: 4,
        })
    }

    #[test]
    fn a_slot_is_lost_by_wrong_contents_alone_and_only_after_reads_and_time() {
        let mut unreadable = unreadable();
        let error = |kind| Error::new(kind, "a read");
        for second in 1..1000 {
            unreadable.failed(SlotNo(9), error(ErrorKind::Io), second * SECOND_NS);
            assert!(!unreadable.is_lost(SlotNo(9), second * SECOND_NS));
        }
        // Many at once say no more than one.
        for _ in 0..100 {
            unreadable.failed(SlotNo(9), error(ErrorKind::Checksum), 2000 * SECOND_NS);
        }
        assert!(!unreadable.is_lost(SlotNo(9), 2000 * SECOND_NS));
        assert!(unreadable.is_lost(SlotNo(9), 2010 * SECOND_NS));
        // Few over a long time do not suffice either.
        for read in 1..=4 {
            unreadable.failed(SlotNo(10), error(ErrorKind::Uncorrectable), read * 60 * SECOND_NS);
        }
        assert!(!unreadable.is_lost(SlotNo(10), 9000 * SECOND_NS));
        assert_eq!((unreadable.zones(), unreadable.holds(ZoneNo(1))), (1, true));
        assert_eq!(unreadable.slots_in(ZoneNo(1)).count(), 2);
        unreadable.forget(SlotNo(9));
        unreadable.forget(SlotNo(10));
        assert!(!unreadable.holds(ZoneNo(1)) && unreadable.is_empty());
    }

    #[test]
    fn patience_lasts_from_the_first_wait_until_there_is_room() {
        let mut patience = Patience::default();
        assert!(!patience.lasts());
        assert!(patience.begin(5) && !patience.begin(9), "one task watches");
        assert!(patience.lasts());
        assert_eq!(patience.watch(12, 10), Some(3));
        assert_eq!((patience.watch(15, 10), patience.lasts()), (None, false));
        patience.end();
        assert!(patience.begin(20) && patience.lasts());
        patience.end();
        assert_eq!((patience.watch(25, 10), patience.lasts()), (None, false));
    }
}
