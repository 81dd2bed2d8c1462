//! The bank's trace (appendix B.2): one hour of a bank's database, also used by the LRU-K paper.
//!
//! Its order of page requests was published with ARC (`arc_OLTP`: 914,145 requests for 186,880 pages; the dissertation's
//! copy has 607,390 for 51,880). Two things are missing there:
//!
//! - *The requests that update.* Table B.1: 22.51 % of them. Here a seeded half of the pages is updated and the other
//!   half never is. Of the requests for the first half, a seeded choice updates, such that the share of all requests is
//!   22.51 %. With half of the pages LRU makes 0.25 and 0.27 writes per read with 1,000 and 10,000 pages, the
//!   dissertation's LRU 0.24 and 0.29. The two extremes, all pages alike and pages that are always or never updated, are
//!   counted as well.
//! - *The neighbourhood of pages.* Pages are numbered in the order of their first request. Nothing that depends on
//!   clusters can be measured with it; on devices its pages are scattered.
use tantalum_base::{PageNo, Result, Rng};
use tantalum_policy::Request;
use tantalum_trace::{OpenOptions, shared};

use super::super::Scale;
use super::workload::{first, generated};
use tantalum_replay::cache_replay::CacheTrace;

/// Share of the requests that update (table B.1).
pub(super) const UPDATES: f64 = 0.2251;
/// Share of the pages that are updated at all.
pub(super) const UPDATED_PAGES: f64 = 0.5;
/// Enough to fill 10,000 pages and to evict the same number.
const SMALL_REQUESTS: usize = 100_000;
/// The share of PostgreSQL's write requests in the capture of TPC-C that only set hint bits: 171,567 of 838,142. The
/// capture does not identify them.
const HINT_BITS: f64 = 171_567.0 / 838_142.0;

/// The published order, with reads only; `None` if the file is absent. At the small scale the order of generated TPC-C,
/// which is the same everywhere.
pub(super) fn order(scale: Scale) -> Result<Option<CacheTrace>> {
    if scale == Scale::Small {
        let mut order = first(generated("tpcc:warehouses=4,transactions=20k")?, SMALL_REQUESTS)?;
        for request in &mut order.requests {
            *request = Request::new(request.page(), false);
        }
        return Ok(Some(order));
    }
    let Some(path) = shared::find("traces/public/arc_OLTP.csv.zst") else { return Ok(None) };
    CacheTrace::load(&path, &OpenOptions::default()).map(Some)
}

/// The same counts, shares of the hottest pages and updates as in table B.1, in a random order: it lacks recency, the
/// re-use of a page soon after its use.
pub(super) fn without_recency(scale: Scale, seed: u64) -> Result<CacheTrace> {
    let trace = generated(&format!("buffer_trace:like=bank,seed={seed}"))?;
    if scale == Scale::Small { first(trace, SMALL_REQUESTS) } else { Ok(trace) }
}

/// The published order with updates; if it is absent, the trace without recency, whose name says so.
pub(super) fn bank(scale: Scale, seed: u64) -> Result<CacheTrace> {
    match order(scale)? {
        Some(order) => Ok(with_updates(&order, UPDATED_PAGES, seed)),
        None => without_recency(scale, seed),
    }
}

/// `order` with updates of a seeded share `pages` of its pages, a uniform choice among the requests for them; all of
/// these if there are too few.
pub(super) fn with_updates(order: &CacheTrace, pages: f64, seed: u64) -> CacheTrace {
    let mut rng = Rng::split(seed, "updates of the bank");
    let is_updated: Vec<bool> = (0..order.pages_end).map(|_| rng.chance(pages)).collect();
    let updated = |request: &Request| is_updated[request.page().0 as usize];
    let mut left = order.requests.iter().filter(|request| updated(request)).count() as u64;
    let mut updates_left = (order.requests.len() as f64 * UPDATES).round() as u64;
    let mark = |request: &Request| {
        if !updated(request) {
            return *request;
        }
        let update = rng.below(left) < updates_left;
        left -= 1;
        updates_left -= u64::from(update);
        Request::new(request.page(), update)
    };
    let requests = order.requests.iter().map(mark).collect();
    CacheTrace { name: order.name.clone(), requests, pages_end: order.pages_end }
}

/// `trace`, a capture of PostgreSQL, with the share of its writes that only set hint bits turned into reads.
pub(super) fn without_hint_bits(trace: &CacheTrace, seed: u64) -> CacheTrace {
    let mut rng = Rng::split(seed, "hint bits");
    let thin = |request: &Request| {
        let is_hint = request.is_write() && rng.chance(HINT_BITS);
        Request::new(request.page(), request.is_write() && !is_hint)
    };
    let requests = trace.requests.iter().map(thin).collect();
    CacheTrace { name: trace.name.clone(), requests, pages_end: trace.pages_end }
}

/// `trace` with its pages in a random order.
pub(super) fn scattered(trace: &CacheTrace, seed: u64) -> CacheTrace {
    let mut places: Vec<u64> = (0..trace.pages_end).collect();
    Rng::split(seed, "places of the bank's pages").shuffle(&mut places);
    let put = |request: &Request| {
        Request::new(PageNo(places[request.page().0 as usize]), request.is_write())
    };
    let requests = trace.requests.iter().map(put).collect();
    CacheTrace { name: trace.name.clone(), requests, pages_end: trace.pages_end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn order_of(pages: u64, requests: usize) -> CacheTrace {
        let text = format!("zipf:pages={pages},requests={requests},theta=0.8,seed=5");
        generated(&text).unwrap()
    }

    fn updates(trace: &CacheTrace) -> usize {
        trace.requests.iter().filter(|request| request.is_write()).count()
    }

    #[test]
    fn so_many_requests_update_and_only_those_of_so_many_pages() {
        let order = order_of(2_000, 50_000);
        assert_eq!(updates(&order), 0);
        for (share, expected) in [(1.0, 2_000.0), (0.5, 1_000.0)] {
            let marked = with_updates(&order, share, 1);
            assert_eq!(updates(&marked), 11_255, "22.51 % of 50,000");
            let pages = |trace: &CacheTrace| -> Vec<PageNo> {
                trace.requests.iter().map(|request| request.page()).collect()
            };
            assert_eq!(pages(&marked), pages(&order), "the order is as it was");
            let written: BTreeSet<PageNo> = marked
                .requests
                .iter()
                .filter(|request| request.is_write())
                .map(|request| request.page())
                .collect();
            assert!((written.len() as f64) < 1.1 * expected, "{} of {share}", written.len());
            assert_eq!(marked.requests, with_updates(&order, share, 1).requests);
            assert_ne!(marked.requests, with_updates(&order, share, 2).requests);
        }
        // There are too few requests for one page in a thousand: each of them updates, and no other.
        assert!(updates(&with_updates(&order, 0.001, 1)) < 11_255);
    }

    #[test]
    fn a_fifth_of_the_writes_become_reads_and_scattering_keeps_who_asks_when() {
        let marked = with_updates(&order_of(2_000, 50_000), 1.0, 1);
        let kept = updates(&without_hint_bits(&marked, 1)) as f64 / updates(&marked) as f64;
        assert!((0.78..0.81).contains(&kept), "{kept}");
        let scattered = scattered(&marked, 1);
        assert_eq!(scattered.distinct_pages(), marked.distinct_pages());
        assert_eq!(updates(&scattered), updates(&marked));
        assert_ne!(scattered.requests, marked.requests);
    }
}
