//! Compares LRU-K with figure 2.1 of its paper.
use super::{Model, agree, steps};
use crate::{Effect, Request};
use proptest::prelude::*;
use tantalum_base::PageNo;

/// A page's history control block.
#[derive(Clone)]
struct Block {
    page: PageNo,
    dirty: bool,
    hist: Vec<u64>,
    last: u64,
}

struct Naive {
    frames: usize,
    k: usize,
    history_max: usize,
    correlated: u64,
    now: u64,
    cached: Vec<Block>,
    /// In the order of eviction.
    history: Vec<Block>,
}

impl Naive {
    fn new(frames: u32, k: usize, history: f64, correlated: u64) -> Naive {
        Naive {
            frames: frames as usize,
            k,
            history_max: (f64::from(frames) * history) as usize,
            correlated,
            now: 0,
            cached: Vec::new(),
            history: Vec::new(),
        }
    }

    fn evict(&mut self) -> Effect {
        let (now, correlated) = (self.now, self.correlated);
        let k = self.k;
        let eligible = self.cached.iter().filter(|block| now - block.last > correlated);
        let victim = eligible.min_by_key(|block| (block.hist[k - 1], block.last));
        let victim = victim.or(self.cached.iter().min_by_key(|block| block.last)).unwrap().page;
        let at = self.cached.iter().position(|block| block.page == victim).unwrap();
        let block = self.cached.remove(at);
        let effect = Effect::Evicted { page: block.page, dirty: block.dirty };
        self.history.push(block);
        if self.history.len() > self.history_max {
            self.history.remove(0);
        }
        effect
    }
}

impl Model for Naive {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        self.now += 1;
        let (now, k, page) = (self.now, self.k, request.page());
        if let Some(block) = self.cached.iter_mut().find(|block| block.page == page) {
            block.dirty |= request.is_write();
            if now - block.last > self.correlated {
                let correlated_for = block.last - block.hist[0];
                for i in (1..k).rev() {
                    let earlier = block.hist[i - 1];
                    block.hist[i] = if earlier == 0 { 0 } else { earlier + correlated_for };
                }
                block.hist[0] = now;
            }
            block.last = now;
            return (true, Vec::new());
        }
        let known = self.history.iter().position(|block| block.page == page);
        let mut block = match known {
            Some(at) => self.history.remove(at),
            None => Block { page, dirty: false, hist: vec![0; k], last: 0 },
        };
        let full = self.cached.len() == self.frames;
        let effects = if full { vec![self.evict()] } else { Vec::new() };
        block.hist.rotate_right(1);
        (block.hist[0], block.last, block.dirty) = (now, now, request.is_write());
        self.cached.push(block);
        (false, effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some(block) = self.cached.iter_mut().find(|block| block.page == page) {
            block.dirty = false;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let at = self.cached.iter().position(|block| block.page == page);
        at.map(|at| self.cached.remove(at)).is_some()
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        self.cached.iter().map(|block| (block.page, block.dirty)).collect()
    }
}

proptest! {
    #[test]
    fn lru_k_decides_as_its_naive_form(frames in 1u32..12, steps in steps(36)) {
        agree("lru_k", frames, 36, &mut Naive::new(frames, 2, 1.0, 0), &steps);
        let mut naive = Naive::new(frames, 3, 2.0, 4);
        agree("lru_k:k=3,history=2,correlated=4", frames, 36, &mut naive, &steps);
        let mut naive = Naive::new(frames, 2, 0.0, 100);
        agree("lru_k:history=0,correlated=100", frames, 36, &mut naive, &steps);
    }

    #[test]
    fn lru_1_is_lru(frames in 1u32..12, steps in steps(24)) {
        agree("lru", frames, 24, &mut Naive::new(frames, 1, 0.0, 0), &steps);
        agree("lru_k:k=1", frames, 24, &mut Naive::new(frames, 1, 1.0, 0), &steps);
    }
}
