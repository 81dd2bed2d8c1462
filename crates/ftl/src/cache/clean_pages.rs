//! The slots of a cache that hold clean pages, and which of these pages cleaning may evict.
//!
//! A page becomes recent when it is used. The cache keeps as many recent clean pages as the dirty ones leave room for.
//! If there are more, a hand moves over the slots and makes recent pages old, as in CLOCK. A page that is old and clean
//! is evicted when its zone is cleaned. Until then it is served; if it is used, it becomes recent again at no cost.
use tantalum_base::{SlotNo, ZoneNo};
use tantalum_media::ZoneGeometry;

/// Most steps of the hand in one call.
const STEPS_MAX: u32 = 1024;

/// For each slot, whether it holds a clean page, and whether its content is recent.
pub(crate) struct CleanPages {
    geometry: ZoneGeometry,
    clean: Bits,
    recent: Bits,
    // Number of clean pages of each zone that are not recent.
    may_go: Vec<u32>,
    clean_count: u64,
    recent_clean_count: u64,
    // The slot that the hand examines next.
    hand: u32,
    kept_pages_max: u64,
}

/// One bit per slot.
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: u64) -> Self {
        Bits(vec![0; bits.div_ceil(64) as usize])
    }

    #[inline]
    fn get(&self, slot: SlotNo) -> bool {
        self.0[slot.index() / 64] >> (slot.index() % 64) & 1 == 1
    }

    #[inline]
    fn set(&mut self, slot: SlotNo, on: bool) {
        let bit = 1 << (slot.index() % 64);
        let word = &mut self.0[slot.index() / 64];
        *word = if on { *word | bit } else { *word & !bit };
    }
}

impl CleanPages {
    /// No page in any slot. At most `kept_pages_max` pages are kept, clean and dirty ones together.
    pub fn new(geometry: ZoneGeometry, kept_pages_max: u64) -> Self {
        let slots = u64::from(geometry.zones) * u64::from(geometry.slots_per_zone);
        CleanPages {
            geometry,
            clean: Bits::new(slots),
            recent: Bits::new(slots),
            may_go: vec![0; geometry.zones as usize],
            clean_count: 0,
            recent_clean_count: 0,
            hand: 0,
            kept_pages_max,
        }
    }

    /// The number of clean pages.
    pub fn count(&self) -> u64 {
        self.clean_count
    }

    /// The number of pages of `zone` that cleaning may evict.
    pub fn may_go(&self, zone: ZoneNo) -> u32 {
        self.may_go[zone.index()]
    }

    /// Whether cleaning may evict the page in `slot`.
    pub fn may_go_from(&self, slot: SlotNo) -> bool {
        self.clean.get(slot) && !self.recent.get(slot)
    }

    /// Bytes of memory that the tables occupy.
    pub fn memory_bytes(&self) -> u64 {
        (8 * (self.clean.0.len() + self.recent.0.len()) + 4 * self.may_go.len()) as u64
    }

    #[inline]
    fn count_one(&mut self, slot: SlotNo, by: i32) {
        if !self.clean.get(slot) {
            return;
        }
        self.clean_count = self.clean_count.wrapping_add_signed(i64::from(by));
        if self.recent.get(slot) {
            self.recent_clean_count = self.recent_clean_count.wrapping_add_signed(i64::from(by));
        } else {
            let zone = self.geometry.zone_of(slot).index();
            self.may_go[zone] = self.may_go[zone].wrapping_add_signed(by);
        }
    }

    /// Notes that the page in `slot` left it.
    #[inline]
    pub fn left(&mut self, slot: SlotNo) {
        self.count_one(slot, -1);
        self.clean.set(slot, false);
        self.recent.set(slot, false);
    }

    /// Notes that a page came to `slot`, which was empty.
    #[inline]
    pub fn came(&mut self, slot: SlotNo, clean: bool, recent: bool) {
        self.clean.set(slot, clean);
        self.recent.set(slot, recent);
        self.count_one(slot, 1);
    }

    /// As [`came`](Self::came), for a recent page.
    #[inline]
    pub fn load(&mut self, slot: SlotNo, clean: bool) {
        let (word, bit) = (slot.index() / 64, slot.index() % 64);
        self.recent.0[word] |= 1 << bit;
        self.clean.0[word] |= u64::from(clean) << bit;
        self.clean_count += u64::from(clean);
        self.recent_clean_count += u64::from(clean);
    }

    /// Whether the page in `slot` is recent.
    #[inline]
    pub fn is_recent(&self, slot: SlotNo) -> bool {
        self.recent.get(slot)
    }

    /// Notes that the page in `slot` was used.
    #[inline]
    pub fn used(&mut self, slot: SlotNo) {
        if !self.recent.get(slot) {
            self.count_one(slot, -1);
            self.recent.set(slot, true);
            self.count_one(slot, 1);
        }
    }

    /// Makes the page in `slot` old, so that cleaning may evict it if it is clean.
    #[inline]
    pub fn unused(&mut self, slot: SlotNo) {
        if self.recent.get(slot) {
            self.count_one(slot, -1);
            self.recent.set(slot, false);
            self.count_one(slot, 1);
        }
    }

    /// Makes pages old until the recent clean ones, together with `dirty` other pages, are within the limit. A call
    /// examines a limited number of slots.
    pub fn keep_to_limit(&mut self, dirty: u64) {
        let most = self.kept_pages_max.saturating_sub(dirty);
        let mut steps = 0;
        while self.recent_clean_count > most && steps < STEPS_MAX {
            steps += 1;
            let word = self.hand as usize / 64;
            let ahead = u64::MAX << (self.hand % 64);
            let both = self.clean.0[word] & self.recent.0[word] & ahead;
            if both == 0 {
                self.hand = (word + 1) as u32 % self.clean.0.len() as u32 * 64;
                continue;
            }
            let slot = SlotNo(word as u32 * 64 + both.trailing_zeros());
            self.unused(slot);
            self.hand = (slot.0 + 1) % (self.clean.0.len() as u32 * 64);
        }
    }

    /// Panics if it is inconsistent, or contradicts `holds`: whether the page in a slot is clean, `None`
    /// if the slot holds no page. For tests.
    pub fn validate(&self, holds: impl Fn(SlotNo) -> Option<bool>) {
        let (mut clean, mut recent) = (0, 0);
        let mut may_go = vec![0; self.may_go.len()];
        for slot in (0..self.geometry.zones * self.geometry.slots_per_zone).map(SlotNo) {
            assert_eq!(self.clean.get(slot), holds(slot) == Some(true), "{slot:?}");
            assert!(
                !self.recent.get(slot) || holds(slot).is_some(),
                "{slot:?} is recent and empty"
            );
            if self.clean.get(slot) {
                clean += 1;
                recent += u64::from(self.recent.get(slot));
                may_go[self.geometry.zone_of(slot).index()] += u32::from(!self.recent.get(slot));
            }
        }
        assert_eq!((clean, recent), (self.clean_count, self.recent_clean_count));
        assert_eq!(may_go, self.may_go);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: ZoneGeometry = ZoneGeometry {
        zones: 4,
        slots_per_zone: 100,
        append_unit_slots: 1,
        append_overhead_slots: 0,
        append_pages_max: 10,
    };

    #[test]
    fn what_was_used_longest_ago_may_go() {
        let mut pages = CleanPages::new(GEOMETRY, 10);
        for slot in 0..20 {
            pages.came(SlotNo(slot), slot % 2 == 0, true);
        }
        let holds = |slot: SlotNo| (slot.0 < 20).then_some(slot.0.is_multiple_of(2));
        pages.validate(holds);
        assert_eq!((pages.count(), pages.may_go(ZoneNo(0))), (10, 0));
        pages.keep_to_limit(4);
        assert_eq!(pages.may_go(ZoneNo(0)), 4, "6 clean ones and 4 dirty ones are kept");
        let gone: Vec<u32> = (0..20).filter(|slot| pages.may_go_from(SlotNo(*slot))).collect();
        assert_eq!(gone, [0, 2, 4, 6]);
        pages.used(SlotNo(0));
        pages.keep_to_limit(4);
        pages.validate(holds);
        let gone: Vec<u32> = (0..20).filter(|slot| pages.may_go_from(SlotNo(*slot))).collect();
        assert_eq!(gone, [2, 4, 6, 8]);
        pages.unused(SlotNo(10));
        assert!(pages.may_go_from(SlotNo(10)));
        pages.used(SlotNo(10));
        pages.left(SlotNo(2));
        pages.left(SlotNo(1));
        pages.validate(|slot| holds(slot).filter(|_| slot.0 != 1 && slot.0 != 2));
        assert_eq!((pages.count(), pages.may_go(ZoneNo(0))), (9, 3));
    }

    #[test]
    fn the_hand_goes_round() {
        let mut pages = CleanPages::new(GEOMETRY, 1);
        pages.came(SlotNo(350), true, true);
        for slot in [3, 5, 64, 349] {
            pages.came(SlotNo(slot), true, true);
            pages.keep_to_limit(0);
        }
        let kept = |pages: &CleanPages| {
            let kept = |slot: &u32| pages.is_recent(SlotNo(*slot));
            [3, 5, 64, 349, 350].into_iter().filter(kept).collect::<Vec<_>>()
        };
        assert_eq!(kept(&pages), [350], "the hand stands before it");
        pages.used(SlotNo(5));
        pages.keep_to_limit(0);
        assert_eq!(kept(&pages), [5], "and passed it");
        pages.keep_to_limit(u64::MAX);
        assert_eq!(kept(&pages), []);
        assert_eq!((pages.may_go(ZoneNo(0)), pages.may_go(ZoneNo(3))), (3, 2));
    }
}
