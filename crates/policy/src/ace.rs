//! ACE (asymmetry- and concurrency-aware): a wrapper over any policy. If the victim is dirty, it
//! writes several dirty pages in one batch, so that a device that serves several writes at once is
//! kept busy.
//!
//! Source: Papon, Athanassoulis, "ACEing the bufferpool management paradigm for modern storage
//! devices", ICDE 2023. Of the paper's three parts:
//! - the writer is implemented: when a dirty page leaves, up to `write` (the paper's n_w) dirty pages
//!   are written in all. The others are the pages that the policy would write next; they stay, clean;
//! - the evictor is implemented: if `evict` (n_e) is over 1, the first pages of the batch leave as
//!   well, so that the next misses find free frames. A policy does not report the clean pages that
//!   it would evict next, so only pages of the batch leave;
//! - the reader is not implemented: nothing is prefetched. Prefetching in the paper needs `evict`
//!   over 1.
//!
//! A clean victim leaves alone, as without the wrapper. The batch consists of the effects of one
//! request: the victim first, then the others in the policy's order.
//!
//! Weak if the device gains nothing from several writes at once: pages written early may be dirty again
//! before they leave, so it writes more in total. It requests the next write-backs from the policy for
//! each batch; in most policies that is a walk over clean pages. A policy that remembers evicted pages
//! (as ARC does) does not remember those that leave along with the victim.
use crate::answers::answers_of;
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// Batched write-back over another policy.
pub struct Ace {
    base: Box<dyn Policy>,
    write_pages: usize,
    evict_pages: usize,
    /// The pages of the current batch.
    batch: Vec<PageNo>,
}

impl Ace {
    /// Wraps `base`. A batch has `write_pages` pages, of which `evict_pages` leave (1 to
    /// `write_pages`).
    pub fn new(base: Box<dyn Policy>, write_pages: u32, evict_pages: u32) -> Self {
        assert!((1..=write_pages).contains(&evict_pages), "what leaves is of the batch");
        let (write_pages, evict_pages) = (write_pages as usize, evict_pages as usize);
        Ace { base, write_pages, evict_pages, batch: Vec::with_capacity(write_pages + 1) }
    }

    /// Fills up the batch. It begins with the pages that `effects` evicts or writes from index
    /// `from` on. The page of `request` has just come in and is not in it.
    fn fill_batch(&mut self, request: Request, from: usize, effects: &mut Vec<Effect>) {
        let count = |is: fn(&Effect) -> bool| effects[from..].iter().filter(|e| is(e)).count();
        let (written, left) = (count(|effect| effect.writes()), count(|effect| effect.leaves()));
        self.base.write_candidates(self.write_pages + 1, &mut self.batch);
        self.batch.retain(|page| *page != request.page());
        self.batch.truncate(self.write_pages.saturating_sub(written));
        for (at, page) in self.batch.drain(..).enumerate() {
            if left + at < self.evict_pages {
                self.base.forget(page);
                effects.push(Effect::Evicted { page, dirty: true });
            } else {
                self.base.cleaned(page);
                effects.push(Effect::Cleaned { page });
            }
        }
    }
}

impl Policy for Ace {
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let from = effects.len();
        let hit = self.base.access(request, effects);
        let writes_victim = |effect: &Effect| effect.leaves() && effect.writes();
        if self.write_pages > 1 && effects[from..].iter().any(writes_victim) {
            self.fill_batch(request, from, effects);
        }
        hit
    }

    answers_of!(base: contains write_candidates cleaned forget measured gauges);
    answers_of!(base: search_steps capacity_pages dirty_pages);

    fn memory_bytes(&self) -> u64 {
        self.base.memory_bytes() + (self.batch.capacity() * size_of::<PageNo>()) as u64
    }

    #[cfg(test)]
    fn validate(&self) {
        self.base.validate();
        assert!(self.batch.is_empty(), "a batch was left half done");
    }
}
