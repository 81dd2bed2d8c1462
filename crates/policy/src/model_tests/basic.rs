//! LRU, FIFO, CLOCK and SIEVE.
use super::{Model, agree, steps};
use crate::{Effect, Request};
use proptest::prelude::*;
use tantalum_base::PageNo;

#[derive(Clone, Copy)]
struct Entry {
    page: PageNo,
    dirty: bool,
    count: u8,
}

/// Oldest first. Policies differ in the effect of a hit and in the choice of the victim.
pub(super) struct Naive<'a> {
    policy: &'a str,
    frames: usize,
    entries: Vec<Entry>,
    /// The page SIEVE's hand is at.
    hand: Option<PageNo>,
}

impl Naive<'_> {
    pub(super) fn new(policy: &str, frames: u32) -> Naive<'_> {
        Naive { policy, frames: frames as usize, entries: Vec::new(), hand: None }
    }

    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    fn position(&self, page: PageNo) -> Option<usize> {
        self.entries.iter().position(|entry| entry.page == page)
    }

    fn hit(&mut self, at: usize, request: Request) {
        let entry = &mut self.entries[at];
        entry.dirty |= request.is_write();
        entry.count += 1;
        let count_max = if self.policy == "clock:bits=2" { 3 } else { 1 };
        entry.count = entry.count.min(count_max);
        if self.policy == "lru" {
            let entry = self.entries.remove(at);
            self.entries.push(entry);
        }
    }

    fn victim(&mut self) -> usize {
        match self.policy {
            "lru" | "fifo" => 0,
            // The oldest goes to the end of the queue once for each use that it had.
            "clock" | "clock:bits=2" => {
                while self.entries[0].count > 0 {
                    let mut entry = self.entries.remove(0);
                    entry.count -= 1;
                    self.entries.push(entry);
                }
                0
            }
            "sieve" => {
                let entries = &mut self.entries;
                let hand = self.hand;
                let mut at = entries.iter().position(|entry| Some(entry.page) == hand).unwrap_or(0);
                while entries[at].count > 0 {
                    entries[at].count = 0;
                    at = (at + 1) % entries.len();
                }
                self.hand = entries.get(at + 1).map(|entry| entry.page);
                at
            }
            _ => unreachable!("no naive {}", self.policy),
        }
    }
}

impl Model for Naive<'_> {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        if let Some(at) = self.position(request.page()) {
            self.hit(at, request);
            return (true, Vec::new());
        }
        let mut effects = Vec::new();
        if self.entries.len() == self.frames {
            let at = self.victim();
            let Entry { page, dirty, .. } = self.entries.remove(at);
            effects.push(Effect::Evicted { page, dirty });
        }
        self.entries.push(Entry { page: request.page(), dirty: request.is_write(), count: 0 });
        (false, effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some(at) = self.position(page) {
            self.entries[at].dirty = false;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let Some(at) = self.position(page) else { return false };
        if self.hand == Some(page) {
            self.hand = self.entries.get(at + 1).map(|entry| entry.page);
        }
        self.entries.remove(at);
        true
    }

    /// In eviction order, except for SIEVE: CLOCK passes a page once for each use.
    fn pages(&self) -> Vec<(PageNo, bool)> {
        let mut entries = self.entries.clone();
        if self.policy.starts_with("clock") {
            entries.sort_by_key(|entry| entry.count);
        }
        entries.iter().map(|entry| (entry.page, entry.dirty)).collect()
    }
}

proptest! {
    #[test]
    fn policies_decide_as_their_naive_form(
        text in prop::sample::select(vec!["lru", "fifo", "clock", "clock:bits=2", "sieve"]),
        frames in 1u32..12,
        steps in steps(24),
    ) {
        agree(text, frames, 24, &mut Naive::new(text, frames), &steps);
    }
}
