//! The traces of the experiments. What is not public is stood in for by captures of PostgreSQL under
//! the same kind of load, and where these are absent too by generators.
use std::sync::Arc;
use tantalum_base::{PageNo, Result, Rng};
use tantalum_policy::Request;
use tantalum_trace::{Generator, OpenOptions, shared};

use super::super::Scale;
use crate::cache_replay::CacheTrace;

/// Requests of the bank trace (appendix B.2).
const BANK_REQUESTS: usize = 607_390;
/// Requests of the TPC-C trace (table B.1).
const TPCC_REQUESTS: usize = 2_841_225;
/// Requests of the OLTP part and the DSS part of CONCAT (table 5.1).
const CONCAT_REQUESTS: (usize, usize) = (1_420_613, 3_250_972);

/// What section 3.3.1 and 3.3.2 make up: reads and updates of single pages, after a self-similar
/// distribution, among scans that read or update pages one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Synthetic {
    /// Reads of a single page, and as many updates.
    pub(super) singles: u64,
    /// Scans that read, and as many that update.
    pub(super) scans: u64,
    /// Pages of a scan.
    pub(super) scan_pages: u64,
    /// Single pages lie in `0..pages`.
    pub(super) pages: u64,
    /// A share 1 - `hot` of the single requests goes to a share `hot` of the pages, and so on
    /// within these.
    pub(super) hot: f64,
    /// Where scans begin: from the first on, before the second.
    pub(super) scan_starts: (u64, u64),
}

impl Synthetic {
    /// Section 3.3.1, or a `share` of it: requests and pages alike.
    pub(super) fn mixed(share: f64) -> Synthetic {
        let part = |whole: f64| (whole * share).round() as u64;
        Synthetic {
            singles: part(100_000.0),
            scans: part(100.0),
            scan_pages: 200,
            pages: part(100_000.0),
            hot: 0.2,
            scan_starts: (0, part(100_000.0)),
        }
    }

    /// Section 3.3.2 with `scans` scans of each kind: hotter single pages, scans elsewhere.
    pub(super) fn scans(scans: u64) -> Synthetic {
        Synthetic { scans, hot: 0.1, scan_starts: (100_000, 150_000), ..Synthetic::mixed(1.0) }
    }

    /// The trace; what comes when is drawn with `seed`.
    pub(super) fn trace(&self, seed: u64) -> Arc<CacheTrace> {
        let mut rng = Rng::split(seed, "synthetic");
        let (mut singles, mut scans) = ([self.singles; 2], [self.scans; 2]);
        let mut requests = Vec::new();
        loop {
            let left = [singles[0], singles[1], scans[0], scans[1]];
            let all: u64 = left.iter().sum();
            if all == 0 {
                break;
            }
            let mut drawn = rng.below(all);
            let kind = left.iter().position(|kind| match drawn.checked_sub(*kind) {
                Some(rest) => {
                    drawn = rest;
                    false
                }
                None => true,
            });
            let kind = kind.unwrap_or(0);
            let update = kind % 2 == 1;
            if kind < 2 {
                singles[kind] -= 1;
                requests.push(Request::new(PageNo(self.single(&mut rng)), update));
            } else {
                scans[kind - 2] -= 1;
                let (from, to) = self.scan_starts;
                let first = from + rng.below(to - from);
                let pages = (first..first + self.scan_pages).map(PageNo);
                requests.extend(pages.map(|page| Request::new(page, update)));
            }
        }
        let pages_end = self.pages.max(self.scan_starts.1) + self.scan_pages;
        Arc::new(CacheTrace { name: "synthetic".to_owned(), requests, pages_end })
    }

    /// Self-similar: the share of the hottest pages is halved again and again, as often as a draw
    /// says; low numbers are hot (Gray et al., "Quickly generating billion-record synthetic
    /// databases", SIGMOD 1994).
    fn single(&self, rng: &mut Rng) -> u64 {
        let drawn = rng.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let exponent = self.hot.ln() / (1.0 - self.hot).ln();
        ((self.pages as f64 * drawn.powf(exponent)) as u64).min(self.pages - 1)
    }
}

/// The first `requests` of a capture, or of the generator where it is not there.
fn capture(name: &str, generator: &str, requests: usize) -> Result<CacheTrace> {
    let path = shared::find(&format!("traces/databases/{name}.csv.zst"));
    let mut trace = match path {
        Some(path) => CacheTrace::load(&path, &OpenOptions::default())?,
        None => {
            let text = format!("{generator},requests={requests}");
            let text = match generator.starts_with("tpcc") {
                // Ten pages a transaction or so.
                true => format!("{generator},transactions={}", requests / 4),
                false => text,
            };
            CacheTrace::collect(&text, Generator::parse(&text)?.map(Ok))?
        }
    };
    trace.requests.truncate(requests);
    let highest = trace.requests.iter().map(|request| request.page().0 + 1).max();
    trace.pages_end = highest.unwrap_or(1);
    Ok(trace)
}

/// TPC-C: PostgreSQL's, in place of the dissertation's; `requests` of it.
fn tpcc(requests: usize) -> Result<CacheTrace> {
    capture("tpcc-pg-logical", "tpcc:warehouses=4", requests)
}

/// TPC-H: read-only queries.
fn tpch(requests: usize) -> Result<CacheTrace> {
    capture("tpch-pg-logical", "self_similar:pages=200000,h=0.25", requests)
}

/// In place of the bank trace, which is not public: as many requests of TPC-C.
pub(super) fn bank(scale: Scale) -> Result<Arc<CacheTrace>> {
    tpcc(if scale == Scale::Small { 60_000 } else { BANK_REQUESTS }).map(Arc::new)
}

/// TPC-C, as long as in the dissertation or shorter.
pub(super) fn oltp(scale: Scale) -> Result<Arc<CacheTrace>> {
    tpcc(match scale {
        Scale::Small => 60_000,
        Scale::Full => BANK_REQUESTS,
        Scale::Paper => TPCC_REQUESTS,
    })
    .map(Arc::new)
}

/// TPC-H, in place of the read-mostly TPC-E trace.
pub(super) fn read_only(scale: Scale) -> Result<Arc<CacheTrace>> {
    tpch(match scale {
        Scale::Small => 60_000,
        Scale::Full => BANK_REQUESTS,
        // Table B.1: tpce20.
        Scale::Paper => 2_613_847,
    })
    .map(Arc::new)
}

/// CONCAT (5.3.1): OLTP, DSS, and both again; where each of the four phases ends, in requests.
pub(super) fn concat(scale: Scale) -> Result<(Arc<CacheTrace>, [usize; 4])> {
    let share = if scale == Scale::Small { 0.04 } else { 1.0 };
    let part = |requests: usize| (requests as f64 * share) as usize;
    let (oltp, dss) = (tpcc(part(CONCAT_REQUESTS.0))?, tpch(part(CONCAT_REQUESTS.1))?);
    // No page is in both.
    let shifted = |request: &Request| {
        Request::new(PageNo(request.page().0 + oltp.pages_end), request.is_write())
    };
    let mut requests = oltp.requests.clone();
    requests.extend(dss.requests.iter().map(shifted));
    requests.extend_from_within(..);
    let (first, half) = (oltp.requests.len(), requests.len() / 2);
    let name = format!("{} and {}, twice", oltp.name, dss.name);
    let trace = CacheTrace { name, requests, pages_end: oltp.pages_end + dss.pages_end };
    Ok((Arc::new(trace), [first, half, half + first, 2 * half]))
}
