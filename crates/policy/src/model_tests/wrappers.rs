//! CFDC and ACE over every policy of the registry: for any base, their results for each page are
//! consistent.
use super::{Step, steps};
use crate::page_table::SparseTable;
use crate::{Effect, PolicySpec, Request, Workload};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tantalum_base::PageNo;

/// Checks that hits and effects are consistent with earlier ones. Returns the cached pages: page to
/// dirty flag.
fn follow(text: &str, frames: u32, steps: &[Step]) -> BTreeMap<PageNo, bool> {
    let requests: Vec<Request> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Access(request) => Some(*request),
            _ => None,
        })
        .collect();
    if requests.is_empty() {
        // Nothing was ever cached. OPT refuses a future without requests.
        return BTreeMap::new();
    }
    let workload = Workload { pages_end: u64::MAX, future: &requests };
    let spec = PolicySpec::parse(text).unwrap();
    let mut policy = spec.build_over::<SparseTable>(frames, workload).unwrap();
    let mut cached: BTreeMap<PageNo, bool> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        let context = format!("{text}, {frames} frames, step {at}: {step:?}");
        match *step {
            Step::Access(request) => {
                let mut effects = Vec::new();
                let hit = policy.access(request, &mut effects);
                assert_eq!(hit, cached.contains_key(&request.page()), "{context}");
                *cached.entry(request.page()).or_default() |= request.is_write();
                for effect in effects {
                    assert_ne!(effect.page(), request.page(), "{context}");
                    match effect {
                        Effect::Evicted { page, dirty } => {
                            assert_eq!(cached.remove(&page), Some(dirty), "{context}: {effect:?}");
                        }
                        Effect::Cleaned { page } => {
                            let was_dirty = cached.insert(page, false);
                            assert_eq!(was_dirty, Some(true), "{context}: {effect:?}");
                        }
                    }
                }
            }
            Step::Cleaned(page) => {
                policy.cleaned(page);
                cached.entry(page).and_modify(|dirty| *dirty = false);
            }
            Step::Forget(page) => {
                assert_eq!(policy.forget(page), cached.remove(&page).is_some(), "{context}");
            }
        }
        policy.validate();
        assert!(cached.len() <= frames as usize, "{context}: {} pages", cached.len());
        assert!(cached.keys().all(|page| policy.contains(*page)), "{context}");
        let dirty: Vec<PageNo> =
            cached.iter().filter(|(_, dirty)| **dirty).map(|(page, _)| *page).collect();
        let mut candidates = Vec::new();
        policy.write_candidates(usize::MAX, &mut candidates);
        candidates.sort_unstable();
        assert_eq!(candidates, dirty, "{context}");
        assert_eq!(policy.dirty_pages() as usize, dirty.len(), "{context}");
    }
    cached
}

proptest! {
    #[test]
    fn wrappers_hang_together_over_every_base(
        base in prop::sample::select(PolicySpec::NAMES.to_vec()),
        wrapper in prop::sample::select(vec![
            "cfdc:window=0,base=",
            "cfdc:window=0.5,cluster=4,base=",
            "cfdc:window=1,cluster=2,base=",
            "cfdc:window=0.5,cluster=4,base=ace/write=4/evict=3/base=",
            "ace:write=3,base=",
            "ace:write=4,evict=2,base=",
            "ace:write=3,evict=2,base=cfdc/window=0.4/cluster=4/base=",
        ]),
        frames in 1u32..20,
        steps in steps(40),
    ) {
        let cached = follow(&format!("{wrapper}{base}"), frames, &steps);
        prop_assert!(cached.len() <= frames as usize);
    }
}
