//! CACHEUS: two experts, an LRU that resists scans and an LFU that resists loops, choose the victims.
//! Each choice is by chance. If a victim is requested again, the expert that chose it is asked less
//! often.
//!
//! Source: Rodriguez, Yusuf, Lyons, Paz, Rangaswami, Liu, Zhao, Narasimhan, "Learning cache replacement
//! with CACHEUS", FAST 2021: the weights, the learning rate and the two experts.
//!
//! - **SR-LRU** keeps the pages that were used again in R and all others in SR, and evicts from SR
//!   only. Pages for which R has no room are demoted to SR. If a demoted page is used, R is too
//!   small; if a page is requested again that was evicted without a second use, SR is too small. The
//!   share moves by max(1, ratio of the numbers of such pages).
//! - **CR-LFU** evicts the page used least often, and of several the one used last, so that some
//!   pages of a loop longer than the cache stay.
//! - If both choose the same page, neither is to blame, and the page is not remembered. Each
//!   expert's history remembers half as many pages as are cached.
//! - When a page of a history comes back, the weight of the expert that evicted it is multiplied by
//!   e^-rate. The learning rate changes once per as many requests as there are frames.
//!
//! Implementations differ on points that the paper leaves open. Here SR has a hundredth of the
//! cache at first and a weight stays between 0.01 and 0.99, as in its authors' program; ratios are
//! rounded to whole pages; a page that comes back keeps its former use count, plus the new use.
//!
//! Weak if the better expert changes often, and in small caches, whose history is short. The choice
//! depends on the seed. When a page comes back, its place in the order of uses is found by a walk
//! over the lower counts. Blind to the cost of writing back.
mod learning_rate;

use crate::answers::answers_of;
use crate::expert_weights::ExpertWeights;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Gauge, Policy, Request};
use crate::registry::PolicySpec;
use crate::use_order::UseOrder;
use learning_rate::LearningRate;
use tantalum_base::{PageNo, Rng};

/// Cached: new pages, and those demoted from R, which are marked.
const SR: u32 = 0;
/// Cached: pages used again since they came in, or returned from a history. All are marked.
const R: u32 = 1;
/// Evicted by SR-LRU's choice, remembered; marked if they were used again while cached.
const BY_LRU: u32 = 2;
/// Evicted by CR-LFU's choice, remembered.
const BY_LFU: u32 = 3;

/// Two experts with their histories.
#[derive(Debug)]
pub struct Cacheus<T> {
    /// SR and R in the order of arrival or last use, the histories in that of eviction.
    lists: FrameLists<T>,
    /// The cached pages in the order of uses. It also keeps the counts of remembered pages.
    order: UseOrder,
    weights: ExpertWeights,
    rate: LearningRate,
    rng: Rng,
    capacity: u32,
    /// Maximum number of pages in each history.
    history_max: u32,
    /// Maximum number of pages in R; the rest of the cache is SR's share.
    reused_max: u32,
    /// Demoted pages in SR.
    demoted: u32,
    /// Pages in SR-LRU's history that were not used a second time while cached.
    new_ghosts: u32,
}

/// The amount by which a share moves: the ratio of `other` to `own`, rounded, at least 1.
fn step(other: u32, own: u32) -> u32 {
    let (other, own) = (u64::from(other), u64::from(own));
    ((2 * other + own) / (2 * own)).max(1) as u32
}

impl<T: PageTable> Cacheus<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`; `seed` determines the
    /// choices between the experts and the learning rate.
    pub fn new(frames: u32, pages_end: u64, seed: u64) -> Self {
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        let history_max = frames / 2;
        let lists = FrameLists::new(4, frames + 2 * history_max, pages_end);
        let mut rng = Rng::split(seed, "cacheus");
        Cacheus {
            order: UseOrder::new(frames, lists.frames_end()),
            lists,
            weights: ExpertWeights::new(),
            rate: LearningRate::new(frames, &mut rng),
            rng,
            capacity: frames,
            history_max,
            reused_max: frames - (frames / 100).max(1),
            demoted: 0,
            new_ghosts: 0,
        }
    }

    /// A page in SR is used: it moves to R.
    fn used_in_sr(&mut self, frame: u32) {
        if self.lists.key(frame).is_marked() {
            let step = step(self.new_ghosts, self.demoted);
            self.reused_max = (self.reused_max + step).min(self.capacity - 1);
            self.demoted -= 1;
        }
        self.lists.key_mut(frame).mark();
        self.lists.move_to_head(frame, R);
        self.demote();
    }

    /// Demotes pages for which R has no room to SR.
    fn demote(&mut self) {
        while self.lists.len(R) > self.reused_max {
            self.lists.move_to_head(self.lists.tail(R), SR);
            self.demoted += 1;
        }
    }

    /// The page in `frame`, which is in a history, is requested again: the expert that chose it is
    /// blamed. The page leaves the history. Returns its former use count.
    fn regret(&mut self, frame: u32) -> u64 {
        if self.lists.list_of(frame) == BY_LFU {
            self.weights.blame_lfu(self.rate.get());
        } else {
            self.weights.blame_lru(self.rate.get());
            if !self.lists.key(frame).is_marked() {
                let step = step(self.demoted, self.new_ghosts);
                let least = 1.min(self.capacity - 1);
                self.reused_max = self.reused_max.saturating_sub(step).max(least);
            }
        }
        self.drop_ghost(frame);
        self.order.count(frame)
    }

    fn drop_ghost(&mut self, frame: u32) {
        let is_new = self.lists.list_of(frame) == BY_LRU && !self.lists.key(frame).is_marked();
        self.new_ghosts -= u32::from(is_new);
        self.lists.remove(frame);
    }

    /// SR-LRU's choice: a page of R only if SR is empty, for example after pages were forgotten.
    fn lru_victim(&self) -> u32 {
        match self.lists.tail(SR) {
            NO_FRAME => self.lists.tail(R),
            frame => frame,
        }
    }

    /// Makes room for a page.
    fn evict(&mut self, effects: &mut Vec<Effect>) {
        if self.lists.cached() < self.capacity {
            return;
        }
        let (lru, lfu) = (self.lru_victim(), self.order.least_newest());
        let (victim, history) = if lru == lfu {
            (lru, None)
        } else if self.rng.chance(self.weights.lru()) {
            (lru, Some(BY_LRU))
        } else {
            (lfu, Some(BY_LFU))
        };
        self.leave_cache(victim);
        let Some(history) = history.filter(|_| self.history_max > 0) else {
            return effects.push(self.lists.remove(victim).evicted());
        };
        if self.lists.len(history) == self.history_max {
            self.drop_ghost(self.lists.tail(history));
        }
        let is_new = history == BY_LRU && !self.lists.key(victim).is_marked();
        self.new_ghosts += u32::from(is_new);
        effects.push(self.lists.evict_to(victim, history, self.history_max));
    }

    /// Removes a cached page from the state of both experts.
    fn leave_cache(&mut self, frame: u32) {
        let is_demoted = self.lists.list_of(frame) == SR && self.lists.key(frame).is_marked();
        self.demoted -= u32::from(is_demoted);
        self.order.remove(frame);
    }

    fn miss(&mut self, frame: u32, request: Request, effects: &mut Vec<Effect>) {
        if frame == NO_FRAME {
            self.evict(effects);
            let frame = self.lists.push(request, SR);
            return self.order.insert(frame, 1);
        }
        let uses = self.regret(frame);
        self.evict(effects);
        let frame = self.lists.push(request, R);
        self.lists.key_mut(frame).mark();
        self.order.insert(frame, uses + 1);
        self.demote();
    }
}

impl<T: PageTable> Policy for Cacheus<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.lists.find(request.page());
        let hit = frame != NO_FRAME && self.lists.list_of(frame) <= R;
        if hit {
            self.lists.key_mut(frame).touch(request);
            self.order.used(frame);
            if self.lists.list_of(frame) == R {
                self.lists.move_to_head(frame, R);
            } else {
                self.used_in_sr(frame);
            }
        } else {
            self.miss(frame, request, effects);
        }
        self.rate.served(hit, &mut self.rng);
        hit
    }

    answers_of!(lists: contains_cached cleaned dirty_pages);

    /// The order in which the more trusted expert would choose the pages, without demotions.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        if self.weights.prefer_lfu() {
            self.lists.dirty_of(self.order.least_newest_first(), pages_max, pages);
        } else {
            let frames = [SR, R].into_iter().flat_map(|list| self.lists.oldest_first(list));
            self.lists.dirty_of(frames, pages_max, pages);
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.lists.find_cached(page);
        if frame != NO_FRAME {
            self.leave_cache(frame);
            self.lists.remove(frame);
        }
        frame != NO_FRAME
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![
            Gauge::new("lru_weight", self.weights.lru()),
            Gauge::new("learning_rate", self.rate.get()),
            Gauge::new("reused_target_pages", f64::from(self.reused_max)),
        ]
    }

    fn memory_bytes(&self) -> u64 {
        self.lists.memory_bytes() + self.order.memory_bytes()
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        let marked = |list: u32| {
            self.lists.oldest_first(list).filter(|&frame| self.lists.key(frame).is_marked()).count()
        };
        assert_eq!(self.order.validate(), self.lists.cached(), "not all are in both orders");
        assert!(self.order.least_first().all(|frame| self.lists.list_of(frame) <= R));
        assert!(self.lists.cached() <= self.capacity, "more pages than frames");
        assert!(self.lists.len(R) <= self.reused_max, "R is too long");
        assert_eq!(marked(R) as u32, self.lists.len(R), "a page in R was not used again");
        assert_eq!(marked(SR) as u32, self.demoted, "demoted pages are counted wrongly");
        assert_eq!(self.lists.len(BY_LRU) - marked(BY_LRU) as u32, self.new_ghosts);
        for history in [BY_LRU, BY_LFU] {
            assert!(self.lists.len(history) <= self.history_max, "a history is too long");
            let mut ghosts = self.lists.oldest_first(history);
            assert!(ghosts.all(|frame| !self.lists.key(frame).is_dirty()));
        }
    }
}
