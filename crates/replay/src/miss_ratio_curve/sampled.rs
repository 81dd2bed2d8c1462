//! Some pages followed in place of all: SHARDS, and its likely error.
//!
//! Source: Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015. A
//! page is followed if its hash is below a threshold, a share R of all hashes. Each followed request
//! stands for 1/R requests, each page within a distance for 1/R pages. With a fixed number of pages
//! (section 3.2 there) the threshold decreases whenever one too many is followed; earlier requests keep
//! their weight. As in SHARDS-adj, the difference between the expected and the actual number of followed
//! requests counts as hits of every cache: that is, misses are estimated only from the followed misses.
//!
//! **The error** has two random sources. *The choice of pages*: the pages are divided by their
//! hash into 16 groups, and the spread of the misses between the groups gives the standard error of
//! their sum (random groups; Wolter, "Introduction to variance estimation", chapter 2). *The number
//! of pages between two uses*: a distance of c pages is known with a standard error of
//! sqrt(c (1-R) / R), and the curve at c as far as it falls within that. The squares of both add up.
//! As a check of both together, the sample is also divided into 8 parts, each with distances of its
//! own: whole estimates that share no page. Their spread gives a standard error too, and the larger
//! one counts. The stated error is half of a 95 % confidence interval: the standard error times the
//! quantile of Student's t for so many groups.
use super::CurvePoint;
use super::log_histogram::LogHistogram;
use super::tracker::Tracker;
use std::collections::BinaryHeap;
use tantalum_base::PageNo;

const GROUPS: usize = 16;
/// Parts of the sample that are samples of their own.
const PARTS: usize = 8;
/// 97.5 % of Student's t with so many degrees of freedom lie below this: one less than [`GROUPS`], and than [`PARTS`].
const T_GROUPS: f64 = 2.131;
const T_PARTS: f64 = 2.365;

/// Number of all hashes.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// Estimates by size.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    tracker: Tracker,
    seed: u64,
    /// Pages with a hash below this are followed.
    threshold: u64,
    /// Share of all hashes that lie below it.
    rate: f64,
    /// Maximum number of followed pages, and the followed pages by their hash, the greatest on top.
    pages_max: usize,
    followed: BinaryHeap<(u64, PageNo)>,
    reads: u64,
    writes: u64,
    sampled_requests: u64,
    read_misses: Misses,
    write_misses: Misses,
    /// Misses of reads and writes by the page's group.
    group_misses: Vec<Misses>,
    parts: Vec<Part>,
    first_uses: f64,
    /// Updates by the smallest cache in which they are not written back before the next one.
    write_backs: LogHistogram,
    write_backs_all: f64,
    /// Last updates by the smallest cache in which they are still dirty at the end.
    dirty: LogHistogram,
    dirty_all: f64,
}

/// A part of the sample, followed without the others.
#[derive(Debug, Default)]
struct Part {
    tracker: Tracker,
    misses: Misses,
}

/// Requests by the smallest cache in which they hit.
#[derive(Clone, Debug, Default)]
struct Misses {
    all: f64,
    hits: LogHistogram,
}

impl Misses {
    #[inline]
    fn add(&mut self, distance: Option<u64>, weight: f64) {
        self.all += weight;
        if let Some(distance) = distance {
            self.hits.add(distance, weight);
        }
    }

    fn at(&self, cache_pages: u64) -> f64 {
        (self.all - self.hits.up_to(cache_pages)).max(0.0)
    }
}

impl Sampled {
    /// Follows a share `rate` of the pages, but at most `pages_max` of them.
    pub(super) fn new(rate: f64, pages_max: usize, seed: u64) -> Self {
        Sampled {
            seed,
            threshold: (rate * HASHES) as u64,
            rate,
            pages_max,
            group_misses: vec![Misses::default(); GROUPS],
            parts: (0..PARTS).map(|_| Part::default()).collect(),
            ..Sampled::default()
        }
    }

    #[inline]
    pub(super) fn request(&mut self, page: PageNo, is_write: bool) {
        if is_write {
            self.writes += 1;
        } else {
            self.reads += 1;
        }
        let hash = hash(page, self.seed);
        if hash < self.threshold || self.threshold == u64::MAX {
            self.follow(page, hash, is_write);
        }
    }

    fn follow(&mut self, page: PageNo, hash: u64, is_write: bool) {
        if self.pages_max < usize::MAX && !self.tracker.contains(page) {
            self.followed.push((hash, page));
        }
        let weight = 1.0 / self.rate;
        let this = self.tracker.request(page, is_write, weight);
        self.sampled_requests += 1;
        let misses = if is_write { &mut self.write_misses } else { &mut self.read_misses };
        misses.add(this.distance, weight);
        // The lowest bits are independent of the hash's size.
        self.group_misses[hash as usize % GROUPS].add(this.distance, weight);
        let part = &mut self.parts[hash as usize % PARTS];
        let alone = part.tracker.request(page, is_write, PARTS as f64 * weight);
        part.misses.add(alone.distance, PARTS as f64 * weight);
        if this.distance.is_none() {
            self.first_uses += weight;
        }
        if let Some(pages) = this.written_back_below {
            self.write_backs.add(pages, weight);
            self.write_backs_all += weight;
        }
        if self.followed.len() > self.pages_max {
            self.lower_threshold();
        }
    }

    /// Stops following the page (or pages) with the greatest hash.
    fn lower_threshold(&mut self) {
        let Some(&(greatest, _)) = self.followed.peek() else { return };
        self.threshold = greatest;
        self.rate = greatest as f64 / HASHES;
        while let Some(&(hash, page)) = self.followed.peek()
            && hash >= greatest
        {
            self.followed.pop();
            self.tracker.forget(page);
            self.parts[hash as usize % PARTS].tracker.forget(page);
        }
    }

    pub(super) fn finish(&mut self) {
        let weight = 1.0 / self.rate;
        for (_, pages) in self.tracker.last_updates(weight) {
            self.dirty.add(pages, weight);
            self.dirty_all += weight;
        }
    }

    /// The share of the pages that is followed now.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn sampled_requests(&self) -> u64 {
        self.sampled_requests
    }

    /// Number of pages that are followed now.
    pub(super) fn sampled_pages(&self) -> usize {
        self.tracker.pages()
    }

    pub(super) fn distinct_pages(&self) -> u64 {
        at_most(self.first_uses, self.reads + self.writes)
    }

    /// The estimates, none of which is beyond its bound: a page is written back at most once for each miss, and for each
    /// write; after that only other writes are still dirty.
    pub(super) fn point(&self, cache_pages: u64) -> CurvePoint {
        let requests = self.reads + self.writes;
        let read_misses = at_most(self.read_misses.at(cache_pages), self.reads);
        let write_misses = at_most(self.write_misses.at(cache_pages), self.writes);
        let dirty = self.dirty.up_to(cache_pages);
        let before_next = self.write_backs_all - self.write_backs.up_to(cache_pages);
        let updates = self.writes.min(read_misses + write_misses);
        let dirty_pages_at_end = at_most(dirty, updates.min(cache_pages));
        let physical_writes =
            at_most(before_next + self.dirty_all - dirty, updates - dirty_pages_at_end);
        CurvePoint {
            cache_pages,
            requests,
            read_misses,
            write_misses,
            physical_writes,
            dirty_pages_at_end,
            miss_ratio_error: Some(self.error(cache_pages, requests)),
        }
    }

    /// Half of the 95 % confidence interval of the miss ratio.
    fn error(&self, cache_pages: u64, requests: u64) -> f64 {
        // If all pages are followed there is no randomness.
        let left_out = 1.0 - self.rate;
        let at = |misses: &Misses| misses.at(cache_pages);
        let groups: Vec<f64> = self.group_misses.iter().map(at).collect();
        let pages = T_GROUPS * GROUPS as f64 * standard_error(&groups) * left_out.sqrt();
        let reach = T_GROUPS * (cache_pages as f64 * left_out / self.rate).sqrt();
        let misses = |pages: f64| {
            let pages = pages.max(0.0) as u64;
            self.read_misses.at(pages) + self.write_misses.at(pages)
        };
        let size = cache_pages as f64;
        let (above, below) =
            (misses(size - reach) - misses(size), misses(size) - misses(size + reach));
        let parts: Vec<f64> = self.parts.iter().map(|part| at(&part.misses)).collect();
        let of_parts = T_PARTS * standard_error(&parts) * left_out.sqrt();
        let error = pages.hypot(above.max(below)).max(of_parts);
        (error / requests.max(1) as f64).min(1.0)
    }
}

/// `estimate` as a count that cannot exceed `most`.
fn at_most(estimate: f64, most: u64) -> u64 {
    (estimate.max(0.0).round() as u64).min(most)
}

/// The standard error of the mean of these numbers.
fn standard_error(numbers: &[f64]) -> f64 {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (squares / (count - 1.0) / count).sqrt()
}

/// 64 bits that look random and are the same in every run (the finaliser of splitmix64; Steele, Lea,
/// Flood, OOPSLA 2014).
#[inline]
fn hash(page: PageNo, seed: u64) -> u64 {
    let mix = |mut word: u64| {
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    mix(page.0 ^ mix(seed))
}
