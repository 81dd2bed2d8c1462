//! The traces of the experiments. Stand-ins for traces that are not public are captures of PostgreSQL under the same kind
//! of load; if these are absent too, and always at the small scale, generators, which give the same everywhere.
use std::sync::Arc;
use tantalum_base::{PageNo, Result};
use tantalum_policy::Request;
use tantalum_trace::open::trace_name;
use tantalum_trace::{Generator, OpenOptions, PageEvent, open_pages, shared};

use super::super::Scale;
use tantalum_replay::cache_replay::CacheTrace;

/// Number of requests at the small scale.
pub(super) const SMALL_REQUESTS: usize = 20_000;
/// Number of requests of the bank trace (appendix B.2).
const BANK_REQUESTS: usize = 607_390;
/// Number of requests of the TPC-C trace (table B.1).
const TPCC_REQUESTS: usize = 2_841_225;
/// Numbers of requests of the OLTP part and the DSS part of CONCAT (table 5.1).
const CONCAT_REQUESTS: (usize, usize) = (1_420_613, 3_250_972);

/// The synthetic trace of section 3.3.1, or a `share` of its requests and pages.
pub(super) fn mixed(share: f64, seed: u64) -> Result<Arc<CacheTrace>> {
    let (singles, scans) = ((100_000.0 * share) as u64, (200.0 * share) as u64);
    let sizes = format!("pages={singles},reads={singles},updates={singles},scans={scans}");
    generated(&format!("cfdc_synthetic:{sizes},seed={seed}")).map(Arc::new)
}

/// The trace of section 3.3.2 with `scans` scans that read and the same number that update, and a `share` of its single
/// pages.
pub(super) fn scans(scans: u64, share: f64, seed: u64) -> Result<Arc<CacheTrace>> {
    let (scans, singles) = (2 * scans, (100_000.0 * share) as u64);
    let range = (50_000.0 * share) as u64;
    let sizes = format!("pages={singles},reads={singles},updates={singles},scan_range={range}");
    generated(&format!("cfdc_scans:{sizes},scans={scans},seed={seed}")).map(Arc::new)
}

pub(in super::super) fn generated(text: &str) -> Result<CacheTrace> {
    CacheTrace::collect(text, Generator::parse(text)?.map(Ok))
}

/// The first `requests` of a capture, or of the generator if the capture is absent.
pub(in super::super) fn capture(
    name: &str,
    generator: &str,
    requests: usize,
) -> Result<CacheTrace> {
    let path = shared::find(&format!("traces/databases/{name}.csv.zst"));
    let trace = match path {
        Some(path) => {
            // The events after them need not be read.
            let mut left = requests as u64;
            let events = open_pages(&path, &OpenOptions::default())?.take_while(|event| {
                let is_wanted = left > 0;
                if let Ok(PageEvent::Read { pages, .. } | PageEvent::Write { pages, .. }) = event {
                    left = left.saturating_sub(u64::from(*pages));
                }
                is_wanted
            });
            CacheTrace::collect(&trace_name(&path), events)?
        }
        // Longer than requested; cut below.
        None => generated(generator)?,
    };
    first(trace, requests)
}

/// TPC-C: `requests` of PostgreSQL's trace, in place of the dissertation's.
fn tpcc(scale: Scale, requests: usize) -> Result<CacheTrace> {
    match scale {
        Scale::Small => first(generated("tpcc:warehouses=4,transactions=5k")?, requests),
        _ => capture("tpcc-pg-logical", TPCC_50, requests),
    }
}

/// TPC-C with the 50 warehouses of appendix B, without PostgreSQL's additions: indexes, catalogues, hint bits.
const TPCC_50: &str = "tpcc:warehouses=50,transactions=150k";

/// TPC-H: read-only queries.
fn tpch(scale: Scale, requests: usize) -> Result<CacheTrace> {
    match scale {
        Scale::Small => first(
            generated(&format!("self_similar:pages=100000,h=0.12,requests={requests}"))?,
            requests,
        ),
        _ => capture("tpch-pg-logical", "self_similar:pages=200000,h=0.25,requests=4m", requests),
    }
}

/// The first `requests` of `trace`.
pub(in super::super) fn first(mut trace: CacheTrace, requests: usize) -> Result<CacheTrace> {
    trace.requests.truncate(requests);
    let highest = trace.requests.iter().map(|request| request.page().0 + 1).max();
    trace.pages_end = highest.unwrap_or(1);
    Ok(trace)
}

/// The stand-in for the bank trace in experiments with clusters, as the neighbourhood of its pages is not known: the same
/// number of TPC-C requests.
pub(in super::super) fn bank(scale: Scale) -> Result<Arc<CacheTrace>> {
    let requests = if scale == Scale::Small { SMALL_REQUESTS } else { BANK_REQUESTS };
    tpcc(scale, requests).map(Arc::new)
}

/// TPC-C, as long as in the dissertation or shorter.
pub(super) fn oltp(scale: Scale) -> Result<Arc<CacheTrace>> {
    let requests = match scale {
        Scale::Small => SMALL_REQUESTS,
        Scale::Full => BANK_REQUESTS,
        Scale::Paper => TPCC_REQUESTS,
    };
    tpcc(scale, requests).map(Arc::new)
}

/// The read-mostly TPC-E trace (tpce20) with the numbers of table B.1: a random order, so without recency.
pub(super) fn read_intensive(scale: Scale, seed: u64) -> Result<Arc<CacheTrace>> {
    let mut trace = generated(&format!("buffer_trace:like=tpce20,seed={seed}"))?;
    if scale == Scale::Small {
        trace.requests.truncate(60_000);
    }
    Ok(Arc::new(trace))
}

/// CONCAT (5.3.1): OLTP, DSS, and both again; also the end of each of the four phases, in requests.
pub(super) fn concat(scale: Scale) -> Result<(Arc<CacheTrace>, [usize; 4])> {
    let share = if scale == Scale::Small { 0.04 } else { 1.0 };
    let part = |requests: usize| (requests as f64 * share) as usize;
    let (oltp, dss) =
        (tpcc(scale, part(CONCAT_REQUESTS.0))?, tpch(scale, part(CONCAT_REQUESTS.1))?);
    // The parts have no common pages.
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
