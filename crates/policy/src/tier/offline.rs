//! Lower bounds for any middle tier, even one that knows the future requests.
use super::{CostModel, TierCounts};
use crate::cost_bound::{CostBoundOptions, cost_bound};
use crate::policy::Request;
use std::collections::BTreeMap;
use tantalum_base::{FastMap, PageNo, Result};

/// Lower bounds for any tier that holds at most `pages` pages and serves `requests`: the fewest reads from home
/// and the fewest writes home before the end, each by a tier that minimises nothing else; all other reads are
/// hits. Pages may be bypassed, and a page that is written need not be read.
///
/// # Errors
/// `TooLarge` if there are more requests than [`Opt`](crate::opt::Opt) accepts.
pub fn least_counts(requests: &[Request], pages: u32) -> Result<TierCounts> {
    let reads = requests.iter().filter(|request| !request.is_write()).count() as u64;
    let writes = requests.len() as u64 - reads;
    let disk_reads = fewest_reads(requests, pages as usize);
    let options = CostBoundOptions { frames: pages, read_cost: 1, write_cost: 1, rounds: 0 };
    let disk_writes = cost_bound(requests, options)?.write_backs_min;
    Ok(TierCounts {
        reads,
        read_hits: reads - disk_reads,
        writes,
        flash_reads: reads - disk_reads,
        // Writes that go straight home were never on flash.
        flash_sequential_writes: writes - disk_writes.min(writes),
        disk_reads,
        disk_writes,
        ..TierCounts::default()
    })
}

/// A lower bound on the time of any tier, in nanoseconds, if a page of the home costs more than one
/// of flash.
///
/// # Errors
/// As [`least_counts`].
pub fn least_time_ns(requests: &[Request], pages: u32, costs: &CostModel) -> Result<u64> {
    Ok(costs.time(&least_counts(requests, pages)?).total_ns())
}

/// A page that is kept from one request until the next, which is a read, saves one read. So the answer is the
/// largest set of such intervals of which at most `pages` overlap at any time. Whenever there are too many,
/// the interval that ends last is given up.
fn fewest_reads(requests: &[Request], pages: usize) -> u64 {
    let mut next_read: Vec<Option<usize>> = vec![None; requests.len()];
    let mut next: FastMap<PageNo, usize> = FastMap::default();
    for (at, request) in requests.iter().enumerate().rev() {
        let following = next.insert(request.page(), at);
        next_read[at] = following.filter(|following| !requests[*following].is_write());
    }
    // Kept pages, by the time of their next read.
    let mut kept: BTreeMap<usize, ()> = BTreeMap::new();
    let mut misses = 0;
    for (at, request) in requests.iter().enumerate() {
        let hit = kept.remove(&at).is_some();
        misses += u64::from(!hit && !request.is_write());
        if let Some(until) = next_read[at] {
            kept.insert(until, ());
            if kept.len() > pages {
                kept.pop_last();
            }
        }
    }
    misses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::TierSpec;
    use proptest::prelude::*;

    /// The fewest reads, found by trying every set of pages to keep after each request.
    fn tried(requests: &[Request], pages: usize, at: usize, kept: u32) -> u64 {
        let Some(request) = requests.get(at) else { return 0 };
        let bit = 1 << request.page().0;
        let miss = u64::from(!request.is_write() && kept & bit == 0);
        let held = kept | bit;
        let subsets =
            (0..=held).filter(|set| set & !held == 0 && set.count_ones() as usize <= pages);
        miss + subsets.map(|set| tried(requests, pages, at + 1, set)).min().unwrap_or(0)
    }

    fn requests(pages: u64, most: usize) -> impl Strategy<Value = Vec<Request>> {
        let request =
            (0..pages, any::<bool>()).prop_map(|(page, write)| Request::new(PageNo(page), write));
        prop::collection::vec(request, 1..most)
    }

    proptest! {
        #[test]
        fn no_choice_reads_less(requests in requests(3, 9), pages in 1..3_usize) {
            prop_assert_eq!(fewest_reads(&requests, pages), tried(&requests, pages, 0, 0));
        }

        #[test]
        fn no_tier_takes_less(requests in requests(60, 400)) {
            let costs = CostModel {
                flash_read_ns: 35, flash_sequential_write_ns: 350, flash_random_write_ns: 350,
                erase_ns: 1_500, disk_ns: 5_500,
            };
            for name in ["none", "loc", "write_cache", "write_cache:place=sequential", "bl:block=2,high=0.2",
                "lpd:d=2,block=2,high=0.2", "nfa:block=2,high=0.2", "lazy:block=2,high=0.2"] {
                let mut tier = TierSpec::parse(name).unwrap().build(20, 60);
                for request in &requests {
                    if request.is_write() {
                        tier.write(request.page());
                    } else {
                        tier.read(request.page());
                    }
                }
                let pages = tier.blocks().map_or(20, |blocks| blocks.geometry().pages());
                let least = least_counts(&requests, pages).unwrap();
                let counts = tier.counts();
                prop_assert!(counts.disk_reads >= least.disk_reads, "{}", name);
                prop_assert!(counts.disk_writes >= least.disk_writes, "{}", name);
                let time_ns = costs.time(counts).total_ns();
                prop_assert!(time_ns >= least_time_ns(&requests, pages, &costs).unwrap(), "{}", name);
            }
        }
    }
}
