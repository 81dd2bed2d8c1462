//! Compares LFU, LeCaR and CACHEUS with tables of pages with their use counts and times of last
//! use, in which everything is counted anew. Powers are the standard library's.
use super::{Model, Step, agree, evicts_its_candidates, steps};
use crate::{Effect, PolicySpec, Request, Workload};
use proptest::prelude::*;
use std::cmp::Reverse;
use tantalum_base::{PageNo, Rng};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Entry {
    page: PageNo,
    dirty: bool,
    uses: u64,
    last: usize,
    /// Whether it was used again since it came in, or returned.
    again: bool,
    evicted_at: usize,
}

impl Entry {
    fn new(request: Request, uses: u64, now: usize) -> Entry {
        let (page, dirty) = (request.page(), request.is_write());
        Entry { page, dirty, uses, last: now, again: uses > 1, evicted_at: 0 }
    }

    fn hit(&mut self, request: Request, now: usize) {
        self.dirty |= request.is_write();
        (self.uses, self.last, self.again) = (self.uses + 1, now, true);
    }
}

fn take(entries: &mut Vec<Entry>, page: PageNo) -> Option<Entry> {
    let at = entries.iter().position(|entry| entry.page == page)?;
    Some(entries.remove(at))
}

/// Lists of cached pages and of ghosts, oldest first; the first `cached` lists are those of the
/// cache.
struct Table {
    frames: usize,
    lists: Vec<Vec<Entry>>,
    cached: usize,
    now: usize,
}

impl Table {
    fn new(frames: u32, lists: usize, cached: usize) -> Table {
        Table { frames: frames as usize, lists: vec![Vec::new(); lists], cached, now: 0 }
    }

    fn pages(&self) -> Vec<Entry> {
        self.lists[..self.cached].concat()
    }

    fn is_full(&self) -> bool {
        self.pages().len() == self.frames
    }

    fn least_used_oldest(&self) -> Entry {
        *self.pages().iter().min_by_key(|entry| (entry.uses, entry.last)).unwrap()
    }

    fn least_used_newest(&self) -> Entry {
        *self.pages().iter().min_by_key(|entry| (entry.uses, Reverse(entry.last))).unwrap()
    }

    /// Evicts `victim`. It becomes a ghost in list `to`, which keeps `ghosts_max`.
    fn evict(&mut self, victim: Entry, to: Option<usize>, ghosts_max: usize) -> Effect {
        for list in &mut self.lists[..self.cached] {
            take(list, victim.page);
        }
        if let Some(to) = to {
            let ghosts = &mut self.lists[to];
            ghosts.push(Entry { dirty: false, evicted_at: self.now, ..victim });
            if ghosts.len() > ghosts_max {
                ghosts.remove(0);
            }
        }
        Effect::Evicted { page: victim.page, dirty: victim.dirty }
    }
}

/// The methods of a model that concern only its table.
macro_rules! of_table {
    () => {
        fn cleaned(&mut self, page: PageNo) {
            let cached = self.table.lists[..self.table.cached].iter_mut().flatten();
            for entry in cached.filter(|entry| entry.page == page) {
                entry.dirty = false;
            }
        }

        fn forget(&mut self, page: PageNo) -> bool {
            let lists = &mut self.table.lists[..self.table.cached];
            lists.iter_mut().any(|list| take(list, page).is_some())
        }

        fn pages(&self) -> Vec<(PageNo, bool)> {
            self.table.pages().iter().map(|entry| (entry.page, entry.dirty)).collect()
        }
    };
}

fn dirty_in_order<K: Ord>(mut entries: Vec<Entry>, key: impl Fn(&Entry) -> K) -> Vec<PageNo> {
    entries.sort_by_key(key);
    entries.iter().filter(|entry| entry.dirty).map(|entry| entry.page).collect()
}

struct NaiveLfu {
    table: Table,
}

impl Model for NaiveLfu {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        self.table.now += 1;
        let now = self.table.now;
        let mut pages = self.table.lists[0].iter_mut();
        if let Some(entry) = pages.find(|entry| entry.page == request.page()) {
            entry.hit(request, now);
            return (true, Vec::new());
        }
        let mut effects = Vec::new();
        if self.table.is_full() {
            let victim = self.table.least_used_oldest();
            effects.push(self.table.evict(victim, None, 0));
        }
        self.table.lists[0].push(Entry::new(request, 1, now));
        (false, effects)
    }

    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        Some(dirty_in_order(self.table.pages(), |entry| (entry.uses, entry.last)))
    }

    of_table!();
}

/// The weight of the LRU expert after one of the two experts was blamed.
fn blamed(lru: f64, is_lru: bool, regret: f64) -> f64 {
    let (mut lru, mut lfu) = (lru, 1.0 - lru);
    // As in the paper of LeCaR: the weight of the other expert grows.
    if is_lru {
        lfu *= regret.exp();
    } else {
        lru *= regret.exp();
    }
    (lru / (lru + lfu)).clamp(0.01, 0.99)
}

struct NaiveLecar {
    table: Table,
    history_max: usize,
    rate: f64,
    lru_weight: f64,
    rng: Rng,
}

impl NaiveLecar {
    fn new(frames: u32, history: f64, rate: f64) -> NaiveLecar {
        NaiveLecar {
            table: Table::new(frames, 3, 1),
            history_max: (f64::from(frames) * history) as usize,
            rate,
            lru_weight: 0.5,
            rng: Rng::split(7, "lecar"),
        }
    }
}

impl Model for NaiveLecar {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        self.table.now += 1;
        let now = self.table.now;
        if let Some(mut entry) = take(&mut self.table.lists[0], request.page()) {
            entry.hit(request, now);
            self.table.lists[0].push(entry);
            return (true, Vec::new());
        }
        let mut uses = 1;
        for history in [1, 2] {
            if let Some(ghost) = take(&mut self.table.lists[history], request.page()) {
                let discount = 0.005f64.powf(1.0 / self.table.frames as f64);
                let regret = self.rate * discount.powf((now - ghost.evicted_at) as f64);
                self.lru_weight = blamed(self.lru_weight, history == 1, regret);
                uses = ghost.uses + 1;
            }
        }
        let mut effects = Vec::new();
        if self.table.is_full() {
            let (victim, to) = if self.rng.unit() < self.lru_weight {
                (self.table.lists[0][0], 1)
            } else {
                (self.table.least_used_oldest(), 2)
            };
            effects.push(self.table.evict(victim, Some(to), self.history_max));
        }
        self.table.lists[0].push(Entry::new(request, uses, now));
        (false, effects)
    }

    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        let is_frequency = self.lru_weight < 0.49;
        let uses = |entry: &Entry| if is_frequency { entry.uses } else { 0 };
        Some(dirty_in_order(self.table.pages(), |entry| (uses(entry), entry.last)))
    }

    of_table!();
}

const SR: usize = 0;
const R: usize = 1;
const H_SR_LRU: usize = 2;
const H_CR_LFU: usize = 3;

struct NaiveCacheus {
    table: Table,
    /// The paper's size of SR; R has the rest.
    sr_size: i64,
    lru_weight: f64,
    /// The learning rate now and a window ago.
    rates: (f64, f64),
    hit_ratio: f64,
    hits: usize,
    unlearned: u32,
    rng: Rng,
}

impl NaiveCacheus {
    fn new(frames: u32) -> NaiveCacheus {
        let mut rng = Rng::split(7, "cacheus");
        let rate = 0.001 + 0.999 * rng.unit();
        NaiveCacheus {
            table: Table::new(frames, 4, 2),
            sr_size: i64::from(frames / 100).max(1),
            lru_weight: 0.5,
            rates: (rate, 0.0),
            hit_ratio: 0.0,
            hits: 0,
            unlearned: 0,
            rng,
        }
    }

    fn demoted(&self) -> f64 {
        self.table.lists[SR].iter().filter(|entry| entry.again).count() as f64
    }

    fn new_ghosts(&self) -> f64 {
        self.table.lists[H_SR_LRU].iter().filter(|entry| !entry.again).count() as f64
    }

    /// The new size of SR, at least one page; R has at least one, too, if there are two.
    fn resize(&mut self, by: f64) {
        let frames = self.table.frames as i64;
        self.sr_size = (self.sr_size + by as i64).min(frames - 1).max(1);
    }

    fn push_r(&mut self, entry: Entry) {
        self.table.lists[R].push(entry);
        while self.table.lists[R].len() as i64 > self.table.frames as i64 - self.sr_size {
            let demoted = self.table.lists[R].remove(0);
            self.table.lists[SR].push(demoted);
        }
    }

    fn hit(&mut self, request: Request) -> bool {
        let now = self.table.now;
        let from_sr = take(&mut self.table.lists[SR], request.page());
        if let Some(mut entry) = from_sr {
            if entry.again {
                let demoted = self.demoted() + 1.0;
                self.resize(-(self.new_ghosts() / demoted).round().max(1.0));
            }
            entry.hit(request, now);
            self.push_r(entry);
            return true;
        }
        let Some(mut entry) = take(&mut self.table.lists[R], request.page()) else { return false };
        entry.hit(request, now);
        self.table.lists[R].push(entry);
        true
    }

    fn miss(&mut self, request: Request) -> Vec<Effect> {
        let mut uses = 0;
        if let Some(ghost) = take(&mut self.table.lists[H_SR_LRU], request.page()) {
            self.lru_weight = blamed(self.lru_weight, true, self.rates.0);
            if !ghost.again {
                let new_ghosts = self.new_ghosts() + 1.0;
                self.resize((self.demoted() / new_ghosts).round().max(1.0));
            }
            uses = ghost.uses;
        } else if let Some(ghost) = take(&mut self.table.lists[H_CR_LFU], request.page()) {
            self.lru_weight = blamed(self.lru_weight, false, self.rates.0);
            uses = ghost.uses;
        }
        let mut effects = Vec::new();
        if self.table.is_full() {
            effects.push(self.evict());
        }
        let entry = Entry::new(request, uses + 1, self.table.now);
        match uses {
            0 => self.table.lists[SR].push(entry),
            _ => self.push_r(entry),
        }
        effects
    }

    fn evict(&mut self) -> Effect {
        let lru = *self.table.lists[SR].first().unwrap_or_else(|| &self.table.lists[R][0]);
        let lfu = self.table.least_used_newest();
        let ghosts_max = self.table.frames / 2;
        if lru == lfu {
            self.table.evict(lru, None, 0)
        } else if self.rng.unit() < self.lru_weight {
            self.table.evict(lru, Some(H_SR_LRU), ghosts_max)
        } else {
            self.table.evict(lfu, Some(H_CR_LFU), ghosts_max)
        }
    }

    fn end_window(&mut self) {
        let hit_ratio = self.hits as f64 / self.table.frames as f64;
        let (gain, change) = (hit_ratio - self.hit_ratio, self.rates.0 - self.rates.1);
        (self.hit_ratio, self.hits) = (hit_ratio, 0);
        let mut rate = self.rates.0;
        if change.abs() >= 0.001 {
            let sign = if gain / change > 0.0 { 1.0 } else { -1.0 };
            rate = (rate + sign * (rate * change).abs()).clamp(0.001, 1.0);
            self.unlearned = 0;
        } else if hit_ratio == 0.0 || gain <= 0.0 {
            self.unlearned += 1;
        }
        if self.unlearned == 10 {
            self.unlearned = 0;
            rate = 0.001 + 0.999 * self.rng.unit();
        }
        self.rates = (rate, self.rates.0);
    }
}

impl Model for NaiveCacheus {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        self.table.now += 1;
        let hit = self.hit(request);
        let effects = if hit { Vec::new() } else { self.miss(request) };
        self.hits += usize::from(hit);
        if self.table.now.is_multiple_of(self.table.frames) {
            self.end_window();
        }
        (hit, effects)
    }

    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        let pages = self.table.pages();
        Some(if self.lru_weight < 0.49 {
            dirty_in_order(pages, |entry| (entry.uses, Reverse(entry.last)))
        } else {
            // Both lists in their order, SR first.
            dirty_in_order(pages, |_| 0)
        })
    }

    of_table!();
}

/// The gauges of the policy made from `text` after `steps`.
fn gauges(text: &str, frames: u32, steps: &[Step]) -> Vec<f64> {
    let workload = Workload { pages_end: u64::MAX, future: &[] };
    let mut policy = PolicySpec::parse(text).unwrap().build(frames, workload).unwrap();
    for &step in steps {
        match step {
            Step::Access(request) => _ = policy.access(request, &mut Vec::new()),
            Step::Cleaned(page) => policy.cleaned(page),
            Step::Forget(page) => _ = policy.forget(page),
        }
    }
    policy.gauges().iter().map(|gauge| gauge.value).collect()
}

/// Applies `steps` to `model`.
fn follow(model: &mut impl Model, steps: &[Step]) {
    for &step in steps {
        match step {
            Step::Access(request) => _ = model.access(request),
            Step::Cleaned(page) => model.cleaned(page),
            Step::Forget(page) => _ = model.forget(page),
        }
    }
}

proptest! {
    #[test]
    fn lfu_decides_as_its_naive_form(frames in 1u32..12, steps in steps(24)) {
        agree("lfu", frames, 24, &mut NaiveLfu { table: Table::new(frames, 1, 1) }, &steps);
        evicts_its_candidates("lfu", frames, &steps, false);
    }

    #[test]
    fn lecar_decides_as_its_naive_form(
        frames in 1u32..12,
        history in prop::sample::select(vec![0.0, 0.5, 1.0, 2.0]),
        rate in prop::sample::select(vec![0.0, 0.45, 1.0]),
        steps in steps(30),
    ) {
        let text = format!("lecar:rate={rate},history={history},seed=7");
        agree(&text, frames, 30, &mut NaiveLecar::new(frames, history, rate), &steps);
        let mut naive = NaiveLecar::new(frames, history, rate);
        follow(&mut naive, &steps);
        let found = gauges(&text, frames, &steps);
        prop_assert!((found[0] - naive.lru_weight).abs() < 1e-9, "{:?}", found);
    }

    #[test]
    fn cacheus_decides_as_its_naive_form(frames in 1u32..16, steps in steps(36)) {
        agree("cacheus:seed=7", frames, 36, &mut NaiveCacheus::new(frames), &steps);
        let mut naive = NaiveCacheus::new(frames);
        follow(&mut naive, &steps);
        let expected = [naive.lru_weight, naive.rates.0, f64::from(frames) - naive.sr_size as f64];
        for (found, expected) in gauges("cacheus:seed=7", frames, &steps).iter().zip(expected) {
            prop_assert!((found - expected).abs() < 1e-9, "{} is not {}", found, expected);
        }
    }
}

/// Hits in a loop over `pages` in a cache of 50 pages.
fn hits_of_loop(text: &str, pages: u64) -> usize {
    let workload = Workload { pages_end: pages, future: &[] };
    let mut policy = PolicySpec::parse(text).unwrap().build(50, workload).unwrap();
    let requests = (0..100 * pages).map(|at| Request::new(PageNo(at % pages), false));
    requests.filter(|&request| policy.access(request, &mut Vec::new())).count()
}

/// The purpose of CR-LFU: on a loop longer than the cache LRU has no hit, and neither has LFU, as
/// all pages have one use. Evicting the most recently used of these is better, and the weights learn
/// that.
#[test]
fn a_loop_longer_than_the_cache_is_learned() {
    assert_eq!(hits_of_loop("lru", 60), 0);
    assert_eq!(hits_of_loop("lfu", 60), 0);
    let cacheus = hits_of_loop("cacheus", 60);
    assert!(cacheus > 60 * 100 * 6 / 10, "CACHEUS hits {cacheus} of 6000, of 5000 at best");
}
