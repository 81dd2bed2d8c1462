//! Indirect use of flash: cache slots on a translation layer, which maps each slot to a flash page.
//!
//! Source: dissertation, sections 7.1 and 7.3.1. With BL the layer sees only reads and writes of slots, so
//! collection moves pages that the cache is about to evict. Whenever LPD (algorithm 7) needs a slot, it
//! deletes the coldest pages as well; collection then drops their flash pages.
use super::flash_blocks::{BlockGeometry, Collector, Fate, FlashBlocks, FlashPage, NO_FLASH_PAGE};
use super::{Found, MiddleTier, TierCounts};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

/// A cache on a page-mapped translation layer, in LRU order. Every missed page is admitted, read or written.
#[derive(Debug)]
pub struct Indirect<T> {
    /// A frame is a slot.
    slots: FrameLists<T, ()>,
    /// Number of pages that are deleted in addition to the victim when a slot is needed: `d`.
    deletes: u32,
    layer: Layer,
    blocks: FlashBlocks,
    counts: TierCounts,
}

/// The translation layer's map: the flash page of each slot.
#[derive(Debug)]
struct Layer(Vec<FlashPage>);

impl Collector for Layer {
    fn choose(&mut self, blocks: &FlashBlocks, garbage: u32) -> Option<u32> {
        // If all its pages are valid, moving them gains nothing.
        (blocks.kept_pages(garbage) < blocks.geometry().block_pages).then_some(garbage)
    }

    fn decide(&mut self, _owner: u64, _page: FlashPage, _counts: &mut TierCounts) -> Fate {
        Fate::Keep
    }

    fn moved(&mut self, owner: u64, _from: FlashPage, to: FlashPage) {
        self.0[owner as usize] = to;
    }
}

impl<T: PageTable> Indirect<T> {
    /// An empty cache of pages numbered below `pages_end`. With `deletes` 0 it is BL.
    pub fn new(geometry: BlockGeometry, deletes: u32, pages_end: u64) -> Self {
        let slots = FrameLists::new(1, geometry.cache_pages(), pages_end);
        Indirect {
            deletes,
            layer: Layer(vec![NO_FLASH_PAGE; slots.frames_end()]),
            slots,
            blocks: FlashBlocks::new(geometry),
            counts: TierCounts::default(),
        }
    }

    /// Writes the content of `slot` to flash; its old flash page becomes invalid.
    fn program(&mut self, slot: u32) {
        let old = std::mem::replace(&mut self.layer.0[slot as usize], NO_FLASH_PAGE);
        if old != NO_FLASH_PAGE {
            self.blocks.invalidate(old);
        }
        let page = self.blocks.program(slot.into(), &mut self.layer, &mut self.counts);
        self.layer.0[slot as usize] = page;
    }

    /// A page is evicted: counts its write home if it is dirty.
    fn evicted(&mut self, key: Key) {
        self.counts.write_home(key.is_dirty().into());
    }

    /// Puts the page of `request`, which is not cached, into a free slot (algorithm 7).
    fn admit(&mut self, request: Request) {
        let slot = if self.slots.is_full() {
            let victim = self.slots.tail(0);
            let key = self.slots.replace(victim, request, 0);
            self.evicted(key);
            for _ in 0..self.deletes {
                let coldest = self.slots.tail(0);
                if coldest == NO_FRAME || coldest == victim {
                    break;
                }
                let key = self.slots.remove(coldest);
                self.evicted(key);
                let page = std::mem::replace(&mut self.layer.0[coldest as usize], NO_FLASH_PAGE);
                self.blocks.invalidate(page);
            }
            victim
        } else {
            self.slots.push(request, 0)
        };
        self.program(slot);
    }
}

impl<T: PageTable> MiddleTier for Indirect<T> {
    fn read(&mut self, page: PageNo) -> Found {
        self.counts.reads += 1;
        let slot = self.slots.find(page);
        if slot != NO_FRAME {
            self.counts.read_hits += 1;
            self.counts.flash_reads += 1;
            self.slots.move_to_head(slot, 0);
            return Found::Hit;
        }
        self.counts.read_home();
        self.admit(Request::new(page, false));
        Found::Missed
    }

    fn write(&mut self, page: PageNo) {
        self.counts.writes += 1;
        let (slot, request) = (self.slots.find(page), Request::new(page, true));
        if slot == NO_FRAME {
            return self.admit(request);
        }
        self.counts.write_hits += 1;
        self.slots.key_mut(slot).touch(request);
        self.slots.move_to_head(slot, 0);
        self.program(slot);
    }

    fn flush(&mut self) {
        let mut slot = self.slots.tail(0);
        while slot != NO_FRAME {
            let dirty = self.slots.key(slot).is_dirty();
            self.slots.key_mut(slot).clean();
            self.counts.write_home(dirty.into());
            slot = self.slots.newer(slot);
        }
    }

    fn contains(&self, page: PageNo) -> bool {
        self.slots.find(page) != NO_FRAME
    }

    fn dirty_pages(&self) -> u64 {
        self.slots.dirty_pages().into()
    }

    fn counts(&self) -> &TierCounts {
        &self.counts
    }

    fn blocks(&self) -> Option<&FlashBlocks> {
        Some(&self.blocks)
    }

    #[cfg(test)]
    fn validate(&self) {
        self.slots.validate();
        self.blocks.validate();
        for slot in self.slots.oldest_first(0) {
            assert_eq!(self.blocks.owner(self.layer.0[slot as usize]), Some(slot.into()));
        }
    }
}
