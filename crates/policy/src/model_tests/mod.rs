//! Compares every policy with a naive one that follows its source line by line over a plain `Vec`:
//! same hits, same effects, step by step, with both page tables.
mod ace;
mod basic;
mod blocks;
mod casa;
mod cfdc;
mod clean_first;
mod cost_bound;
mod lirs;
mod lru_k;
mod opt;
mod queues;
mod use_counts;
mod watt;
mod wrappers;
mod write_order;

pub(crate) use cost_bound::least_cost;

use crate::page_table::{DirectTable, SparseTable};
use crate::{Effect, Gauge, PolicySpec, Request, Workload};
use proptest::prelude::*;
use tantalum_base::PageNo;

/// An operation on a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Access(Request),
    Cleaned(PageNo),
    Forget(PageNo),
}

/// A naive policy.
pub(crate) trait Model {
    /// Serves a request. Returns whether it hit, and its effects on other pages, in order.
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>);
    /// As [`crate::Policy::cleaned`].
    fn cleaned(&mut self, page: PageNo);
    /// As [`crate::Policy::forget`].
    fn forget(&mut self, page: PageNo) -> bool;
    /// The cached pages with their dirty flags, in any order.
    fn pages(&self) -> Vec<(PageNo, bool)>;
    /// As [`crate::Policy::write_candidates`], without a limit; `None` if the order is not
    /// modelled.
    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        None
    }
    /// As [`crate::Policy::gauges`]; `None` if they are not modelled.
    fn gauges(&self) -> Option<Vec<Gauge>> {
        None
    }
    /// As [`crate::Policy::search_steps`]; `None` if they are not modelled.
    fn search_steps(&self) -> Option<u64> {
        None
    }
}

/// Requests for `pages` pages, half of which go to a few hot ones, so that hits and re-use are
/// common.
pub(crate) fn requests(pages: u64) -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(request(pages), 1..300)
}

/// Requests as above, with a page forgotten or written back now and then.
pub(crate) fn steps(pages: u64) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        18 => request(pages).prop_map(Step::Access),
        1 => (0..pages).prop_map(|page| Step::Cleaned(PageNo(page))),
        1 => (0..pages).prop_map(|page| Step::Forget(PageNo(page))),
    ];
    prop::collection::vec(step, 1..300)
}

fn request(pages: u64) -> impl Strategy<Value = Request> {
    let page = prop_oneof![0..pages, 0..pages.div_ceil(5)];
    (page, any::<bool>()).prop_map(|(page, write)| Request::new(PageNo(page), write))
}

/// Asserts that the policy made from `text` behaves like `model` in all `steps`, for pages below
/// `pages`, and that its other results are consistent.
pub(crate) fn agree(text: &str, frames: u32, pages: u64, model: &mut impl Model, steps: &[Step]) {
    let workload = Workload { pages_end: pages, future: &[] };
    let spec = PolicySpec::parse(text).unwrap();
    let mut policies = [
        spec.build_over::<DirectTable>(frames, workload).unwrap(),
        spec.build_over::<SparseTable>(frames, workload).unwrap(),
    ];
    for (at, &step) in steps.iter().enumerate() {
        let context = format!("{text}, {frames} frames, step {at}: {step:?}");
        match step {
            Step::Access(request) => {
                let (hit, done) = model.access(request);
                for policy in &mut policies {
                    let mut effects = Vec::new();
                    assert_eq!(policy.access(request, &mut effects), hit, "{context}");
                    assert_eq!(effects, done, "{context}");
                }
            }
            Step::Cleaned(page) => {
                model.cleaned(page);
                policies.iter_mut().for_each(|policy| policy.cleaned(page));
            }
            Step::Forget(page) => {
                let was_cached = model.forget(page);
                for policy in &mut policies {
                    assert_eq!(policy.forget(page), was_cached, "{context}");
                }
            }
        }
        let cached = model.pages();
        assert!(cached.len() <= frames as usize, "{context}: the model holds too many pages");
        for policy in &mut policies {
            policy.validate();
            let found = (0..pages).filter(|&page| policy.contains(PageNo(page))).count();
            assert_eq!(found, cached.len(), "{context}");
            assert!(cached.iter().all(|&(page, _)| policy.contains(page)), "{context}");
            let mut dirty: Vec<PageNo> =
                cached.iter().filter(|(_, dirty)| *dirty).map(|(page, _)| *page).collect();
            assert_eq!(policy.dirty_pages() as usize, dirty.len(), "{context}");
            let mut candidates = Vec::new();
            policy.write_candidates(usize::MAX, &mut candidates);
            let mut few = Vec::new();
            policy.write_candidates(2, &mut few);
            assert_eq!(few, candidates[..candidates.len().min(2)], "{context}");
            if let Some(order) = model.write_candidates() {
                assert_eq!(candidates, order, "{context}: the order of write candidates");
            }
            if let Some(gauges) = model.gauges() {
                assert_eq!(policy.gauges(), gauges, "{context}");
            }
            if let Some(steps) = model.search_steps() {
                assert_eq!(policy.search_steps(), steps, "{context}");
            }
            candidates.sort_unstable();
            dirty.sort_unstable();
            assert_eq!(candidates, dirty, "{context}: the write candidates are the dirty pages");
        }
    }
}

/// Asserts that, after `steps`, unknown pages (all updated if `write`) push dirty pages out in the
/// order of the write candidates of the policy made from `text`. Returns the candidates that stayed.
pub(crate) fn evicts_its_candidates(
    text: &str,
    frames: u32,
    steps: &[Step],
    write: bool,
) -> Vec<PageNo> {
    let workload = Workload { pages_end: u64::MAX, future: &[] };
    let mut policy = PolicySpec::parse(text).unwrap().build(frames, workload).unwrap();
    let mut effects = Vec::new();
    for &step in steps {
        match step {
            Step::Access(request) => _ = policy.access(request, &mut effects),
            Step::Cleaned(page) => policy.cleaned(page),
            Step::Forget(page) => _ = policy.forget(page),
        }
    }
    let mut candidates = Vec::new();
    policy.write_candidates(usize::MAX, &mut candidates);
    effects.clear();
    // So far apart that each is in a block of its own.
    let unknown = (0..3 * u64::from(frames)).map(|at| PageNo(Request::PAGE_MAX - (at << 20)));
    for page in unknown {
        policy.access(Request::new(page, write), &mut effects);
    }
    let known = |page: &PageNo| page.0 < Request::PAGE_MAX / 2;
    let written = effects.iter().filter(|effect| effect.writes()).map(|effect| effect.page());
    let written: Vec<PageNo> = written.filter(known).collect();
    let stayed = candidates.split_off(written.len());
    assert_eq!(written, candidates, "{text}, {frames} frames, after {steps:?}");
    stayed
}

/// The smallest caches, page numbers from both ends of the range, and no known limit.
#[test]
fn every_policy_works_in_a_tiny_cache_with_any_page_number() {
    let workload = Workload { pages_end: u64::MAX, future: &[] };
    for name in PolicySpec::NAMES.iter().filter(|name| **name != "opt") {
        for frames in 1..=3 {
            let mut rng = tantalum_base::Rng::new(u64::from(frames));
            let mut policy = PolicySpec::parse(name).unwrap().build(frames, workload).unwrap();
            let (mut cached, mut effects) = (Vec::new(), Vec::new());
            for _ in 0..2000 {
                let page = match rng.below(8) {
                    low @ 0..4 => PageNo(low),
                    high => PageNo(Request::PAGE_MAX - (high << 40)),
                };
                let hit = policy.access(Request::new(page, rng.chance(0.5)), &mut effects);
                assert_eq!(hit, cached.contains(&page), "{name}, {frames} frames");
                for effect in effects.drain(..).filter(|effect| effect.leaves()) {
                    let at = cached.iter().position(|page| *page == effect.page());
                    cached.remove(at.expect("what leaves was there"));
                }
                if !hit {
                    cached.push(page);
                }
                assert!(cached.len() <= frames as usize, "{name}: more pages than frames");
                if rng.chance(0.1) {
                    let page = cached.remove(rng.below(cached.len() as u64) as usize);
                    assert!(policy.forget(page) && !policy.contains(page), "{name}");
                }
                policy.validate();
            }
        }
    }
}
