//! The cleaning of the board's published firmware (Jasmine 1.1.0, `ftl_greedy`), implemented separately: beside the measured device it
//! receives the same writes and shares, and counts what the firmware would clean and copy.
//!
//! One block is free. When the open one is full, the block with the fewest live pages is the victim: its live pages are copied into the
//! free block, hosts continue to write after them, and the victim becomes the free block.
//!
//! It only counts: it has no contents and no times. The firmware has no shares; here a slot is live as long as one page is in it, and is
//! copied once for all of its pages.
use tantalum_base::{FastMap, PageNo};

/// A page without content.
const NOWHERE: u32 = u32::MAX;

/// The counters of cleaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaned {
    pub(super) blocks: u64,
    pub(super) copied_pages: u64,
}

impl Cleaned {
    pub(super) fn since(&self, start: &Cleaned) -> Cleaned {
        Cleaned {
            blocks: self.blocks - start.blocks,
            copied_pages: self.copied_pages - start.copied_pages,
        }
    }
}

/// Flash with one log. Slots are numbered through all blocks.
pub(super) struct OneLog {
    block_slots: u32,
    /// The slot of each page.
    map: Vec<u32>,
    /// The page that was written to a slot, and further pages that share it; some may have left the slot since.
    writers: Vec<u32>,
    sharers: FastMap<u32, Vec<u32>>,
    /// Number of pages in each slot.
    pages_in: Vec<u16>,
    /// Number of live slots of each block.
    live: Vec<u32>,
    open: u32,
    used_slots: u32,
    free: u32,
    /// Number of blocks that were never written; at first all except the open one and the free one.
    fresh: u32,
    cleaned: Cleaned,
}

impl OneLog {
    /// Empty flash of `slots` slots, in whole blocks, for `pages` pages.
    pub(super) fn new(pages: u64, slots: u64, block_slots: u32) -> OneLog {
        let blocks = (slots / u64::from(block_slots)) as u32;
        assert!(blocks >= 3 && u64::from((blocks - 2) * block_slots) > pages, "room to clean in");
        OneLog {
            block_slots,
            map: vec![NOWHERE; pages as usize],
            writers: vec![NOWHERE; (blocks * block_slots) as usize],
            sharers: FastMap::default(),
            pages_in: vec![0; (blocks * block_slots) as usize],
            live: vec![0; blocks as usize],
            open: 0,
            used_slots: 0,
            free: 1,
            fresh: blocks - 2,
            cleaned: Cleaned::default(),
        }
    }

    /// A host writes `page`.
    pub(super) fn write(&mut self, page: PageNo) {
        if self.used_slots == self.block_slots {
            self.next_block();
        }
        let slot = self.take_slot();
        self.writers[slot as usize] = page.0 as u32;
        self.put(page.0 as u32, slot);
    }

    /// `left` gets the content of `right`.
    pub(super) fn share(&mut self, left: PageNo, right: PageNo) {
        let slot = self.map[right.index()];
        if slot != NOWHERE && slot != self.map[left.index()] {
            self.sharers.entry(slot).or_default().push(left.0 as u32);
            self.put(left.0 as u32, slot);
        }
    }

    fn take_slot(&mut self) -> u32 {
        self.used_slots += 1;
        self.open * self.block_slots + self.used_slots - 1
    }

    fn put(&mut self, page: u32, slot: u32) {
        let before = std::mem::replace(&mut self.map[page as usize], slot);
        if before != NOWHERE {
            self.pages_in[before as usize] -= 1;
            self.live[(before / self.block_slots) as usize] -=
                u32::from(self.pages_in[before as usize] == 0);
        }
        self.live[(slot / self.block_slots) as usize] +=
            u32::from(self.pages_in[slot as usize] == 0);
        self.pages_in[slot as usize] += 1;
    }

    /// Continues in a block with room: one that was never written, or the free one after the copies from a victim.
    fn next_block(&mut self) {
        self.used_slots = 0;
        if self.fresh > 0 {
            self.open = self.live.len() as u32 - self.fresh;
            self.fresh -= 1;
            return;
        }
        self.open = self.free;
        let blocks = (0..self.live.len() as u32).filter(|block| *block != self.free);
        let victim = blocks.min_by_key(|block| self.live[*block as usize]).expect("blocks");
        let first = victim * self.block_slots;
        for slot in first..first + self.block_slots {
            let sharers = self.sharers.remove(&slot).unwrap_or_default();
            let writer = self.writers[slot as usize];
            let held = std::iter::once(writer).chain(sharers);
            let held: Vec<u32> =
                held.filter(|page| *page != NOWHERE && self.map[*page as usize] == slot).collect();
            self.writers[slot as usize] = NOWHERE;
            let Some((&page, more)) = held.split_first() else { continue };
            let copy = self.take_slot();
            self.cleaned.copied_pages += 1;
            self.writers[copy as usize] = page;
            held.iter().for_each(|page| self.put(*page, copy));
            if !more.is_empty() {
                self.sharers.insert(copy, more.to_vec());
            }
        }
        self.cleaned.blocks += 1;
        self.free = victim;
        if self.used_slots == self.block_slots {
            self.next_block();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use tantalum_base::{PageDevice, Result, Rng, Stamp};
    use tantalum_models::{DeviceConfig, SimulatedSsd};
    use tantalum_runtime::{LifeCycle, Virtual};

    const PAGES: u64 = 16_384;
    /// Over-provisioning of the board: a share of the pages.
    const OVER_PROVISIONING: f64 = 0.074;
    const BATCH: u64 = 32;

    /// Pages that are written and shared at random, most of them in a fifth of the device, on the model and in the count of the firmware.
    /// Returns the copies of each per written page, once most of the flash was overwritten.
    async fn copies_a_page(runtime: &Virtual, text: &str) -> Result<[f64; 2]> {
        let config = DeviceConfig::parse(text)?;
        let device: Rc<SimulatedSsd<Virtual, Stamp>> = config.build(runtime, 1).await?;
        let slots = (PAGES as f64 * (1.0 + OVER_PROVISIONING)).ceil() as u64;
        let block_slots = config.geometry().slots_per_zone;
        let mut firmware = OneLog::new(PAGES, slots, block_slots);
        let mut rng = Rng::new(1);
        // The first pages are a journal whose content is shared into others.
        let others = PAGES * 17 / 20 - BATCH;
        let mut start = [0, 0];
        for round in 0..8 * PAGES / BATCH {
            if round == 4 * PAGES / BATCH {
                start =
                    [device.device().ftl().statistics().pages_moved, firmware.cleaned.copied_pages];
            }
            let mut pairs = Vec::new();
            for journal in 0..BATCH {
                let within = if rng.chance(0.7) { others / 5 } else { others };
                let left = PageNo(BATCH + rng.below(within));
                device.write(PageNo(journal), &[Stamp::new(left, round)], None).await?;
                firmware.write(PageNo(journal));
                if pairs.iter().all(|(other, _)| *other != left) {
                    pairs.push((left, PageNo(journal)));
                }
            }
            device.share(&pairs).await?;
            pairs.iter().for_each(|(left, right)| firmware.share(*left, *right));
        }
        let end = [device.device().ftl().statistics().pages_moved, firmware.cleaned.copied_pages];
        device.close().await?;
        let written = (4 * PAGES) as f64;
        Ok([0, 1].map(|at| (end[at] - start[at]) as f64 / written))
    }

    /// The model of the board, with tasks, times, checkpoints and records of its own, copies about as much as the firmware would; here,
    /// with few zones, it is one or two whole zones more than the board. A model with separate zones for copies copies less.
    #[test]
    fn the_model_of_the_board_copies_as_the_firmware_does() {
        let copies = |text: String| {
            let what = text.clone();
            Virtual::alone(what, move |runtime| async move { copies_a_page(&runtime, &text).await })
        };
        let [board, firmware] = copies(format!("openssd:pages={PAGES}")).unwrap();
        assert!((0.85..1.0).contains(&(board / firmware)), "{board} beside {firmware}");
        let [apart, _] = copies(format!("openssd:pages={PAGES},copies=apart")).unwrap();
        assert!(apart < 0.9 * firmware, "{apart} beside {firmware}");
    }

    /// Every page is in one slot, and every slot counts its pages.
    fn validate(log: &OneLog) {
        let mut pages_in = vec![0; log.pages_in.len()];
        log.map.iter().filter(|slot| **slot != NOWHERE).for_each(|at| pages_in[*at as usize] += 1);
        assert_eq!(pages_in, log.pages_in);
        for (block, live) in pages_in.chunks(log.block_slots as usize).zip(&log.live) {
            assert_eq!(block.iter().filter(|pages| **pages > 0).count(), *live as usize);
        }
    }

    /// In the long run cleaning frees as many slots as are written and copied; and sequential writes leave nothing to copy.
    #[test]
    fn it_frees_what_is_written_and_copied() {
        let mut log = OneLog::new(3000, 4096, 64);
        let mut rng = Rng::new(1);
        (0..20_000).for_each(|_| log.write(PageNo(rng.below(3000))));
        validate(&log);
        let before = log.cleaned;
        (0..50_000).for_each(|_| log.write(PageNo(rng.below(3000))));
        let since = log.cleaned.since(&before);
        let freed = since.blocks * 64 - since.copied_pages;
        assert!(freed.abs_diff(50_000) <= 64, "{since:?}");
        assert!(since.copied_pages > 20_000, "{since:?}");
        let mut in_turn = OneLog::new(2048, 4096, 64);
        (0..50_000).for_each(|count| in_turn.write(PageNo(count % 2048)));
        assert_eq!(in_turn.cleaned.copied_pages, 0);
    }

    /// A slot stays as long as one of its pages does, and is copied once for all of them.
    #[test]
    fn shared_slots_are_copied_once() {
        let mut log = OneLog::new(1000, 2048, 64);
        let mut rng = Rng::new(2);
        for page in 0..100 {
            log.write(PageNo(page));
            log.share(PageNo(100 + page), PageNo(page));
            log.share(PageNo(200 + page), PageNo(100 + page));
        }
        for _ in 0..20_000 {
            // The writer leaves some of the slots, a sharer others.
            log.write(PageNo([rng.below(50), 300 + rng.below(700)][rng.below(2) as usize]));
        }
        validate(&log);
        for page in 0..100 {
            let (first, second) = (log.map[100 + page], log.map[200 + page]);
            assert_eq!(first, second, "page {page}");
            assert_eq!(log.map[page] == first, page >= 50, "page {page}");
        }
    }
}
