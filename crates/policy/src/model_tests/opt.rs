//! Checks OPT against its definition: no other cached page is used later than the victim.
use super::requests;
use crate::page_table::SparseTable;
use crate::{Effect, PolicySpec, Request, Workload};
use proptest::prelude::*;
use tantalum_base::PageNo;

fn opt_picks_the_furthest(frames: u32, pages: u64, requests: &[Request]) {
    let workload = Workload { pages_end: pages, future: requests };
    let spec = PolicySpec::parse("opt").unwrap();
    let mut opt = spec.build_over::<SparseTable>(frames, workload).unwrap();
    let mut cached: Vec<(PageNo, bool)> = Vec::new();
    let mut effects = Vec::new();
    for (now, &request) in requests.iter().enumerate() {
        let distance = |page: PageNo| {
            let coming = &requests[now..];
            coming.iter().position(|request| request.page() == page).unwrap_or(usize::MAX)
        };
        let found = cached.iter().position(|(page, _)| *page == request.page());
        assert_eq!(opt.access(request, &mut effects), found.is_some());
        assert!(effects.is_empty() || cached.len() == frames as usize);
        for effect in effects.drain(..) {
            let furthest = cached.iter().map(|(page, _)| distance(*page)).max().unwrap();
            assert_eq!(distance(effect.page()), furthest);
            let at = cached.iter().position(|(page, _)| *page == effect.page()).unwrap();
            let (page, dirty) = cached.remove(at);
            assert_eq!(effect, Effect::Evicted { page, dirty });
        }
        match found {
            Some(at) => cached[at].1 |= request.is_write(),
            None => cached.push((request.page(), request.is_write())),
        }
        assert!(cached.len() <= frames as usize);
        opt.validate();
        // A forgotten page leaves a free frame and nothing else.
        if now % 37 == 36 {
            let (page, _) = cached.remove(now % cached.len());
            assert!(opt.forget(page) && !opt.contains(page) && !opt.forget(page));
            opt.validate();
        }
    }
}

proptest! {
    #[test]
    fn opt_evicts_what_is_needed_last(frames in 1u32..12, requests in requests(24)) {
        opt_picks_the_furthest(frames, 24, &requests);
    }
}

/// Long enough that the heap drops past entries many times.
#[test]
fn opt_sheds_its_past_and_nothing_else() {
    let mut rng = tantalum_base::Rng::new(5);
    let requests: Vec<Request> =
        (0..8000).map(|_| Request::new(PageNo(rng.below(24)), rng.chance(0.3))).collect();
    opt_picks_the_furthest(20, 24, &requests);
}
