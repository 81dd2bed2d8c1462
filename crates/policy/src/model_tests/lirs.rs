//! Compares LIRS and LIRS-WSR with the paper's rules over plain vectors.
use super::{Model, agree, steps};
use crate::{Effect, Request};
use proptest::prelude::*;
use tantalum_base::PageNo;

/// The state of a page.
#[derive(Clone, Copy)]
struct Entry {
    page: PageNo,
    dirty: bool,
    cold: bool,
    lir: bool,
}

/// Stack and queue, oldest first. A page in both has an entry in each; the queue's entry holds its
/// dirty flag.
struct Naive {
    frames: usize,
    lir_max: usize,
    stack_max: usize,
    wsr: bool,
    stack: Vec<Entry>,
    queue: Vec<Entry>,
    last: Option<PageNo>,
}

fn take(entries: &mut Vec<Entry>, page: PageNo) -> Option<Entry> {
    let at = entries.iter().position(|entry| entry.page == page)?;
    Some(entries.remove(at))
}

impl Naive {
    fn new(frames: u32, hir: f64, stack: usize, wsr: bool) -> Naive {
        let frames = frames as usize;
        let lir_max = match frames {
            1 => 0,
            2 => 1,
            _ => frames - ((hir * frames as f64) as usize).clamp(2, frames - 1),
        };
        let (stack_max, none) = (stack * frames, Vec::new());
        Naive { frames, lir_max, stack_max, wsr, stack: none.clone(), queue: none, last: None }
    }

    fn lirs(&self) -> usize {
        self.stack.iter().filter(|entry| entry.lir).count()
    }

    /// The entry that holds the dirty flag of a cached page.
    fn cached(&mut self, page: PageNo) -> Option<&mut Entry> {
        let lirs = self.stack.iter_mut().filter(|entry| entry.lir);
        lirs.chain(&mut self.queue).find(|entry| entry.page == page)
    }

    fn stays(&self, entry: Entry) -> bool {
        self.wsr && entry.dirty && !entry.cold
    }

    fn prune(&mut self) {
        while self.stack.first().is_some_and(|entry| !entry.lir) {
            self.stack.remove(0);
        }
    }

    fn evict(&mut self) -> Effect {
        while self.stays(self.queue[0]) {
            let entry = self.queue.remove(0);
            self.queue.push(Entry { cold: true, ..entry });
        }
        let Entry { page, dirty, .. } = self.queue.remove(0);
        Effect::Evicted { page, dirty }
    }

    /// The page of `entry` enters the stack as LIR.
    fn push_lir(&mut self, entry: Entry) {
        self.stack.push(Entry { lir: true, ..entry });
        if self.lirs() > self.lir_max {
            while self.stays(self.stack[0]) {
                let entry = self.stack.remove(0);
                self.stack.push(Entry { cold: true, ..entry });
                self.prune();
            }
            let demoted = self.stack.remove(0);
            self.queue.push(Entry { lir: false, ..demoted });
        }
        self.prune();
    }
}

impl Model for Naive {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let page = request.page();
        let repeated = self.last.replace(page) == Some(page);
        let write = request.is_write();
        let mut effects = Vec::new();
        let fresh = Entry { page, dirty: write, cold: false, lir: false };
        let known = self.cached(page).map(|entry| {
            (entry.dirty, entry.cold) = (entry.dirty | write, false);
            *entry
        });
        if repeated {
            return (true, effects);
        }
        let in_stack = self.stack.iter().any(|entry| entry.page == page);
        match known {
            Some(entry) if entry.lir => {
                take(&mut self.stack, page);
                self.stack.push(entry);
                self.prune();
            }
            Some(entry) => {
                take(&mut self.queue, page);
                take(&mut self.stack, page);
                if in_stack {
                    self.push_lir(entry);
                } else {
                    self.stack.push(entry);
                    self.queue.push(entry);
                    self.prune();
                }
            }
            None => {
                let cached = self.lirs() + self.queue.len();
                let fills = cached < self.frames && self.lirs() < self.lir_max;
                if cached == self.frames {
                    effects.push(self.evict());
                }
                take(&mut self.stack, page);
                if fills || in_stack {
                    self.push_lir(fresh);
                } else {
                    self.stack.push(fresh);
                    self.queue.push(fresh);
                    self.prune();
                }
            }
        }
        if self.stack.len() > self.stack_max {
            let oldest_hir = self.stack.iter().position(|entry| !entry.lir).unwrap();
            self.stack.remove(oldest_hir);
        }
        (known.is_some(), effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some(entry) = self.cached(page) {
            entry.dirty = false;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        if self.cached(page).is_none() {
            return false;
        }
        take(&mut self.stack, page);
        take(&mut self.queue, page);
        self.prune();
        self.last = self.last.filter(|last| *last != page);
        true
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        let lirs = self.stack.iter().filter(|entry| entry.lir);
        lirs.chain(&self.queue).map(|entry| (entry.page, entry.dirty)).collect()
    }
}

proptest! {
    #[test]
    fn lirs_decides_as_its_naive_form(frames in 1u32..14, steps in steps(36)) {
        agree("lirs", frames, 36, &mut Naive::new(frames, 0.01, 2500, false), &steps);
        let mut naive = Naive::new(frames, 0.4, 1, false);
        agree("lirs:hir=0.4,stack=1", frames, 36, &mut naive, &steps);
        agree("lirs:stack=2", frames, 36, &mut Naive::new(frames, 0.01, 2, false), &steps);
    }

    #[test]
    fn lirs_wsr_decides_as_its_naive_form(frames in 1u32..14, steps in steps(36)) {
        agree("lirs_wsr", frames, 36, &mut Naive::new(frames, 0.01, 2500, true), &steps);
        let mut naive = Naive::new(frames, 0.4, 2, true);
        agree("lirs_wsr:hir=0.4,stack=2", frames, 36, &mut naive, &steps);
    }
}

/// Uses more pages than the initial number of nodes, over and over: the table grows and stays
/// correct.
#[test]
fn lirs_grows_with_the_pages_it_remembers() {
    let mut rng = tantalum_base::Rng::new(11);
    let steps: Vec<super::Step> = (0..6000)
        .map(|_| super::Step::Access(Request::new(PageNo(rng.below(200)), rng.chance(0.3))))
        .collect();
    agree("lirs", 5, 200, &mut Naive::new(5, 0.01, 2500, false), &steps);
}
