//! Write candidates come in the order in which a policy would write them: pages that were never
//! asked for before, all updated, push them out in just that order.
use super::{Step, steps};
use crate::page_table::SparseTable;
use crate::{Effect, PolicySpec, Request, Workload};
use proptest::prelude::*;
use tantalum_base::PageNo;

const PAGES: u64 = 24;
/// Pages so far from each other that each is in a block of its own, for any policy here.
const STRIDE: u64 = 1 << 16;

/// Runs `steps`, then pushes out what is dirty; how many of the candidates were.
fn pushed_out(text: &str, frames: u32, steps: &[Step]) -> (usize, usize) {
    let workload = Workload { pages_end: u64::MAX, future: &[] };
    let spec = PolicySpec::parse(text).unwrap();
    let mut policy = spec.build_over::<SparseTable>(frames, workload).unwrap();
    let mut effects = Vec::new();
    for &step in steps {
        match step {
            Step::Access(request) => {
                policy.access(request, &mut effects);
            }
            Step::Cleaned(page) => policy.cleaned(page),
            Step::Forget(page) => {
                policy.forget(page);
            }
        }
    }
    let mut candidates = Vec::new();
    policy.write_candidates(usize::MAX, &mut candidates);
    effects.clear();
    for new in 1..=3 * u64::from(frames) {
        policy.access(Request::new(PageNo(PAGES + new * STRIDE), true), &mut effects);
    }
    let written = effects.iter().filter_map(|effect| match *effect {
        Effect::Evicted { page, dirty: true } if page.0 < PAGES => Some(page),
        _ => None,
    });
    let written: Vec<PageNo> = written.collect();
    assert_eq!(written, candidates[..written.len()], "{text}, {frames} frames");
    (written.len(), candidates.len())
}

proptest! {
    #[test]
    fn candidates_are_in_the_order_of_writing(
        text in prop::sample::select(vec![
            "lru", "fifo", "cflru:window=0.25", "cflru:window=0.75,form=walk", "lru_wsr", "ccflru",
            "fab:block=4", "fab:block=100", "ref:window=1,block=4,victims=2",
        ]),
        frames in 1u32..16,
        steps in steps(PAGES),
    ) {
        let (written, candidates) = pushed_out(text, frames, &steps);
        prop_assert_eq!(written, candidates, "all of them go");
    }

    /// Hot pages stay for good where only new ones come.
    #[test]
    fn candidates_of_ad_lru_are_in_the_order_of_writing(
        text in prop::sample::select(vec!["ad_lru", "ad_lru:min_lc=0.5", "ad_lru:min_lc=0.99"]),
        frames in 1u32..16,
        steps in steps(PAGES),
    ) {
        pushed_out(text, frames, &steps);
    }
}
