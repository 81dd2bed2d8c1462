//! Random cache write (RCW): a page is overwritten in its slot, and a new page takes any free slot. So the
//! cache chooses the eviction order.
//!
//! Source: write cache, sections 3.1 to 3.3. With admission on reads and LRU this is LOC; with admission on
//! eviction it is GLB (dissertation, algorithms 5 and 6).
//!
//! With coalesced flushing, the unit of eviction is a virtual track: all cached pages of one disk track
//! leave together, for one seek. Without it, a unit is a track of one page.
use super::operations::{Operation, Told};
use super::{Admission, Found, MiddleTier, TierCounts, Tracks};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::Request;
use tantalum_base::PageNo;

/// The order in which units leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least recently used unit first.
    Lru,
    /// DTF: the unit with the most pages first; of several, the one that has been unchanged for the
    /// longest time.
    DensestTrackFirst,
}

/// Options of such a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomWriteOptions {
    /// Number of pages in the cache.
    pub slots: u32,
    /// The event that admits a page.
    pub admission: Admission,
    /// The order in which units leave.
    pub order: Order,
    /// The disk's tracks.
    pub tracks: Tracks,
}

/// A cache with random writes.
#[derive(Debug)]
pub struct RandomWrite<T> {
    options: RandomWriteOptions,
    pages_end: u64,
    /// Pages per unit: those of a track, or one.
    unit_pages: u32,
    /// Units with a cached page, by their number; in one list, or in one list for each number of pages.
    units: FrameLists<T, u8>,
    /// The cached pages of the unit in each frame, and the dirty ones: one bit per page.
    cached: Vec<u64>,
    dirty: Vec<u64>,
    used_slots: u32,
    counts: TierCounts,
    told: Told,
}

/// The slot of a one-page unit. Frames are numbered from 1.
#[inline]
fn slot(frame: u32) -> u32 {
    frame - 1
}

fn lists(order: Order, unit_pages: u32) -> u32 {
    match order {
        Order::Lru => 1,
        Order::DensestTrackFirst => unit_pages,
    }
}

impl<T: PageTable> RandomWrite<T> {
    /// An empty cache of pages numbered below `pages_end`.
    ///
    /// # Panics
    /// If `options` are out of range.
    pub fn new(options: RandomWriteOptions, pages_end: u64) -> Self {
        assert!((1..=64).contains(&options.tracks.pages), "a track has 1 to 64 pages");
        let unit_pages = if options.tracks.coalesce { options.tracks.pages } else { 1 };
        let lists = lists(options.order, unit_pages);
        let units_end = pages_end.div_ceil(unit_pages.into());
        let units = FrameLists::new(lists, options.slots, units_end);
        let frames_end = units.frames_end();
        RandomWrite {
            options,
            pages_end,
            unit_pages,
            units,
            cached: vec![0; frames_end],
            dirty: vec![0; frames_end],
            used_slots: 0,
            counts: TierCounts::default(),
            told: Told::default(),
        }
    }

    /// The unit of `page`, and the page's bit in it.
    #[inline]
    fn place(&self, page: PageNo) -> (PageNo, u64) {
        match self.unit_pages {
            1 => (page, 1),
            pages => (PageNo(page.0 / u64::from(pages)), 1 << (page.0 % u64::from(pages))),
        }
    }

    /// The frame of the unit of `page` and the page's bit in it, if the page is cached.
    #[inline]
    fn find(&self, page: PageNo) -> Option<(u32, u64)> {
        let (unit, bit) = self.place(page);
        let frame = self.units.find(unit);
        (frame != NO_FRAME && self.cached[frame as usize] & bit != 0).then_some((frame, bit))
    }

    /// Number of lists of units.
    fn lists(&self) -> u32 {
        lists(self.options.order, self.unit_pages)
    }

    /// The list for the unit in `frame`, given its cached pages.
    fn list(&self, frame: u32) -> u32 {
        match self.options.order {
            Order::Lru => 0,
            Order::DensestTrackFirst => self.cached[frame as usize].count_ones() - 1,
        }
    }

    /// Records a use of the unit.
    #[inline]
    fn touch(&mut self, frame: u32) {
        if self.options.order == Order::Lru {
            self.units.move_to_head(frame, 0);
        }
    }

    /// Puts `page`, which must not be cached, into a slot.
    fn admit(&mut self, page: PageNo, dirty: bool) {
        if self.used_slots == self.options.slots {
            self.evict_unit();
        }
        let (unit, bit) = self.place(page);
        let mut frame = self.units.find(unit);
        if frame == NO_FRAME {
            frame = self.units.push(Request::new(unit, false), 0);
            (self.cached[frame as usize], self.dirty[frame as usize]) = (0, 0);
        }
        self.cached[frame as usize] |= bit;
        if dirty {
            self.dirty[frame as usize] |= bit;
        }
        self.used_slots += 1;
        self.units.move_to_head(frame, self.list(frame));
        self.counts.flash_random_writes += 1;
        self.told.tell(Operation::WriteFlash { slot: slot(frame), page });
    }

    /// Evicts the next unit and frees its slots.
    fn evict_unit(&mut self) {
        let victim = match self.options.order {
            Order::Lru => self.units.tail(0),
            Order::DensestTrackFirst => {
                let lists = (0..self.unit_pages).rev().map(|list| self.units.tail(list));
                lists.into_iter().find(|frame| *frame != NO_FRAME).unwrap_or(NO_FRAME)
            }
        };
        assert_ne!(victim, NO_FRAME, "every slot is used, so there is a unit");
        self.destage(victim);
        self.used_slots -= self.cached[victim as usize].count_ones();
        self.units.remove(victim);
    }

    /// Writes the dirty pages of the unit in `frame` home, with a seek of its own.
    fn destage(&mut self, frame: u32) {
        let dirty = std::mem::take(&mut self.dirty[frame as usize]);
        self.counts.write_home(dirty.count_ones().into());
        self.tell_destage(frame, dirty);
    }

    /// Records that the dirty pages of the unit in `frame` go home. Recording requires units of one
    /// page.
    fn tell_destage(&mut self, frame: u32, dirty: u64) {
        if dirty != 0 {
            let page = self.units.key(frame).page();
            self.told.tell(Operation::Destage { slot: slot(frame), page });
        }
    }

    /// Writes the dirty pages of the track of `page` home, without a seek, as the disk is at that
    /// track already.
    fn write_track_home(&mut self, page: PageNo) {
        let track_pages = u64::from(self.options.tracks.pages);
        let first = page.0 / track_pages * track_pages;
        let end = self.pages_end.min(first + track_pages);
        let mut number = first;
        while number < end {
            let frame = self.units.find(self.place(PageNo(number)).0);
            if frame != NO_FRAME {
                let dirty = std::mem::take(&mut self.dirty[frame as usize]);
                self.counts.flash_reads += u64::from(dirty.count_ones());
                self.counts.disk_writes += u64::from(dirty.count_ones());
                self.tell_destage(frame, dirty);
            }
            number += u64::from(self.unit_pages);
        }
    }

    /// Removes a cached page.
    fn take(&mut self, frame: u32, bit: u64) -> Found {
        let dirty = self.dirty[frame as usize] & bit != 0;
        self.cached[frame as usize] &= !bit;
        self.dirty[frame as usize] &= !bit;
        self.used_slots -= 1;
        if self.cached[frame as usize] == 0 {
            self.units.remove(frame);
        } else if self.options.order == Order::DensestTrackFirst {
            self.units.move_to_head(frame, self.list(frame));
        }
        Found::Taken { dirty }
    }
}

impl<T: PageTable> MiddleTier for RandomWrite<T> {
    fn read(&mut self, page: PageNo) -> Found {
        self.counts.reads += 1;
        if let Some((frame, bit)) = self.find(page) {
            self.counts.read_hits += 1;
            self.counts.flash_reads += 1;
            self.told.tell(Operation::ReadFlash { slot: slot(frame), page });
            if self.options.admission == Admission::Eviction {
                return self.take(frame, bit);
            }
            self.touch(frame);
            return Found::Hit;
        }
        self.counts.read_home();
        self.told.tell(Operation::ReadHome { page });
        if self.options.tracks.piggyback {
            self.write_track_home(page);
        }
        if self.options.admission == Admission::Read {
            self.admit(page, false);
        }
        Found::Missed
    }

    fn write(&mut self, page: PageNo) {
        self.counts.writes += 1;
        if let Some((frame, bit)) = self.find(page) {
            self.counts.write_hits += 1;
            self.counts.flash_random_writes += 1;
            self.told.tell(Operation::WriteFlash { slot: slot(frame), page });
            self.dirty[frame as usize] |= bit;
            self.touch(frame);
        } else if self.options.admission == Admission::Read {
            self.counts.overwrite_home();
            self.told.tell(Operation::WriteHome { page });
        } else {
            self.admit(page, true);
        }
    }

    fn evict(&mut self, page: PageNo) {
        if self.options.admission == Admission::Eviction && self.find(page).is_none() {
            self.admit(page, false);
        }
    }

    fn flush(&mut self) {
        let frames: Vec<u32> =
            (0..self.lists()).flat_map(|list| self.units.oldest_first(list)).collect();
        frames.into_iter().for_each(|frame| self.destage(frame));
    }

    fn contains(&self, page: PageNo) -> bool {
        self.find(page).is_some()
    }

    fn dirty_pages(&self) -> u64 {
        let frames = (0..self.lists()).flat_map(|list| self.units.oldest_first(list));
        frames.map(|frame| u64::from(self.dirty[frame as usize].count_ones())).sum()
    }

    fn counts(&self) -> &TierCounts {
        &self.counts
    }

    fn tell_operations(&mut self) -> bool {
        let is_told = self.unit_pages == 1;
        if is_told {
            self.told.start();
        }
        is_told
    }

    fn take_operations(&mut self, operations: &mut Vec<Operation>) {
        self.told.take(operations);
    }

    #[cfg(test)]
    fn validate(&self) {
        self.units.validate();
        let mut slots = 0;
        for list in 0..self.lists() {
            for frame in self.units.oldest_first(list) {
                let (cached, dirty) = (self.cached[frame as usize], self.dirty[frame as usize]);
                assert!(cached != 0 && dirty & !cached == 0, "a unit without pages");
                assert_eq!(self.list(frame), list);
                slots += cached.count_ones();
            }
        }
        assert_eq!(slots, self.used_slots);
        assert!(slots <= self.options.slots);
    }
}
