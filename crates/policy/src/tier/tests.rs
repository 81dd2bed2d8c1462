//! Each tier beside a naive one that follows its source line by line over a plain `Vec`: the same pages, the
//! same counts, step by step, over both page tables.
use super::{Admission, Found, TierCounts, TierSpec};
use crate::page_table::{DirectTable, SparseTable};
use proptest::prelude::*;
use tantalum_base::PageNo;

/// What the top tier asks for.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u64),
    Write(u64),
    Evict(u64),
}

fn steps(pages: u64) -> impl Strategy<Value = Vec<Step>> {
    let page = prop_oneof![0..pages, 0..pages.div_ceil(5)];
    let step = (page, 0..5_u8).prop_map(|(page, kind)| match kind {
        0 | 1 => Step::Read(page),
        2 | 3 => Step::Write(page),
        _ => Step::Evict(page),
    });
    prop::collection::vec(step, 1..400)
}

/// A naive tier.
trait Model {
    fn step(&mut self, step: Step) -> Option<Found>;
    /// Cached pages, and whether each is dirty, in any order.
    fn pages(&self) -> Vec<(u64, bool)>;
    fn counts(&self) -> TierCounts;
}

fn agree(text: &str, slots: u32, pages: u64, model: &mut impl Model, steps: &[Step]) {
    let spec = TierSpec::parse(text).unwrap();
    let mut tiers = [
        spec.build_over::<DirectTable>(slots, pages),
        spec.build_over::<SparseTable>(slots, u64::MAX),
    ];
    for (at, step) in steps.iter().enumerate() {
        let expected = model.step(*step);
        let cached = model.pages();
        for tier in &mut tiers {
            let found = match *step {
                Step::Read(page) => Some(tier.read(PageNo(page))),
                Step::Write(page) => {
                    tier.write(PageNo(page));
                    None
                }
                Step::Evict(page) => {
                    tier.evict(PageNo(page));
                    None
                }
            };
            assert_eq!(found, expected, "{text}, step {at}: {step:?}");
            assert_eq!(*tier.counts(), model.counts(), "{text}, step {at}: {step:?}");
            for page in 0..pages {
                let expected = cached.iter().any(|(cached, _)| *cached == page);
                assert_eq!(tier.contains(PageNo(page)), expected, "{text}, step {at}: page {page}");
            }
            let dirty = cached.iter().filter(|(_, dirty)| *dirty).count() as u64;
            assert_eq!(tier.dirty_pages(), dirty, "{text}, step {at}: {step:?}");
            tier.validate();
        }
    }
    for tier in &mut tiers {
        let (dirty, before) = (tier.dirty_pages(), tier.counts().disk_writes);
        tier.flush();
        assert_eq!((tier.dirty_pages(), tier.counts().disk_writes), (0, before + dirty));
    }
}

/// Slots in a list, those used last at its end. Tracks leave as a whole.
struct Naive {
    slots: usize,
    admission: Admission,
    densest: bool,
    coalesce: bool,
    piggyback: bool,
    track: u64,
    // (page, dirty), in the order of the last use of their unit.
    pages: Vec<(u64, bool)>,
    // Units in the order of their last use, or, where the densest leaves, of their last change.
    units: Vec<u64>,
    counts: TierCounts,
}

impl Naive {
    fn unit(&self, page: u64) -> u64 {
        if self.coalesce { page / self.track } else { page }
    }

    fn at(&self, page: u64) -> Option<usize> {
        self.pages.iter().position(|(cached, _)| *cached == page)
    }

    fn used(&mut self, unit: u64) {
        self.units.retain(|other| *other != unit);
        self.units.push(unit);
    }

    fn density(&self, unit: u64) -> usize {
        self.pages.iter().filter(|(page, _)| self.unit(*page) == unit).count()
    }

    fn admit(&mut self, page: u64, dirty: bool) {
        if self.pages.len() == self.slots {
            let victim = if self.densest {
                let most = self.units.iter().map(|unit| self.density(*unit)).max().unwrap();
                *self.units.iter().find(|unit| self.density(**unit) == most).unwrap()
            } else {
                self.units[0]
            };
            let gone: Vec<_> =
                self.pages.iter().copied().filter(|(page, _)| self.unit(*page) == victim).collect();
            let dirty = gone.iter().filter(|(_, dirty)| *dirty).count() as u64;
            self.counts.flash_reads += dirty;
            self.counts.disk_writes += dirty;
            self.counts.seeks += u64::from(dirty > 0);
            self.pages.retain(|page| !gone.contains(page));
            self.units.retain(|unit| *unit != victim);
        }
        self.pages.push((page, dirty));
        self.used(self.unit(page));
        self.counts.flash_random_writes += 1;
    }
}

impl Model for Naive {
    fn step(&mut self, step: Step) -> Option<Found> {
        match step {
            Step::Read(page) => {
                self.counts.reads += 1;
                if let Some(at) = self.at(page) {
                    self.counts.read_hits += 1;
                    self.counts.flash_reads += 1;
                    let unit = self.unit(page);
                    if self.admission != Admission::Eviction {
                        if !self.densest {
                            self.used(unit);
                        }
                        return Some(Found::Hit);
                    }
                    let (_, dirty) = self.pages.remove(at);
                    if self.density(unit) == 0 {
                        self.units.retain(|other| *other != unit);
                    } else if self.densest {
                        self.used(unit);
                    }
                    return Some(Found::Taken { dirty });
                }
                self.counts.disk_reads += 1;
                self.counts.seeks += 1;
                if self.piggyback {
                    let track = page / self.track;
                    for (page, dirty) in &mut self.pages {
                        if *page / self.track == track && std::mem::take(dirty) {
                            self.counts.flash_reads += 1;
                            self.counts.disk_writes += 1;
                        }
                    }
                }
                if self.admission == Admission::Read {
                    self.admit(page, false);
                }
                Some(Found::Missed)
            }
            Step::Write(page) => {
                self.counts.writes += 1;
                if let Some(at) = self.at(page) {
                    self.counts.write_hits += 1;
                    self.counts.flash_random_writes += 1;
                    self.pages[at].1 = true;
                    if !self.densest {
                        self.used(self.unit(page));
                    }
                } else if self.admission == Admission::Read {
                    self.counts.disk_writes += 1;
                    self.counts.seeks += 1;
                } else {
                    self.admit(page, true);
                }
                None
            }
            Step::Evict(page) => {
                if self.admission == Admission::Eviction && self.at(page).is_none() {
                    self.admit(page, false);
                }
                None
            }
        }
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        self.pages.clone()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }
}

const ADMISSIONS: [(&str, Admission); 3] =
    [("write", Admission::Write), ("read", Admission::Read), ("eviction", Admission::Eviction)];

#[test]
fn without_a_tier_every_request_goes_home() {
    let mut tier = TierSpec::parse("none").unwrap().build(10, 100);
    for page in [1, 1, 2] {
        assert_eq!(tier.read(PageNo(page)), Found::Missed);
        tier.write(PageNo(page));
    }
    let expected = TierCounts {
        reads: 3,
        writes: 3,
        disk_reads: 3,
        disk_writes: 3,
        seeks: 6,
        ..TierCounts::default()
    };
    assert_eq!((*tier.counts(), tier.contains(PageNo(1))), (expected, false));
}

proptest! {
    #[test]
    fn random_write_is_as_in_the_paper(
        steps in steps(40), slots in 1..12_u32, admission in 0..3_usize,
        coalesce: bool, dense: bool, piggyback: bool, track in 1..9_u64,
    ) {
        let (admit, admission) = ADMISSIONS[admission];
        let densest = coalesce && dense;
        let mut model = Naive {
            slots: slots as usize, admission, densest, coalesce, piggyback, track,
            pages: Vec::new(), units: Vec::new(), counts: TierCounts::default(),
        };
        let switch = |on: bool| if on { "on" } else { "off" };
        let text = format!(
            "write_cache:admit={admit},order={},coalesce={},piggyback={},track={track}",
            if densest { "densest" } else { "lru" }, switch(coalesce), switch(piggyback),
        );
        agree(&text, slots, 40, &mut model, &steps);
    }

    #[test]
    fn sequential_write_is_as_in_the_paper(
        steps in steps(40), slots in 1..12_usize, admission in 0..3_usize,
        coalesce: bool, piggyback: bool, track in 1..9_u64,
    ) {
        let (admit, admission) = ADMISSIONS[admission];
        let counts = TierCounts::default();
        let mut model = Ring {
            slots: vec![None; slots], next: 0, admission, coalesce, piggyback, track, counts,
        };
        let switch = |on: bool| if on { "on" } else { "off" };
        let text = format!(
            "write_cache:place=sequential,admit={admit},coalesce={},piggyback={},track={track}",
            switch(coalesce), switch(piggyback),
        );
        agree(&text, slots as u32, 40, &mut model, &steps);
    }

    #[test]
    fn the_indirect_use_is_as_in_the_dissertation(
        steps in steps(60), deletes in 0..8_usize, block in 1..6_u32,
    ) {
        let mut model = Slots::new(deletes, block as usize, 20);
        let text = format!("lpd:d={deletes},block={block},low=0.1,high=0.2");
        agree(&text, 20, 60, &mut model, &steps);
    }

    #[test]
    fn the_native_use_is_as_in_the_dissertation(steps in steps(60), block in 1..6_u32) {
        let mut model = Blocks::new(block as usize, 20);
        let text = format!("nfa:block={block},low=0.1,high=0.2");
        agree(&text, 20, 60, &mut model, &steps);
    }
}

/// Slots that are written in a ring.
struct Ring {
    slots: Vec<Option<(u64, bool)>>,
    next: usize,
    admission: Admission,
    coalesce: bool,
    piggyback: bool,
    track: u64,
    counts: TierCounts,
}

impl Ring {
    fn at(&self, page: u64) -> Option<usize> {
        self.slots.iter().position(|slot| slot.is_some_and(|(cached, _)| cached == page))
    }

    fn clean(&mut self, is_meant: impl Fn(u64) -> bool) -> u64 {
        let dirty =
            self.slots.iter_mut().flatten().filter(|(page, dirty)| *dirty && is_meant(*page));
        let cleaned = dirty.map(|(_, dirty)| *dirty = false).count() as u64;
        self.counts.flash_reads += cleaned;
        self.counts.disk_writes += cleaned;
        cleaned
    }

    fn put(&mut self, page: u64, dirty: bool) {
        if let Some(old) = self.at(page) {
            self.slots[old] = None;
        }
        if let Some((leaving, true)) = self.slots[self.next] {
            let (coalesce, track) = (self.coalesce, self.track);
            self.clean(|page| page == leaving || coalesce && page / track == leaving / track);
            self.counts.seeks += 1;
        }
        self.slots[self.next] = Some((page, dirty));
        self.next = (self.next + 1) % self.slots.len();
        self.counts.flash_sequential_writes += 1;
    }
}

impl Model for Ring {
    fn step(&mut self, step: Step) -> Option<Found> {
        match step {
            Step::Read(page) => {
                self.counts.reads += 1;
                if let Some(at) = self.at(page) {
                    self.counts.read_hits += 1;
                    self.counts.flash_reads += 1;
                    if self.admission != Admission::Eviction {
                        return Some(Found::Hit);
                    }
                    let dirty = self.slots[at].take().is_some_and(|(_, dirty)| dirty);
                    return Some(Found::Taken { dirty });
                }
                self.counts.disk_reads += 1;
                self.counts.seeks += 1;
                if self.piggyback {
                    let track = self.track;
                    self.clean(|other| other / track == page / track);
                }
                if self.admission == Admission::Read {
                    self.put(page, false);
                }
                return Some(Found::Missed);
            }
            Step::Write(page) => {
                self.counts.writes += 1;
                let hit = self.at(page).is_some();
                self.counts.write_hits += u64::from(hit);
                if self.admission == Admission::Read && !hit {
                    self.counts.disk_writes += 1;
                    self.counts.seeks += 1;
                } else {
                    self.put(page, true);
                }
            }
            Step::Evict(page) => {
                if self.admission == Admission::Eviction && self.at(page).is_none() {
                    self.put(page, false);
                }
            }
        }
        None
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        self.slots.iter().flatten().copied().collect()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }
}

/// Blocks of flash pages, each page with what it holds, where that is valid.
struct Flash<C> {
    blocks: Vec<Vec<Option<C>>>,
    free: Vec<usize>,
    // Blocks that are full, in the order in which their number of valid pages last changed.
    full: Vec<usize>,
    current: usize,
    block: usize,
    low: usize,
    high: usize,
}

impl<C: Copy> Flash<C> {
    /// As large as a cache of `pages` takes, a tenth of the blocks free at least and a fifth at the most.
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

    /// Writes to the current block, or, where that is full, to the next free one.
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

    /// Moves what `keep` gives of each valid page of the block, and erases it.
    fn erase(&mut self, block: usize, counts: &mut TierCounts, mut keep: impl FnMut(C) -> bool) {
        self.full.retain(|full| *full != block);
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
    }
}

/// LPD: slots in LRU order, over flash.
struct Slots {
    deletes: usize,
    slots: usize,
    // (page, dirty), used last at the end.
    pages: Vec<(u64, bool)>,
    flash: Flash<u64>,
    counts: TierCounts,
}

impl Slots {
    fn new(deletes: usize, block: usize, pages: usize) -> Self {
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

    /// The page is used, and written to flash where `programs`.
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

    /// The coldest leaves its slot to a new page, and some go with it.
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
        // The slot's old content is void when the new one is written, behind the deletions.
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
}

/// NFA: what a flash page holds is (page, dirty, last use).
struct Blocks {
    flash: Flash<(u64, bool, u64)>,
    // Blocks, those used last at the end; and when.
    recency: Vec<usize>,
    used: Vec<u64>,
    threshold: u64,
    now: u64,
    counts: TierCounts,
}

impl Blocks {
    fn new(block: usize, pages: usize) -> Self {
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
}
