//! LeCaR: two experts, LRU and LFU, choose the victims, each time by chance. If a victim is
//! requested again, and soon, the expert that chose it is asked less often.
//!
//! Source: Vietri, Rodriguez, Martinez, Lyons, Liu, Rangaswami, Zhao, Narasimhan, "Driving cache
//! replacement with ML-based LeCaR", HotStorage 2018, algorithms 1 and 2. A page that one expert
//! evicted is remembered in that expert's history. If it is requested after t requests, the weight
//! of the other expert is multiplied by e^(rate · d^t), where d is 0.005^(1/N) for a cache of N
//! pages. Here the weight of the expert itself is divided by that factor, which is the same once
//! the weights add up to 1. The defaults of the learning rate and of the length of the histories,
//! each as long as the cache, are the paper's.
//!
//! Points that the paper leaves open are as in a program of its authors: a page that returns from a
//! history keeps its former use count, plus the new use; a weight stays between 0.01 and 0.99. Of
//! pages used equally often, LFU evicts the least recently used one.
//!
//! Weak on scans, against which neither expert helps, and if the better expert changes often. The
//! choice depends on the seed. It remembers twice as many pages as it caches. When a page returns,
//! its place in the order of uses is found by a walk over the lower counts. Blind to the cost of
//! writing back.
use crate::answers::answers_of;
use crate::expert_weights::{ExpertWeights, exp_of_minus};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Gauge, Policy, Request};
use crate::registry::PolicySpec;
use crate::use_order::UseOrder;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// Cached.
const CACHED: u32 = 0;
/// Evicted by LRU's choice, remembered. Number 1 is that of a second list of cached pages.
const BY_LRU: u32 = 2;
/// Evicted by LFU's choice, remembered.
const BY_LFU: u32 = 3;

/// Sets the discount for a page that was evicted as many requests ago as the cache has pages: 0.005
/// is e^-this.
const DISCOUNT: f64 = 5.298_317_366_548_036;

/// The options of LeCaR.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LecarOptions {
    /// Learning rate, 0 to 1.
    pub rate: f64,
    /// Length of each expert's history, as a multiple of the cache size, 0 to 2.
    pub history: f64,
    /// Seed of the choices between the experts.
    pub seed: u64,
}

impl LecarOptions {
    /// Takes the options from `spec`.
    pub(crate) fn take(spec: &mut Spec) -> Result<LecarOptions> {
        Ok(LecarOptions {
            rate: spec.number("rate", 0.0..=1.0, 0.45)?,
            history: spec.number("history", 0.0..=2.0, 1.0)?,
            seed: spec.count("seed", 0..=u64::MAX, 0)?,
        })
    }
}

/// Two experts with their histories.
#[derive(Debug)]
pub struct Lecar<T> {
    /// The cached pages in the order of last use, the histories in that of eviction.
    lists: FrameLists<T>,
    /// The cached pages in the order of uses. It also keeps the counts of remembered pages.
    order: UseOrder,
    /// The request at which each remembered page was evicted.
    evicted_at: Vec<u64>,
    weights: ExpertWeights,
    rng: Rng,
    capacity: u32,
    /// Maximum number of pages in each history.
    history_max: u32,
    rate: f64,
    /// Requests so far.
    now: u64,
}

impl<T: PageTable> Lecar<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64, options: LecarOptions) -> Self {
        let LecarOptions { rate, history, seed } = options;
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        assert!((0.0..=1.0).contains(&rate) && (0.0..=2.0).contains(&history), "{options:?}");
        let history_max = (f64::from(frames) * history) as u32;
        let lists = FrameLists::new(4, frames + 2 * history_max, pages_end);
        Lecar {
            order: UseOrder::new(frames, lists.frames_end()),
            evicted_at: vec![0; lists.frames_end()],
            lists,
            weights: ExpertWeights::new(),
            rng: Rng::split(seed, "lecar"),
            capacity: frames,
            history_max,
            rate,
            now: 0,
        }
    }

    /// The page in `frame`, which is in a history, is requested again: the expert that chose it is
    /// blamed. The page leaves the history. Returns its former use count.
    fn regret(&mut self, frame: u32) -> u64 {
        let time = (self.now - self.evicted_at[frame as usize]) as f64;
        let regret = self.rate * exp_of_minus(DISCOUNT * time / f64::from(self.capacity));
        if self.lists.list_of(frame) == BY_LRU {
            self.weights.blame_lru(regret);
        } else {
            self.weights.blame_lfu(regret);
        }
        self.lists.remove(frame);
        self.order.count(frame)
    }

    /// Makes room for a page.
    fn evict(&mut self, effects: &mut Vec<Effect>) {
        if self.lists.cached() < self.capacity {
            return;
        }
        let (victim, history) = if self.rng.chance(self.weights.lru()) {
            (self.lists.tail(CACHED), BY_LRU)
        } else {
            (self.order.least_oldest(), BY_LFU)
        };
        self.order.remove(victim);
        self.evicted_at[victim as usize] = self.now;
        effects.push(self.lists.evict_to(victim, history, self.history_max));
    }
}

impl<T: PageTable> Policy for Lecar<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        self.now += 1;
        let frame = self.lists.find(request.page());
        if frame != NO_FRAME && self.lists.list_of(frame) == CACHED {
            self.lists.key_mut(frame).touch(request);
            self.lists.move_to_head(frame, CACHED);
            self.order.used(frame);
            return true;
        }
        let uses = if frame == NO_FRAME { 0 } else { self.regret(frame) };
        self.evict(effects);
        let frame = self.lists.push(request, CACHED);
        self.order.insert(frame, uses + 1);
        false
    }

    answers_of!(lists: contains_cached cleaned dirty_pages);

    /// The order in which the more trusted expert would choose the pages.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        if self.weights.prefer_lfu() {
            self.lists.dirty_of(self.order.least_first(), pages_max, pages);
        } else {
            self.lists.dirty_of(self.lists.oldest_first(CACHED), pages_max, pages);
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.lists.find_cached(page);
        if frame != NO_FRAME {
            self.order.remove(frame);
            self.lists.remove(frame);
        }
        frame != NO_FRAME
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::new("lru_weight", self.weights.lru())]
    }

    fn memory_bytes(&self) -> u64 {
        let times = (self.evicted_at.len() * size_of::<u64>()) as u64;
        self.lists.memory_bytes() + self.order.memory_bytes() + times
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        assert_eq!(self.order.validate(), self.lists.len(CACHED), "not all are in both orders");
        assert!(self.order.least_first().all(|frame| self.lists.list_of(frame) == CACHED));
        assert!(self.lists.cached() <= self.capacity, "more pages than frames");
        for history in [BY_LRU, BY_LFU] {
            assert!(self.lists.len(history) <= self.history_max, "a history is too long");
            let mut ghosts = self.lists.oldest_first(history);
            assert!(ghosts.all(|frame| !self.lists.key(frame).is_dirty()));
        }
    }
}
