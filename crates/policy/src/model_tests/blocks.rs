//! FAB and REF, with blocks of a few pages.
use super::{Model, Step, agree, steps};
use crate::{Effect, Request};
use proptest::prelude::*;
use std::cmp::Reverse;
use tantalum_base::PageNo;

/// Pages with their dirty flags, the least recently used first.
struct Naive {
    frames: usize,
    pages_per_block: u64,
    entries: Vec<(PageNo, bool)>,
    /// The block of each request so far. A block keeps its time of last use even if that page is
    /// forgotten.
    used: Vec<u64>,
    /// REF's window in pages and number of victim blocks; `None` for FAB.
    victim_window: Option<(usize, usize)>,
    victims: Vec<u64>,
    /// Number of window entries examined to choose victim blocks.
    looked_at: u64,
}

impl Naive {
    fn new(frames: u32, pages_per_block: u64) -> Naive {
        let frames = frames as usize;
        Naive {
            frames,
            pages_per_block,
            entries: Vec::new(),
            used: Vec::new(),
            victim_window: None,
            victims: Vec::new(),
            looked_at: 0,
        }
    }

    fn block(&self, page: PageNo) -> u64 {
        page.0 / self.pages_per_block
    }

    /// The blocks of the first `window` entries with their numbers of pages there: most pages
    /// first, and among equals the block whose oldest page is older. The sort is stable, so it
    /// keeps the order of equals.
    fn blocks_by_pages(&self, window: usize) -> Vec<(u64, usize)> {
        let mut blocks: Vec<(u64, usize)> = Vec::new();
        for &(page, _) in &self.entries[..window] {
            let number = self.block(page);
            match blocks.iter_mut().find(|(block, _)| *block == number) {
                Some((_, pages)) => *pages += 1,
                None => blocks.push((number, 1)),
            }
        }
        blocks.sort_by_key(|&(_, pages)| Reverse(pages));
        blocks
    }

    /// FAB's blocks in eviction order: most pages first, then the one whose last use is longer ago.
    fn fab_order(&self) -> Vec<u64> {
        let mut blocks = self.blocks_by_pages(self.entries.len());
        let last_use = |block: u64| self.used.iter().rposition(|used| *used == block);
        blocks.sort_by_key(|&(block, pages)| (Reverse(pages), last_use(block)));
        blocks.into_iter().map(|(block, _)| block).collect()
    }

    fn fab_evicts(&mut self) -> Vec<(PageNo, bool)> {
        let victim = self.fab_order()[0];
        let pages_per_block = self.pages_per_block;
        let of_victim = |entry: &(PageNo, bool)| entry.0.0 / pages_per_block == victim;
        let mut gone: Vec<(PageNo, bool)> =
            self.entries.iter().copied().filter(of_victim).collect();
        self.entries.retain(|entry| !of_victim(entry));
        gone.sort_unstable();
        gone
    }

    fn ref_evicts(&mut self, window: usize, victims_max: usize) -> (PageNo, bool) {
        let of_victims = |naive: &Naive| {
            let in_window = &naive.entries[..window];
            in_window.iter().position(|entry| naive.victims.contains(&naive.block(entry.0)))
        };
        let at = of_victims(self).unwrap_or_else(|| {
            self.looked_at += self.entries[..window].len() as u64;
            let blocks = self.blocks_by_pages(window).into_iter().take(victims_max);
            self.victims = blocks.map(|(block, _)| block).collect();
            of_victims(self).unwrap()
        });
        self.entries.remove(at)
    }
}

impl Model for Naive {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let (page, write) = (request.page(), request.is_write());
        let block = self.block(page);
        if let Some(at) = self.entries.iter().position(|entry| entry.0 == page) {
            self.used.push(block);
            let (_, dirty) = self.entries.remove(at);
            self.entries.push((page, dirty || write));
            return (true, Vec::new());
        }
        let mut gone = Vec::new();
        if self.entries.len() == self.frames {
            gone = match self.victim_window {
                None => self.fab_evicts(),
                Some((window, victims)) => vec![self.ref_evicts(window, victims)],
            };
        }
        self.used.push(block);
        self.entries.push((page, write));
        (false, gone.into_iter().map(|(page, dirty)| Effect::Evicted { page, dirty }).collect())
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = false;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let at = self.entries.iter().position(|entry| entry.0 == page);
        at.map(|at| self.entries.remove(at)).is_some()
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        self.entries.clone()
    }

    fn search_steps(&self) -> Option<u64> {
        Some(self.looked_at)
    }

    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        // REF's order is checked in `write_order` only, for the case in which it is simple.
        self.victim_window.is_none().then(|| {
            let mut dirty: Vec<PageNo> = Vec::new();
            for block in self.fab_order() {
                let entries = self.entries.iter().filter(|entry| self.block(entry.0) == block);
                let mut pages: Vec<PageNo> =
                    entries.filter(|entry| entry.1).map(|entry| entry.0).collect();
                pages.sort_unstable();
                dirty.extend(pages);
            }
            dirty
        })
    }
}

fn fab_agrees(frames: u32, block: u64, pages: u64, steps: &[Step]) {
    agree(&format!("fab:block={block}"), frames, pages, &mut Naive::new(frames, block), steps);
}

proptest! {
    #[test]
    fn fab_decides_as_its_naive_form(
        block in prop::sample::select(vec![1u64, 3, 4, 64]),
        frames in 1u32..16,
        steps in steps(24),
    ) {
        fab_agrees(frames, block, 24, &steps);
    }

    /// Blocks with more than one word of bits.
    #[test]
    fn fab_decides_as_its_naive_form_over_wide_blocks(
        block in prop::sample::select(vec![65u64, 100, 128, 300]),
        frames in 1u32..48,
        steps in steps(400),
    ) {
        fab_agrees(frames, block, 400, &steps);
    }

    #[test]
    fn ref_decides_as_its_naive_form(
        window in prop::sample::select(vec![0.0, 0.25, 0.5, 0.75, 1.0]),
        block in prop::sample::select(vec![1u64, 3, 4, 16]),
        victims in 1usize..5,
        frames in 1u32..20,
        steps in steps(32),
    ) {
        let text = format!("ref:window={window},block={block},victims={victims}");
        let mut naive = Naive::new(frames, block);
        let window = ((window * f64::from(frames)).floor() as usize).max(1);
        naive.victim_window = Some((window, victims));
        agree(&text, frames, 32, &mut naive, &steps);
    }
}
