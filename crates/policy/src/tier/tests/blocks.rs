//! Naive caches on blocks of flash pages, as the dissertation describes them in chapter 7, and the lazy one.
use super::{Model, Step};
use crate::tier::{Found, TierCounts};

/// Blocks of flash pages; each page has its content, if it is valid.
struct Flash<C> {
    blocks: Vec<Vec<Option<C>>>,
    free: Vec<usize>,
    // Blocks that are full, in the order in which their number of valid pages last changed.
    full: Vec<usize>,
    current: usize,
    block: usize,
    low: usize,
    high: usize,
    // Of each erased block, in order: the number of its pages that were moved.
    moved: Vec<usize>,
}

impl<C: Copy> Flash<C> {
    /// As large as a cache of `pages` pages requires: at least a tenth of the blocks free, and at most a
    /// fifth.
    fn new(block: usize, pages: usize) -> Self {
        let mut blocks = pages.div_ceil(block).max(3);
        let high = |blocks: usize| ((blocks as f64 * 0.2) as usize).max(2);
        while (blocks - high(blocks)) * block < pages {
            blocks += 1;
        }
        let low = ((blocks as f64 * 0.1) as usize).clamp(1, high(blocks) - 1);
        Flash {
            blocks: vec![Vec::new(); blocks],
            free: (1..blocks).collect(),
            full: Vec::new(),
            current: 0,
            block,
            low,
            high: high(blocks),
            moved: Vec::new(),
        }
    }

    fn valid(&self, block: usize) -> usize {
        self.blocks[block].iter().flatten().count()
    }

    fn find(&self, is_it: impl Fn(&C) -> bool) -> Option<(usize, usize)> {
        (0..self.blocks.len()).find_map(|block| {
            let held = self.blocks[block].iter();
            held.enumerate().find_map(|(at, content)| {
                content.as_ref().is_some_and(&is_it).then_some((block, at))
            })
        })
    }

    fn void(&mut self, (block, at): (usize, usize)) -> Option<C> {
        if let Some(listed) = self.full.iter().position(|full| *full == block) {
            self.full.remove(listed);
            self.full.push(block);
        }
        self.blocks[block][at].take()
    }

    /// Writes to the current block; if that is full, to the next free one.
    fn push(&mut self, content: C) -> usize {
        if self.blocks[self.current].len() == self.block {
            self.next_block();
        }
        let current = self.current;
        self.blocks[current].push(Some(content));
        current
    }

    fn next_block(&mut self) {
        self.full.push(self.current);
        self.current = self.free.remove(0);
        self.blocks[self.current].clear();
    }

    /// The first of the full blocks with the fewest valid pages.
    fn garbage(&self) -> Option<usize> {
        let fewest = self.full.iter().map(|block| self.valid(*block)).min()?;
        self.full.iter().copied().find(|block| self.valid(*block) == fewest)
    }

    /// Moves those valid pages of the block that `keep` accepts, and erases the block.
    fn erase(&mut self, block: usize, counts: &mut TierCounts, mut keep: impl FnMut(C) -> bool) {
        self.full.retain(|full| *full != block);
        let before = counts.collected_pages;
        for at in 0..self.blocks[block].len() {
            if let Some(content) = self.blocks[block][at]
                && keep(content)
            {
                self.push(content);
                counts.collected_pages += 1;
            }
        }
        self.blocks[block].clear();
        self.free.push(block);
        counts.erases += 1;
        self.moved.push((counts.collected_pages - before) as usize);
    }
}

/// LPD: slots in LRU order, on flash.
pub(super) struct Slots {
    deletes: usize,
    slots: usize,
    // (page, dirty), the most recently used at the end.
    pages: Vec<(u64, bool)>,
    flash: Flash<u64>,
    counts: TierCounts,
}

impl Slots {
    pub(super) fn new(deletes: usize, block: usize, pages: usize) -> Self {
        let flash = Flash::new(block, pages);
        let slots = (flash.blocks.len() - flash.high) * block;
        Slots { deletes, slots, pages: Vec::new(), flash, counts: TierCounts::default() }
    }

    fn evict_coldest(&mut self) {
        let (page, dirty) = self.pages.remove(0);
        self.counts.flash_reads += u64::from(dirty);
        self.counts.disk_writes += u64::from(dirty);
        self.counts.seeks += u64::from(dirty);
        let place = self.flash.find(|held| *held == page).unwrap();
        self.flash.void(place);
    }

    /// Uses the page; if `programs`, writes it to flash.
    fn put(&mut self, page: u64, dirty: bool, programs: bool) {
        if let Some(at) = self.pages.iter().position(|(cached, _)| *cached == page) {
            let (_, before) = self.pages.remove(at);
            self.pages.push((page, dirty || before));
            if !programs {
                return;
            }
            let place = self.flash.find(|held| *held == page).unwrap();
            self.flash.void(place);
        } else {
            if self.pages.len() == self.slots {
                self.leave_slot();
            }
            self.pages.push((page, dirty));
        }
        if self.flash.blocks[self.flash.current].len() == self.flash.block {
            self.flash.next_block();
            if self.flash.free.len() <= self.flash.low {
                while self.flash.free.len() < self.flash.high {
                    let Some(block) = self.flash.garbage() else { break };
                    if self.flash.valid(block) == self.flash.block {
                        break;
                    }
                    self.flash.erase(block, &mut self.counts, |_| true);
                }
            }
        }
        self.flash.push(page);
        self.counts.flash_sequential_writes += 1;
    }

    /// Evicts the coldest page, whose slot a new page takes, and deletes some more.
    fn leave_slot(&mut self) {
        let (page, dirty) = self.pages.remove(0);
        self.counts.flash_reads += u64::from(dirty);
        self.counts.disk_writes += u64::from(dirty);
        self.counts.seeks += u64::from(dirty);
        for _ in 0..self.deletes {
            if self.pages.is_empty() {
                break;
            }
            self.evict_coldest();
        }
        // The slot's old content becomes invalid when the new one is written, after the deletions.
        let place = self.flash.find(|held| *held == page).unwrap();
        self.flash.void(place);
    }
}

impl Model for Slots {
    fn step(&mut self, step: Step) -> Option<Found> {
        let cached = |model: &Self, page| model.pages.iter().any(|(cached, _)| *cached == page);
        match step {
            Step::Read(page) => {
                self.counts.reads += 1;
                if cached(self, page) {
                    self.counts.read_hits += 1;
                    self.counts.flash_reads += 1;
                    self.put(page, false, false);
                    return Some(Found::Hit);
                }
                self.counts.disk_reads += 1;
                self.counts.seeks += 1;
                self.put(page, false, true);
                Some(Found::Missed)
            }
            Step::Write(page) => {
                self.counts.writes += 1;
                self.counts.write_hits += u64::from(cached(self, page));
                self.put(page, true, true);
                None
            }
            Step::Evict(_) => None,
        }
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        self.pages.clone()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }

    fn moved(&self) -> Option<&[usize]> {
        Some(&self.flash.moved)
    }
}

/// Lazy: pages in LRU order, of which a fixed number of the last ones is kept.
pub(super) struct Late {
    flash: Flash<u64>,
    kept_max: usize,
    // (page, dirty), the most recently used at the end; and the pages given up.
    kept: Vec<(u64, bool)>,
    given_up: Vec<(u64, bool)>,
    counts: TierCounts,
}

impl Late {
    pub(super) fn new(block: usize, pages: usize, share: f64) -> Self {
        let flash = Flash::new(block, pages);
        let capacity = (flash.blocks.len() - flash.high) * block;
        let kept_max = ((capacity as f64 * share) as usize).min(capacity - block).max(1);
        let (kept, given_up) = (Vec::new(), Vec::new());
        Late { flash, kept_max, kept, given_up, counts: TierCounts::default() }
    }

    /// The number of kept pages of the block that holds `page` changed.
    fn changed(&mut self, page: u64) {
        if let Some((block, _)) = self.flash.find(|held| *held == page)
            && let Some(at) = self.flash.full.iter().position(|full| *full == block)
        {
            self.flash.full.remove(at);
            self.flash.full.push(block);
        }
    }

    fn give_one_up(&mut self) {
        if self.kept.len() >= self.kept_max {
            let coldest = self.kept.remove(0);
            self.given_up.push(coldest);
            self.changed(coldest.0);
        }
    }

    /// Makes a cached page the most recently used. Returns whether it was dirty, if it was cached.
    fn use_page(&mut self, page: u64, dirty: bool) -> Option<bool> {
        let is_it = |(cached, _): &(u64, bool)| *cached == page;
        if let Some(at) = self.kept.iter().position(is_it) {
            let (_, before) = self.kept.remove(at);
            self.kept.push((page, dirty || before));
            return Some(before);
        }
        let at = self.given_up.iter().position(is_it)?;
        let (_, before) = self.given_up.remove(at);
        self.give_one_up();
        self.changed(page);
        self.kept.push((page, dirty || before));
        Some(before)
    }

    fn collect(&mut self) -> bool {
        let kept_in = |model: &Self, block: usize| {
            let held = model.flash.blocks[block].iter().flatten();
            held.filter(|page| model.kept.iter().any(|(kept, _)| kept == *page)).count()
        };
        let full = self.flash.full.clone();
        let Some(fewest) = full.iter().map(|block| kept_in(self, *block)).min() else {
            return false;
        };
        if fewest == self.flash.block {
            return false;
        }
        let block = *full.iter().find(|block| kept_in(self, **block) == fewest).unwrap();
        let gone: Vec<u64> = {
            let held = self.flash.blocks[block].iter().flatten();
            held.filter(|page| self.given_up.iter().any(|(it, _)| it == *page)).copied().collect()
        };
        self.flash.erase(block, &mut self.counts, |page| !gone.contains(&page));
        for page in gone {
            let at = self.given_up.iter().position(|(it, _)| *it == page).unwrap();
            let (_, dirty) = self.given_up.remove(at);
            self.counts.flash_reads += u64::from(dirty);
            self.counts.disk_writes += u64::from(dirty);
            self.counts.seeks += u64::from(dirty);
        }
        true
    }

    fn program(&mut self, page: u64) {
        if self.flash.blocks[self.flash.current].len() == self.flash.block {
            self.flash.next_block();
            if self.flash.free.len() <= self.flash.low {
                while self.flash.free.len() < self.flash.high && self.collect() {}
            }
        }
        self.flash.push(page);
        self.counts.flash_sequential_writes += 1;
    }
}

impl Model for Late {
    fn step(&mut self, step: Step) -> Option<Found> {
        match step {
            Step::Read(page) => {
                self.counts.reads += 1;
                if self.use_page(page, false).is_some() {
                    self.counts.read_hits += 1;
                    self.counts.flash_reads += 1;
                    return Some(Found::Hit);
                }
                self.counts.disk_reads += 1;
                self.counts.seeks += 1;
                self.give_one_up();
                self.kept.push((page, false));
                self.program(page);
                Some(Found::Missed)
            }
            Step::Write(page) => {
                self.counts.writes += 1;
                if self.use_page(page, true).is_some() {
                    self.counts.write_hits += 1;
                    let place = self.flash.find(|held| *held == page).unwrap();
                    self.flash.void(place);
                } else {
                    self.give_one_up();
                    self.kept.push((page, true));
                }
                self.program(page);
                None
            }
            Step::Evict(_) => None,
        }
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        self.kept.iter().chain(&self.given_up).copied().collect()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }

    fn moved(&self) -> Option<&[usize]> {
        Some(&self.flash.moved)
    }
}

/// NFA: the content of a flash page is (page, dirty, last use).
pub(super) struct Blocks {
    flash: Flash<(u64, bool, u64)>,
    // Blocks, the most recently used at the end; and their times of last use.
    recency: Vec<usize>,
    used: Vec<u64>,
    threshold: u64,
    now: u64,
    counts: TierCounts,
}

impl Blocks {
    pub(super) fn new(block: usize, pages: usize) -> Self {
        let flash = Flash::new(block, pages);
        let blocks = flash.blocks.len();
        Blocks {
            flash,
            recency: (0..blocks).collect(),
            used: vec![0; blocks],
            threshold: 0,
            now: 0,
            counts: TierCounts::default(),
        }
    }

    fn use_block(&mut self, block: usize) {
        self.recency.retain(|other| *other != block);
        self.recency.push(block);
    }

    /// Algorithm 9.
    fn collect(&mut self) -> bool {
        let Some(mut block) = self.flash.garbage() else { return false };
        if self.flash.valid(block) == self.flash.block {
            let full = |block: &&usize| self.flash.full.contains(block);
            block = *self.recency.iter().find(full).unwrap();
            self.threshold = self.used[block];
        }
        let (threshold, mut home) = (self.threshold, 0);
        let moved: Vec<u64> = {
            let held = self.flash.blocks[block].iter().flatten();
            held.filter(|(_, _, used)| *used > threshold).map(|(page, _, _)| *page).collect()
        };
        self.flash.erase(block, &mut self.counts, |(_, dirty, used)| {
            home += u64::from(dirty && used <= threshold);
            used > threshold
        });
        self.counts.flash_reads += home;
        self.counts.disk_writes += home;
        self.counts.seeks += home;
        for page in moved {
            let (to, at) = self.flash.find(|(held, _, _)| *held == page).unwrap();
            let used = self.flash.blocks[to][at].unwrap().2;
            self.used[to] = self.used[to].max(used);
            self.use_block(to);
        }
        self.used[block] = 0;
        true
    }

    /// Algorithm 8.
    fn program(&mut self, page: u64, dirty: bool) {
        if self.flash.blocks[self.flash.current].len() == self.flash.block {
            self.flash.next_block();
            if self.flash.free.len() <= self.flash.low {
                while self.flash.free.len() < self.flash.high && self.collect() {}
            }
        }
        let current = self.flash.push((page, dirty, self.now));
        self.used[current] = self.now;
        self.use_block(current);
        self.counts.flash_sequential_writes += 1;
    }
}

impl Model for Blocks {
    fn step(&mut self, step: Step) -> Option<Found> {
        let (Step::Read(page) | Step::Write(page)) = step else { return None };
        self.now += 1;
        let place = self.flash.find(|(held, _, _)| *held == page);
        if let Step::Read(_) = step {
            self.counts.reads += 1;
            if let Some((block, at)) = place {
                self.counts.read_hits += 1;
                self.counts.flash_reads += 1;
                self.flash.blocks[block][at].as_mut().unwrap().2 = self.now;
                self.used[block] = self.now;
                self.use_block(block);
                return Some(Found::Hit);
            }
            self.counts.disk_reads += 1;
            self.counts.seeks += 1;
            self.program(page, false);
            return Some(Found::Missed);
        }
        self.counts.writes += 1;
        self.counts.write_hits += u64::from(place.is_some());
        if let Some(place) = place {
            self.flash.void(place);
        }
        self.program(page, true);
        None
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        let held = self.flash.blocks.iter().flatten().flatten();
        held.map(|(page, dirty, _)| (*page, *dirty)).collect()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }

    fn moved(&self) -> Option<&[usize]> {
        Some(&self.flash.moved)
    }
}
