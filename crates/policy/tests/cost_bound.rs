//! The cost bound on page traces of PostgreSQL: no policy costs less. Prints the cost of each over
//! the bound (`cargo test --release -p tantalum-policy --test cost_bound -- --nocapture`).
mod support;

use std::path::Path;
use support::load;
use tantalum_policy::cost_bound::{CostBoundOptions, cost_bound};
use tantalum_policy::{PolicySpec, Request, Tally, Workload};
use tantalum_testing::found;
use tantalum_trace::shared;

/// Runs every policy of the registry, with given costs if it accepts them, and prints its cost over
/// the bound.
fn nobody_pays_less(requests: &[Request], frames: u32, write_cost: u32, rounds: u32) {
    let options = CostBoundOptions { frames, read_cost: 1, write_cost, rounds };
    let bound = cost_bound(requests, options).unwrap();
    println!("{frames} frames, 1:{write_cost}: at least {}, {bound:?}", bound.cost());
    let pages_end = support::pages_end(requests);
    for name in PolicySpec::NAMES {
        let text = match *name {
            "casa" | "sawc" => format!("{name}:cost=1:{write_cost}"),
            _ => (*name).to_owned(),
        };
        let workload = Workload { pages_end, future: requests };
        let mut policy = PolicySpec::parse(&text).unwrap().build(frames, workload).unwrap();
        let mut tally = Tally::default();
        policy.run(requests, &mut tally);
        let cost = tally.misses + tally.write_backs * u64::from(write_cost);
        println!("  {text}: {cost}, {:.3} times the bound", cost as f64 / bound.cost() as f64);
        assert!(tally.misses >= bound.misses_min, "{text}: {tally:?} below {bound:?}");
        assert!(tally.write_backs >= bound.write_backs_min, "{text}: {tally:?} below {bound:?}");
        assert!(cost >= bound.cost(), "{text}: {tally:?} below {bound:?}");
    }
}

#[test]
fn the_bound_holds_on_the_sample() {
    let sample = "../trace/samples/tpcc-pg-logical-6000.csv.zst";
    let requests = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(sample));
    for write_cost in [1, 4, 64] {
        nobody_pays_less(&requests, 200, write_cost, 60);
    }
}

#[test]
fn the_bound_holds_on_the_whole_trace() {
    let Some(path) =
        found(shared::find("traces/databases/tpcc-pg-logical.csv.zst"), "shared traces")
    else {
        return;
    };
    let requests = load(&path);
    // Tests without optimisation have time for only one case and a few rounds.
    let (costs, rounds) =
        if cfg!(debug_assertions) { (&[4][..], 5) } else { (&[1, 4, 16, 64][..], 60) };
    for &write_cost in costs {
        nobody_pays_less(&requests, 4000, write_cost, rounds);
    }
}
