//! Sequential cache write (SCW): slots are written in a ring. Each write goes to the slot after the last
//! one, which suits flash with slow random writes and wears it evenly. The cache does not choose its
//! victim: it is the page in the next slot.
//!
//! Source: write cache, section 3.2. A newer version of a page invalidates the older one in another slot. If
//! the page in the next slot is dirty, it goes home first; with coalesced flushing, all dirty pages of its
//! track go home with it. These others stay, clean, until it is their turn.
use super::operations::{Operation, Told};
use super::{Admission, Found, MiddleTier, TierCounts, Tracks};
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

/// Options of such a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequentialWriteOptions {
    /// Number of pages in the cache.
    pub slots: u32,
    /// The event that admits a page.
    pub admission: Admission,
    /// The disk's tracks.
    pub tracks: Tracks,
}

/// A cache whose slots are written in a ring.
#[derive(Debug)]
pub struct SequentialWrite<T> {
    options: SequentialWriteOptions,
    pages_end: u64,
    /// The slot of each page.
    table: T,
    /// The content of the slots, from 1 on; `None` if the page was rewritten to another slot or has
    /// left.
    slots: Vec<Option<Key>>,
    /// The next slot to write.
    next: u32,
    counts: TierCounts,
    told: Told,
}

impl<T: PageTable> SequentialWrite<T> {
    /// An empty cache of pages numbered below `pages_end`.
    ///
    /// # Panics
    /// If `options` are out of range.
    pub fn new(options: SequentialWriteOptions, pages_end: u64) -> Self {
        assert!(options.slots > 0 && options.tracks.pages > 0, "a slot and a page in a track");
        SequentialWrite {
            options,
            pages_end,
            table: T::new(options.slots, pages_end),
            slots: vec![None; options.slots as usize + 1],
            next: 1,
            counts: TierCounts::default(),
            told: Told::default(),
        }
    }

    #[inline]
    fn find(&self, page: PageNo) -> u32 {
        let page_of = |slot: u32| self.slots[slot as usize].map_or(PageNo(u64::MAX), Key::page);
        self.table.find(page, page_of)
    }

    /// Makes the slot of `page` invalid. Returns its content.
    fn take(&mut self, page: PageNo) -> Option<Key> {
        let slot = self.find(page);
        if slot == NO_FRAME {
            return None;
        }
        let slots = &self.slots;
        let page_of = |slot: u32| slots[slot as usize].map_or(PageNo(u64::MAX), Key::page);
        self.table.remove(page, slot, page_of);
        self.slots[slot as usize].take()
    }

    /// Writes `page` to the next slot. Returns whether it was cached before.
    fn put(&mut self, page: PageNo, dirty: bool) -> bool {
        let before = self.take(page);
        if let Some(leaving) = self.slots[self.next as usize] {
            if leaving.is_dirty() {
                let track =
                    if self.options.tracks.coalesce { self.options.tracks.pages } else { 1 };
                let pages = self.clean_track(leaving.page(), track);
                self.counts.write_home(pages);
            }
            self.take(leaving.page());
        }
        self.slots[self.next as usize] = Some(Key::new(Request::new(page, dirty)));
        self.table.insert(page, self.next);
        self.told.tell(Operation::WriteFlash { slot: self.next - 1, page });
        self.next = self.next % self.options.slots + 1;
        self.counts.flash_sequential_writes += 1;
        before.is_some()
    }

    /// Makes the dirty pages of the track of `page` clean. Returns their number.
    fn clean_track(&mut self, page: PageNo, track_pages: u32) -> u64 {
        let first = page.0 / u64::from(track_pages) * u64::from(track_pages);
        let end = self.pages_end.min(first + u64::from(track_pages));
        let mut cleaned = 0;
        for number in first..end {
            let slot = self.find(PageNo(number));
            // Slot 0 does not exist; its entry is always empty.
            if let Some(key) = &mut self.slots[slot as usize]
                && key.is_dirty()
            {
                key.clean();
                cleaned += 1;
                self.told.tell(Operation::Destage { slot: slot - 1, page: PageNo(number) });
            }
        }
        cleaned
    }
}

impl<T: PageTable> MiddleTier for SequentialWrite<T> {
    fn read(&mut self, page: PageNo) -> Found {
        self.counts.reads += 1;
        let slot = self.find(page);
        if slot != NO_FRAME {
            self.counts.read_hits += 1;
            self.counts.flash_reads += 1;
            self.told.tell(Operation::ReadFlash { slot: slot - 1, page });
            if self.options.admission != Admission::Eviction {
                return Found::Hit;
            }
            let dirty = self.take(page).is_some_and(|key| key.is_dirty());
            return Found::Taken { dirty };
        }
        self.counts.read_home();
        self.told.tell(Operation::ReadHome { page });
        if self.options.tracks.piggyback {
            let pages = self.clean_track(page, self.options.tracks.pages);
            self.counts.flash_reads += pages;
            self.counts.disk_writes += pages;
        }
        if self.options.admission == Admission::Read {
            self.put(page, false);
        }
        Found::Missed
    }

    fn write(&mut self, page: PageNo) {
        self.counts.writes += 1;
        if self.options.admission == Admission::Read && self.find(page) == NO_FRAME {
            self.counts.overwrite_home();
            self.told.tell(Operation::WriteHome { page });
            return;
        }
        let hit = self.put(page, true);
        self.counts.write_hits += u64::from(hit);
    }

    fn evict(&mut self, page: PageNo) {
        if self.options.admission == Admission::Eviction && self.find(page) == NO_FRAME {
            self.put(page, false);
        }
    }

    fn flush(&mut self) {
        let track = if self.options.tracks.coalesce { self.options.tracks.pages } else { 1 };
        for slot in 1..self.slots.len() {
            if let Some(key) = self.slots[slot]
                && key.is_dirty()
            {
                let pages = self.clean_track(key.page(), track);
                self.counts.write_home(pages);
            }
        }
    }

    fn contains(&self, page: PageNo) -> bool {
        self.find(page) != NO_FRAME
    }

    fn dirty_pages(&self) -> u64 {
        self.slots.iter().flatten().filter(|key| key.is_dirty()).count() as u64
    }

    fn counts(&self) -> &TierCounts {
        &self.counts
    }

    fn tell_operations(&mut self) -> bool {
        self.told.start();
        true
    }

    fn take_operations(&mut self, operations: &mut Vec<Operation>) {
        self.told.take(operations);
    }

    #[cfg(test)]
    fn validate(&self) {
        for (slot, key) in self.slots.iter().enumerate() {
            if let Some(key) = key {
                assert_eq!(self.find(key.page()) as usize, slot);
            }
        }
    }
}
