//! Compares cost bounds with the least cost, found by trying everything, and with all policies.
use super::requests;
use crate::cost_bound::{CostBoundOptions, cost_bound};
use crate::{PolicySpec, Request, Tally, Workload};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tantalum_base::{PageNo, Rng};

/// The least cost of `requests`, over every choice of a victim at every miss. Evicting or writing a
/// page earlier than that never helps.
pub(crate) fn least_cost(requests: &[Request], frames: u32, read: u64, write: u64) -> u64 {
    let mut costs: BTreeMap<Vec<(PageNo, bool)>, u64> = BTreeMap::from([(Vec::new(), 0)]);
    for &request in requests {
        let mut after: BTreeMap<Vec<(PageNo, bool)>, u64> = BTreeMap::new();
        let mut reach = |mut pages: Vec<(PageNo, bool)>, cost: u64| {
            pages.sort_unstable();
            let known = after.entry(pages).or_insert(cost);
            *known = cost.min(*known);
        };
        let new = (request.page(), request.is_write());
        for (pages, &cost) in &costs {
            if let Some(at) = pages.iter().position(|(page, _)| *page == request.page()) {
                let mut pages = pages.clone();
                pages[at].1 |= request.is_write();
                reach(pages, cost);
            } else if pages.len() < frames as usize {
                reach([pages.as_slice(), &[new]].concat(), cost + read);
            } else {
                for victim in 0..pages.len() {
                    let mut pages = pages.clone();
                    let (_, dirty) = std::mem::replace(&mut pages[victim], new);
                    reach(pages, cost + read + if dirty { write } else { 0 });
                }
            }
        }
        costs = after;
    }
    costs.into_values().min().unwrap_or(0)
}

fn cost_of(text: &str, requests: &[Request], options: CostBoundOptions) -> u64 {
    let workload = Workload { pages_end: 1 << 16, future: requests };
    let mut policy = PolicySpec::parse(text).unwrap().build(options.frames, workload).unwrap();
    let mut tally = Tally::default();
    policy.run(requests, &mut tally);
    tally.misses * u64::from(options.read_cost) + tally.write_backs * u64::from(options.write_cost)
}

proptest! {
    #[test]
    fn no_schedule_is_cheaper_than_the_bound(
        requests in requests(6).prop_map(|all| all.into_iter().take(40).collect::<Vec<_>>()),
        frames in 1u32..5,
        (read_cost, write_cost) in (0u32..4, 0u32..9),
    ) {
        let options = CostBoundOptions { frames, read_cost, write_cost, rounds: 60 };
        let bound = cost_bound(&requests, options).unwrap();
        let of = |read, write| least_cost(&requests, frames, read, write);
        prop_assert_eq!(bound.misses_min, of(1, 0));
        prop_assert!(bound.write_backs_min <= of(0, 1));
        let least = of(u64::from(read_cost), u64::from(write_cost));
        prop_assert!(bound.apart <= least && bound.relaxed <= least, "{bound:?} over {least}");
    }

    #[test]
    fn no_policy_is_cheaper_than_the_bound(
        requests in requests(40),
        frames in 1u32..24,
        (read_cost, write_cost) in (1u32..4, 0u32..65),
    ) {
        let options = CostBoundOptions { frames, read_cost, write_cost, rounds: 30 };
        let bound = cost_bound(&requests, options).unwrap();
        for name in PolicySpec::NAMES {
            let cost = cost_of(name, &requests, options);
            prop_assert!(cost >= bound.cost(), "{name} pays {cost}, below {bound:?}");
        }
    }
}

/// A bound that is always 0 would pass the other tests. On small instances the bound is close to
/// the least cost, and the relaxed bound is above the other one if reads and writes conflict.
#[test]
fn the_bound_is_near_the_least_cost() {
    let mut rng = Rng::new(11);
    let (mut least, mut bound, mut apart) = (0, 0, 0);
    for _ in 0..60 {
        let requests: Vec<Request> =
            (0..60).map(|_| Request::new(PageNo(rng.below(7)), rng.chance(0.4))).collect();
        let options = CostBoundOptions { frames: 3, read_cost: 1, write_cost: 4, rounds: 300 };
        least += least_cost(&requests, 3, 1, 4);
        let found = cost_bound(&requests, options).unwrap();
        (bound, apart) = (bound + found.cost(), apart + found.apart);
    }
    println!("least {least}, bound {bound}, apart {apart}");
    assert!(bound * 100 > least * 95 && bound > apart, "least {least}, {bound}, {apart}");
}

/// If writes cost nothing the linear program is exact, and OPT's misses show how close the rents
/// come to the best ones.
#[test]
fn rents_come_near_the_best_ones() {
    let mut rng = Rng::new(12);
    let requests: Vec<Request> = (0..20_000)
        .map(|_| {
            let below = 1 + rng.below(2000);
            let page = rng.below(below);
            Request::new(PageNo(page), rng.chance(0.4))
        })
        .collect();
    let options = CostBoundOptions { frames: 200, read_cost: 1, write_cost: 0, rounds: 300 };
    let bound = cost_bound(&requests, options).unwrap();
    println!("{bound:?}");
    assert!(bound.relaxed * 100 >= bound.misses_min * 98, "{bound:?}");
}
