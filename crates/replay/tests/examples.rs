//! The examples do what they say.
#[path = "../examples/compare_policies.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod compare_policies;
#[path = "../examples/own_policy.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod own_policy;

use own_policy::LastInFirstOut;
use tantalum_base::PageNo;
use tantalum_policy::{Policy, Request, Tally};

/// A loop over 100 pages, ten times.
fn pages() -> impl Iterator<Item = u64> {
    (0..1000).map(|at| at % 100)
}

#[test]
fn policies_are_compared_on_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.txt");
    let lines: String = pages().map(|page| format!("{page}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let rows = compare_policies::compare(&path).unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.policy.as_str(), row.cache_pages)).collect();
    assert_eq!(
        seen,
        [("lru", 1), ("lru", 10), ("arc", 1), ("arc", 10), ("s3_fifo", 1), ("s3_fifo", 10)]
    );
    // LRU hits nothing in a loop that is longer than the cache.
    assert!(rows[..2].iter().all(|row| (row.requests, row.misses) == (1000, 1000)));
}

#[test]
fn a_policy_of_ones_own_is_counted() {
    let mut policy = LastInFirstOut { frames: 10, pages: Vec::new() };
    let requests: Vec<Request> = pages().map(|page| Request::new(PageNo(page), false)).collect();
    let mut tally = Tally::default();
    policy.run(&requests, &mut tally);
    // Nine pages stay from the first round on. The tenth frame has the last page of each round, so all other pages miss.
    assert_eq!(tally.requests - tally.misses, 9 * 9);
}
