//! Cache-only replay: policies times cache sizes over one trace in memory, counting misses and write-backs. There is no
//! device and no time: a policy's decisions depend on neither.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, FastSet, PageNo, Result};
use tantalum_policy::{PolicySpec, Request, Tally, Workload};
use tantalum_runtime::supervision;
use tantalum_trace::open::trace_name;
use tantalum_trace::{OpenOptions, PageEvent, open_pages};

use crate::in_memory::InMemory;
use crate::side_by_side::side_by_side;
use crate::work::{TOLD_EVERY, Work};

/// A trace in memory, 8 bytes per request.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheTrace {
    /// Its name in rows.
    pub name: String,
    /// Requests in order; a request of several pages becomes one request for each.
    pub requests: Vec<Request>,
    /// All page numbers are below this.
    pub pages_end: u64,
}

impl CacheTrace {
    /// Collects the reads and writes of `events`; commit points and trims do not affect a cache.
    ///
    /// # Errors
    /// `OutOfSpace` if they exceed the memory, `OutOfRange` for a page number of more than 62 bits; those of `events`.
    pub fn collect(
        name: &str,
        events: impl Iterator<Item = Result<PageEvent>>,
    ) -> Result<CacheTrace> {
        let mut requests = InMemory::new();
        let mut pages_end = 0;
        for event in events {
            let (first, pages, write) = match event? {
                PageEvent::Read { page, pages } => (page.0, pages, false),
                PageEvent::Write { page, pages } => (page.0, pages, true),
                PageEvent::Trim { .. } | PageEvent::Commit => continue,
            };
            let end = first.checked_add(u64::from(pages)).filter(|end| *end <= Request::PAGE_MAX);
            let Some(end) = end else {
                return Err(Error::new(
                    ErrorKind::OutOfRange,
                    format!(
                        "{name}: page {first} is over the limit of 62 bits; --renumber numbers the \
                         pages anew"
                    ),
                ));
            };
            pages_end = pages_end.max(end);
            for page in (first..end).map(PageNo) {
                requests.push(Request::new(page, write), name)?;
            }
        }
        Ok(CacheTrace { name: name.to_owned(), requests: requests.into_vec(), pages_end })
    }

    /// Reads the trace at `path`, with the name that [`trace_name`] gives it.
    pub fn load(path: &Path, options: &OpenOptions) -> Result<CacheTrace> {
        CacheTrace::collect(&trace_name(path), open_pages(path, options)?)
    }

    /// The same without most of the gaps between page numbers, so that a device need not contain them. Policies that use the
    /// neighbourhood of pages decide as before: pages move in whole groups, of 64 or 16. If pages are so far apart that even
    /// groups of 16 are nearly empty, each page is a group.
    pub fn with_few_gaps(mut self) -> CacheTrace {
        const PAGES_PER_DISTINCT_MAX: u64 = 8;
        let distinct = self.distinct_pages();
        let groups_of = |group_pages: u64| {
            distinct_of(self.requests.iter().map(|request| request.page().0 / group_pages))
        };
        let fits = |group_pages: u64, groups: u64| {
            groups * group_pages <= PAGES_PER_DISTINCT_MAX * distinct
        };
        let (mut group_pages, mut groups) = (1, FastSet::default());
        for tried in [64, 16, 1] {
            (group_pages, groups) = (tried, groups_of(tried));
            if fits(tried, groups.len() as u64) {
                break;
            }
        }
        let mut numbers: Vec<u64> = groups.into_iter().collect();
        numbers.sort_unstable();
        self.pages_end = 0;
        for request in &mut self.requests {
            let page = request.page().0;
            let rank = numbers.partition_point(|number| *number < page / group_pages) as u64;
            let moved = rank * group_pages + page % group_pages;
            self.pages_end = self.pages_end.max(moved + 1);
            *request = Request::new(PageNo(moved), request.is_write());
        }
        self
    }

    /// Number of distinct pages: a cache size in percent refers to it.
    pub fn distinct_pages(&self) -> u64 {
        distinct_of(self.requests.iter().map(|request| request.page().0)).len() as u64
    }
}

/// The distinct elements of `numbers`. The set grows with its elements; `collect` would reserve room for all `numbers`, which
/// are as many as the trace's requests.
fn distinct_of(numbers: impl Iterator<Item = u64>) -> FastSet<u64> {
    let mut set = FastSet::default();
    for number in numbers {
        set.insert(number);
    }
    set
}

/// The options of a replay.
#[derive(Clone, Debug)]
pub struct CacheReplayOptions {
    /// Policies, in the order of the rows.
    pub policies: Vec<PolicySpec>,
    /// Cache sizes in pages; each policy is run with each.
    pub cache_pages: Vec<u32>,
    /// Whether to measure the time of each run, one run after the other. If not, runs share the cores and the rows are a pure
    /// function of trace and options.
    pub timing: bool,
    /// Maximum number of threads.
    pub threads: usize,
}

/// One policy with one cache size.
#[derive(Clone, PartialEq, Debug)]
pub struct CacheRow {
    /// The trace's name.
    pub trace: String,
    /// The policy as it was given.
    pub policy: String,
    /// Cache size in pages.
    pub cache_pages: u32,
    /// Number of requested pages.
    pub requests: u64,
    /// Requests whose page was not cached.
    pub misses: u64,
    /// The misses that were reads.
    pub read_misses: u64,
    /// The misses that were writes.
    pub write_misses: u64,
    /// Pages fetched: every missed page is fetched, even if it is to be updated.
    pub physical_reads: u64,
    /// Dirty pages written back because they were evicted.
    pub physical_writes: u64,
    /// Dirty pages still in the cache at the end; not in `physical_writes`.
    pub dirty_pages_at_end: u32,
    /// Memory of the policy at the end, including its page table.
    pub memory_bytes: u64,
    /// Measured time of the run; `None` without timing.
    pub seconds: Option<f64>,
}

/// Runs every policy with every cache size, policies outermost, and reports its progress to `work`. The rows are in the order
/// of the options; if runs are requested to end, only the complete ones.
pub fn replay(
    trace: &CacheTrace,
    options: &CacheReplayOptions,
    work: &Work,
) -> Result<Vec<CacheRow>> {
    let runs: Vec<(&PolicySpec, u32)> = options
        .policies
        .iter()
        .flat_map(|policy| options.cache_pages.iter().map(move |&pages| (policy, pages)))
        .collect();
    let threads = if options.timing { 1 } else { options.threads };
    work.begin("counting", runs.len(), trace.requests.len());
    let rows = side_by_side(&runs, threads, work, |&(policy, cache_pages)| {
        run(trace, policy, cache_pages, options.timing, work)
    })?;
    Ok(rows.into_iter().flatten().collect())
}

fn run(
    trace: &CacheTrace,
    spec: &PolicySpec,
    cache_pages: u32,
    timing: bool,
    work: &Work,
) -> Result<CacheRow> {
    let workload = Workload { pages_end: trace.pages_end, future: &trace.requests };
    let mut policy = spec.build(cache_pages, workload)?;
    let mut tally = Tally::default();
    let mut serve = || {
        for some in trace.requests.chunks(TOLD_EVERY) {
            supervision::check_stop()?;
            policy.run(some, &mut tally);
            work.add_requests(some.len());
        }
        Ok(())
    };
    let seconds = if timing {
        let (served, seconds) = timed(serve);
        served?;
        Some(seconds)
    } else {
        serve()?;
        None
    };
    Ok(CacheRow {
        trace: trace.name.clone(),
        policy: spec.text().to_owned(),
        cache_pages,
        requests: tally.requests,
        misses: tally.misses,
        read_misses: tally.read_misses(),
        write_misses: tally.write_misses,
        physical_reads: tally.misses,
        physical_writes: tally.write_backs,
        dirty_pages_at_end: policy.dirty_pages(),
        memory_bytes: policy.memory_bytes(),
        seconds,
    })
}

/// The result of `work`, and its time on the real clock in seconds.
#[expect(clippy::disallowed_methods, reason = "measures the simulator itself, on request only")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = std::time::Instant::now();
    let done = work();
    (done, start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_trace::Generator;

    fn trace() -> CacheTrace {
        let text = "zipf:pages=5000,requests=60000,theta=0.9,writes=0.3,commit=5,seed=7";
        CacheTrace::collect("zipf", Generator::parse(text).unwrap().map(Ok)).unwrap()
    }

    fn options(threads: usize, timing: bool) -> CacheReplayOptions {
        CacheReplayOptions {
            policies: PolicySpec::parse_list("lru,clock:bits=2,sieve,opt,fifo").unwrap(),
            cache_pages: vec![100, 1000, 100],
            timing,
            threads,
        }
    }

    #[test]
    fn rows_are_the_same_on_any_number_of_threads() {
        let trace = trace();
        let one = replay(&trace, &options(1, false), &Work::default()).unwrap();
        assert_eq!(one.len(), 15);
        for threads in [2, 3, 64] {
            assert_eq!(replay(&trace, &options(threads, false), &Work::default()).unwrap(), one);
        }
        let order: Vec<(&str, u32)> =
            one.iter().map(|row| (row.policy.as_str(), row.cache_pages)).collect();
        assert_eq!(order[..4], [("lru", 100), ("lru", 1000), ("lru", 100), ("clock:bits=2", 100)]);
        assert!(one.iter().all(|row| row.seconds.is_none() && row.requests == 60_000));
    }

    #[test]
    fn a_set_of_pages_has_room_for_these_and_not_for_each_request() {
        let pages = distinct_of((0..1_000_000).map(|number| number % 1_000));
        assert_eq!(pages.len(), 1_000);
        assert!(pages.capacity() < 4_000, "{}", pages.capacity());
    }

    #[test]
    fn the_counts_hang_together() {
        let trace = trace();
        let rows = replay(&trace, &options(2, true), &Work::default()).unwrap();
        let misses = |policy: &str, pages: u32| {
            rows.iter().find(|row| row.policy == policy && row.cache_pages == pages).unwrap().misses
        };
        for row in &rows {
            assert!(row.misses >= misses("opt", row.cache_pages), "{row:?}");
            assert_eq!(row.misses, row.read_misses + row.write_misses);
            assert!(row.misses >= trace.distinct_pages());
            assert!(row.seconds.unwrap() > 0.0);
        }
        assert!(misses("lru", 1000) < misses("lru", 100));
    }

    /// REF and FAB use the neighbourhood of pages; removing gaps of any kind must not change it.
    #[test]
    fn gaps_go_and_pages_that_lie_together_still_do() {
        let with_gaps = |pages_apart: u64| {
            let mut trace = trace();
            for request in &mut trace.requests {
                let page = request.page().0;
                let page = PageNo(page + page / 100 * pages_apart);
                *request = Request::new(page, request.is_write());
            }
            trace.pages_end = 5_000 + 50 * pages_apart;
            trace
        };
        let options = CacheReplayOptions {
            policies: PolicySpec::parse_list("lru,ref,fab,cfdc").unwrap(),
            ..options(2, false)
        };
        let counts = |trace: &CacheTrace| -> Vec<(u64, u64)> {
            let rows = replay(trace, &options, &Work::default()).unwrap();
            rows.iter().map(|row| (row.misses, row.physical_writes)).collect()
        };
        for pages_apart in [0, 7, 1_000, 1 << 30] {
            let trace = with_gaps(pages_apart);
            let closed = trace.clone().with_few_gaps();
            assert_eq!(counts(&closed), counts(&trace), "{pages_apart} pages apart");
            assert!(closed.pages_end <= 8 * trace.distinct_pages(), "{}", closed.pages_end);
        }
        // These pages have no neighbours: a device of 16 times the pages would contain only gaps.
        let mut lonely = with_gaps(0);
        for request in &mut lonely.requests {
            *request = Request::new(PageNo(request.page().0 << 20), request.is_write());
        }
        let distinct = lonely.distinct_pages();
        assert_eq!(lonely.with_few_gaps().pages_end, distinct);
    }

    #[test]
    fn progress_counts_every_run_and_a_bad_size_fails() {
        let (work, all) = (Work::default(), options(2, false));
        replay(&trace(), &all, &work).unwrap();
        let told = work.done();
        assert_eq!((told.runs, told.runs_in_all), (15, 15));
        assert_eq!((told.requests, told.requests_in_all), (15 * 60_000, 15 * 60_000));

        let none = CacheReplayOptions { cache_pages: vec![0], ..all };
        assert!(replay(&trace(), &none, &Work::default()).is_err());
    }
}
