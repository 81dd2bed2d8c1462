//! Miss-ratio curves of LRU: caches of all sizes in one pass over a trace.
//!
//! ```text
//! stack_distance   number of distinct pages since the last use: a tree of times
//! tracker          the effect of a request for all sizes: smallest size with a hit, with no write-back
//! exact            every page followed; equal to a replay at each size, exactly
//! sampled          SHARDS: some pages stand for all, and the expected error of that
//! log_histogram    weights by distance in little memory
//! ```
//! The trace is not stored: memory grows with the number of followed pages.
mod exact;
mod log_histogram;
mod sampled;
mod stack_distance;
mod tracker;

use exact::Exact;
use sampled::Sampled;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_trace::PageEvent;

/// The pages that are followed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sampling {
    /// All of them: counts are exact.
    None,
    /// This share of them, over 0 and at most 1.
    Rate(f64),
    /// At most this many pages; the share decreases as more come.
    Pages(u32),
}

/// The options of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CurveOptions {
    /// The pages that are followed.
    pub sampling: Sampling,
    /// The seed that chooses them.
    pub seed: u64,
}

/// An estimate from fewer pages, and its error, would be chance.
const SAMPLED_PAGES_MIN: u32 = 64;

/// The results of LRU in caches of any size.
#[derive(Debug)]
pub struct Curve(Inner);

#[derive(Debug)]
enum Inner {
    Exact(Box<Exact>),
    Sampled(Box<Sampled>),
}

/// One size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CurvePoint {
    /// Number of pages of the cache.
    pub cache_pages: u64,
    /// Number of requested pages.
    pub requests: u64,
    /// Reads whose page was not cached.
    pub read_misses: u64,
    /// Writes whose page was not cached.
    pub write_misses: u64,
    /// Dirty pages written back because they were evicted.
    pub physical_writes: u64,
    /// Dirty pages still in the cache at the end.
    pub dirty_pages_at_end: u64,
    /// The exact miss ratio differs by at most this from [`miss_ratio`](Self::miss_ratio) for about 95 of 100 seeds;
    /// `None` if all pages were followed.
    pub miss_ratio_error: Option<f64>,
}

impl CurvePoint {
    /// Requests whose page was not cached.
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }

    /// Their share, 0 to 1; NaN for an empty trace.
    pub fn miss_ratio(&self) -> f64 {
        self.misses() as f64 / self.requests as f64
    }
}

impl Curve {
    /// Follows the reads and writes of `events`.
    ///
    /// # Errors
    /// `InvalidInput` for a rate or a number of pages that cannot be sampled, and for a sample with too few pages for an
    /// estimate; those of `events`.
    pub fn of(
        events: impl IntoIterator<Item = Result<PageEvent>>,
        options: &CurveOptions,
    ) -> Result<Curve> {
        let mut inner = match options.sampling {
            Sampling::None => Inner::Exact(Box::default()),
            Sampling::Rate(rate) if rate > 0.0 && rate <= 1.0 => {
                Inner::Sampled(Box::new(Sampled::new(rate, usize::MAX, options.seed)))
            }
            Sampling::Pages(pages) if pages >= SAMPLED_PAGES_MIN => {
                Inner::Sampled(Box::new(Sampled::new(1.0, pages as usize, options.seed)))
            }
            Sampling::Rate(rate) => {
                return Err(bad(&format!(
                    "a rate over 0 and at most 1, such as 0.01, can be sampled, and not {rate}"
                )));
            }
            Sampling::Pages(_) => {
                return Err(bad(&format!(
                    "at least {SAMPLED_PAGES_MIN} pages can be sampled, such as 8192"
                )));
            }
        };
        match &mut inner {
            Inner::Exact(exact) => {
                each_request(events, |page, is_write| exact.request(page, is_write))?;
                exact.finish();
            }
            Inner::Sampled(sampled) => {
                each_request(events, |page, is_write| sampled.request(page, is_write))?;
                sampled.finish();
                check_size(sampled)?;
            }
        }
        Ok(Curve(inner))
    }

    /// The results of a cache of `cache_pages` pages.
    pub fn point(&self, cache_pages: u64) -> CurvePoint {
        match &self.0 {
            Inner::Exact(exact) => exact.point(cache_pages),
            Inner::Sampled(sampled) => sampled.point(cache_pages),
        }
    }

    /// Number of distinct pages of the trace; an estimate if not all were followed.
    pub fn distinct_pages(&self) -> u64 {
        match &self.0 {
            Inner::Exact(exact) => exact.distinct_pages(),
            Inner::Sampled(sampled) => sampled.distinct_pages(),
        }
    }

    /// The share of the pages that is followed (at the end), and the number of requests for them;
    /// `None` if all are.
    pub fn sample(&self) -> Option<(f64, u64)> {
        match &self.0 {
            Inner::Exact(_) => None,
            Inner::Sampled(sampled) => Some((sampled.rate(), sampled.sampled_requests())),
        }
    }
}

/// Refuses a sample that is too small, unless it is the whole trace.
fn check_size(sampled: &Sampled) -> Result<()> {
    let pages = sampled.sampled_pages();
    let is_large = pages >= SAMPLED_PAGES_MIN as usize;
    if is_large || sampled.rate() >= 1.0 || sampled.point(1).requests == 0 {
        return Ok(());
    }
    Err(bad(&format!(
        "the sample has {pages} pages of the trace, and an estimate needs at least {SAMPLED_PAGES_MIN}: sample a larger share, or follow all pages"
    )))
}

fn each_request(
    events: impl IntoIterator<Item = Result<PageEvent>>,
    mut request: impl FnMut(tantalum_base::PageNo, bool),
) -> Result<()> {
    for event in events {
        for (page, is_write) in event?.requests() {
            request(page, is_write);
        }
    }
    Ok(())
}

fn bad(why: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
}
