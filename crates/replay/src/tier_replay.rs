//! A trace through two tiers of caches over a home: a buffer pool that asks a flash cache for what it misses.
//! Counts alone, no device and no time; a [`CostModel`](tantalum_policy::tier::CostModel) says what the counts
//! take.
use tantalum_base::{FastSet, Result};
use tantalum_policy::tier::{Found, MiddleTier, TierCounts, TierSpec};
use tantalum_policy::{Effect, Policy, PolicySpec, Request, Workload};

use crate::cache_replay::CacheTrace;

/// What is run.
#[derive(Clone, Debug)]
pub struct TierRun {
    /// Replacement in the buffer pool.
    pub top: PolicySpec,
    /// Pages of the buffer pool.
    pub top_pages: u32,
    /// The flash cache.
    pub middle: TierSpec,
    /// Pages of it.
    pub middle_pages: u32,
    /// At the end, everything that is newer in one of the tiers goes home.
    pub flush: bool,
}

/// What it took.
#[derive(Clone, Debug, PartialEq)]
pub struct TierOutcome {
    /// Requests of the trace.
    pub requests: u64,
    /// Of these, found in the buffer pool.
    pub top_hits: u64,
    /// What the flash cache did.
    pub counts: TierCounts,
    /// Blocks collected, by the number of their valid pages; empty where no blocks are seen.
    pub collected: Vec<u64>,
    /// Erases of each block.
    pub erases: Vec<u64>,
}

/// What a pool of `pages` pages asks the tier below for: reads of what it misses, writes of what it evicts dirty.
///
/// # Errors
/// As the policy's registry.
pub fn requests_below(trace: &CacheTrace, top: &PolicySpec, pages: u32) -> Result<Vec<Request>> {
    let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
    let mut top = top.build(pages, workload)?;
    let (mut below, mut effects) = (Vec::new(), Vec::new());
    for request in &trace.requests {
        if !top.access(*request, &mut effects) {
            below.push(Request::new(request.page(), false));
        }
        let written = effects.drain(..).filter(|effect| effect.writes());
        below.extend(written.map(|effect| Request::new(effect.page(), true)));
    }
    Ok(below)
}

/// Runs `trace` through the two tiers, both empty at the start.
///
/// # Errors
/// As the policy's registry.
pub fn replay(trace: &CacheTrace, run: &TierRun) -> Result<TierOutcome> {
    let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
    let mut tiers = Tiers {
        top: run.top.build(run.top_pages, workload)?,
        middle: run.middle.build(run.middle_pages, trace.pages_end),
        is_exclusive: run.middle.is_exclusive(),
        owed: FastSet::default(),
    };
    let (mut top_hits, mut effects) = (0, Vec::new());
    for request in &trace.requests {
        let hit = tiers.top.access(*request, &mut effects);
        top_hits += u64::from(hit);
        if !hit && tiers.middle.read(request.page()) == (Found::Taken { dirty: true }) {
            tiers.owed.insert(request.page());
        }
        for effect in effects.drain(..) {
            tiers.leaves(effect);
        }
    }
    if run.flush {
        tiers.flush();
    }
    let blocks = tiers.middle.blocks();
    Ok(TierOutcome {
        requests: trace.requests.len() as u64,
        top_hits,
        counts: *tiers.middle.counts(),
        collected: blocks.map_or(Vec::new(), |blocks| blocks.collected().to_vec()),
        erases: blocks.map_or(Vec::new(), |blocks| blocks.erases().to_vec()),
    })
}

struct Tiers {
    top: Box<dyn Policy>,
    middle: Box<dyn MiddleTier>,
    is_exclusive: bool,
    /// Pages that the top tier took from the middle one and that are newer than at home: whatever the top tier
    /// knows of them, it has to write them.
    owed: FastSet<tantalum_base::PageNo>,
}

impl Tiers {
    /// The top tier writes or gives up a page.
    fn leaves(&mut self, effect: Effect) {
        let page = effect.page();
        let owed = !self.owed.is_empty() && self.owed.remove(&page);
        if effect.writes() || owed {
            self.middle.write(page);
        } else if self.is_exclusive {
            self.middle.evict(page);
        }
    }

    /// Everything goes home.
    fn flush(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::PageNo;

    fn trace(pages: &[(u64, bool)]) -> CacheTrace {
        let requests =
            pages.iter().map(|&(page, write)| Request::new(PageNo(page), write)).collect();
        CacheTrace { name: "made up".into(), requests, pages_end: 100 }
    }

    fn run(middle: &str, flush: bool) -> TierRun {
        TierRun {
            top: PolicySpec::parse("lru").unwrap(),
            top_pages: 1,
            middle: TierSpec::parse(middle).unwrap(),
            middle_pages: 2,
            flush,
        }
    }

    /// A page that comes up from an exclusive tier dirty, and leaves the pool without having been written there,
    /// is still newer than at home.
    #[test]
    fn what_was_taken_dirty_is_written_again() {
        let requests = [(1, true), (2, false), (1, false), (3, false), (4, false), (5, false)];
        let outcome = replay(&trace(&requests), &run("glb", false)).unwrap();
        assert_eq!(outcome.counts.read_hits, 1, "page 1 comes back up");
        assert_eq!(outcome.counts.writes, 2, "and is written down twice");
        assert_eq!(outcome.counts.disk_writes, 1, "and home, when it leaves");
        let outcome = replay(&trace(&requests[..3]), &run("glb", true)).unwrap();
        assert_eq!(outcome.counts.disk_writes, 1, "or at the end");
    }

    #[test]
    fn the_requests_below_are_those_that_a_tier_is_given() {
        let requests = [(1, true), (2, false), (1, false), (3, true), (3, false), (4, false)];
        let (trace, run) = (trace(&requests), run("none", false));
        let below = requests_below(&trace, &run.top, run.top_pages).unwrap();
        let counts = replay(&trace, &run).unwrap().counts;
        let writes = below.iter().filter(|request| request.is_write()).count() as u64;
        assert_eq!((below.len() as u64 - writes, writes), (counts.reads, counts.writes));
        assert_eq!((counts.reads, counts.writes), (5, 2));
    }

    #[test]
    fn everything_goes_home_at_the_end_where_asked_for() {
        let requests = [(1, true), (2, true), (3, true)];
        let written = |middle: &str, flush| {
            replay(&trace(&requests), &run(middle, flush)).unwrap().counts.disk_writes
        };
        for middle in ["none", "loc", "glb", "write_cache", "write_cache:place=sequential"] {
            assert_eq!(written(middle, true), 3, "{middle}");
        }
        assert_eq!(written("write_cache", false), 0);
    }
}
