//! The two tiers: the buffer pool on top, and the flash cache, which serves its misses.
use tantalum_base::{FastSet, PageNo, Result};
use tantalum_policy::tier::{Found, MiddleTier};
use tantalum_policy::{Effect, Policy, Request, Workload};

use super::TierRun;
use crate::cache_replay::CacheTrace;

/// The two deciders, empty at the start.
pub(super) struct Tiers {
    pub(super) top: Box<dyn Policy>,
    pub(super) middle: Box<dyn MiddleTier>,
    is_exclusive: bool,
    /// Pages that the top tier took from the middle one and that are newer than at home: it must write them,
    /// even if it counts them as clean.
    owed: FastSet<PageNo>,
}

impl Tiers {
    pub(super) fn new(trace: &CacheTrace, run: &TierRun) -> Result<Tiers> {
        let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
        Ok(Tiers {
            top: run.top.build(run.top_pages, workload)?,
            middle: run.middle.build(run.middle_pages, trace.pages_end),
            is_exclusive: run.middle.is_exclusive(),
            owed: FastSet::default(),
        })
    }

    /// A request: if the top tier misses the page, it is read from below. Returns whether it was in the top
    /// tier. The effects on other pages are added to `effects`; the caller must pass each to
    /// [`leaves`](Self::leaves) then.
    pub(super) fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let hit = self.top.access(request, effects);
        if !hit && self.middle.read(request.page()) == (Found::Taken { dirty: true }) {
            self.owed.insert(request.page());
        }
        hit
    }

    /// The top tier writes or evicts a page.
    pub(super) fn leaves(&mut self, effect: Effect) {
        let page = effect.page();
        let owed = !self.owed.is_empty() && self.owed.remove(&page);
        if effect.writes() || owed {
            self.middle.write(page);
        } else if self.is_exclusive {
            self.middle.evict(page);
        }
    }

    /// Writes everything home.
    pub(super) fn flush(&mut self) {
        let mut pages = Vec::new();
        self.top.write_candidates(usize::MAX, &mut pages);
        for page in pages {
            self.owed.remove(&page);
            self.middle.write(page);
        }
        let mut owed: Vec<_> = self.owed.drain().collect();
        owed.sort_unstable();
        owed.into_iter().for_each(|page| self.middle.write(page));
        self.middle.flush();
    }
}
