//! Single pages drawn from a distribution, with commit points at equal distances.
use crate::event::PageEvent;
use crate::zipf::Zipf;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// No device of 4 KiB pages has as many (16 PiB). The limit prevents overflows.
pub(super) const PAGES_MAX: u64 = 1 << 42;

/// The choice of the next page.
#[derive(Clone, Debug)]
enum Choice {
    /// Every page is equally likely.
    Uniform,
    /// The page of rank k has a probability proportional to k^-theta.
    Zipf(Zipf),
    /// The share h of the pages gets the share 1-h of the requests, and recursively so within it (Gray, Sundaresan,
    /// Englert, Baclawski, Weinberger, "Quickly generating billion-record synthetic databases", SIGMOD 1994,
    /// section 3). The exponent is ln h / ln (1-h).
    SelfSimilar { exponent: f64 },
    /// Page after page; after the last, page 0 again.
    Scan { next: u64 },
}

/// Page events with one distribution.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    choice: Choice,
    pages: u64,
    /// Maps ranks to pages; `None` if a rank is the number of its page.
    scatter: Option<Scatter>,
    requests_left: u64,
    write_share: f64,
    /// Writes between two commit points; 0 for no commit points.
    commit_writes: u64,
    /// Writes since the last commit point.
    uncommitted: u64,
    rng: Rng,
}

impl Pattern {
    /// The pattern that `spec` names.
    ///
    /// All accept `pages` (1m), `requests` (10m), `writes` (share of the requests, 0) and `commit` (writes per
    /// transaction, 0 for no commit points). `zipf` accepts `theta` (1), `self_similar` accepts `h` (0.2: 80-20); both
    /// accept `order` (`scattered`, or `sorted` with the hottest page first).
    pub(super) fn of(spec: &mut Spec<'_>, seed: u64) -> Result<Pattern> {
        let pages = spec.count("pages", 1..=PAGES_MAX, 1 << 20)?;
        let skewed = matches!(spec.name(), "zipf" | "self_similar");
        let choice = match spec.name() {
            "uniform" => Choice::Uniform,
            "zipf" => Choice::Zipf(Zipf::new(pages, spec.number("theta", 0.0..=4.0, 1.0)?)),
            "self_similar" => {
                let h = spec.number("h", 0.001..=0.5, 0.2)?;
                Choice::SelfSimilar { exponent: h.ln() / (1.0 - h).ln() }
            }
            "scan" => Choice::Scan { next: 0 },
            _ => return Err(spec.unknown_name("generator", super::NAMES)),
        };
        let scattered = skewed && spec.word("order", &["scattered", "sorted"])? == "scattered";
        Ok(Pattern {
            choice,
            pages,
            scatter: scattered.then(|| Scatter::new(pages)),
            requests_left: spec.count("requests", 0..=u64::MAX, 10 << 20)?,
            write_share: spec.number("writes", 0.0..=1.0, 0.0)?,
            commit_writes: spec.count("commit", 0..=1 << 32, 0)?,
            uncommitted: 0,
            rng: Rng::split(seed, "generate"),
        })
    }

    /// All pages are below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Requests still to come.
    pub(super) fn requests(&self) -> u64 {
        self.requests_left
    }

    #[inline]
    fn page(&mut self) -> PageNo {
        let rank = match &mut self.choice {
            Choice::Uniform => self.rng.below(self.pages),
            Choice::Zipf(zipf) => zipf.next(&mut self.rng) - 1,
            Choice::SelfSimilar { exponent } => {
                let share = self.rng.unit().powf(*exponent);
                ((self.pages as f64 * share) as u64).min(self.pages - 1)
            }
            Choice::Scan { next } => {
                let page = *next;
                *next = if page + 1 == self.pages { 0 } else { page + 1 };
                page
            }
        };
        PageNo(self.scatter.map_or(rank, |scatter| scatter.page(rank)))
    }
}

/// A one-to-one map from ranks to pages, so that the hot pages are not neighbours: rank r is page r * stride % pages.
/// The stride is near the golden section and coprime to the number of pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    stride: u64,
    pages: u64,
}

impl Scatter {
    /// A map over `pages` pages, at least one.
    pub(super) fn new(pages: u64) -> Scatter {
        let golden = (pages as f64 * 0.618_033_988_749_895) as u64;
        let stride = (golden.max(1)..).find(|&stride| gcd(stride, pages) == 1).unwrap_or(1);
        Scatter { stride, pages }
    }

    /// The page of `rank`, which is below the number of pages.
    #[inline]
    pub(super) fn page(self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.stride) % u128::from(self.pages)) as u64
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Iterator for Pattern {
    type Item = PageEvent;

    #[inline]
    fn next(&mut self) -> Option<PageEvent> {
        let due = self.commit_writes > 0 && self.uncommitted > 0;
        if due && (self.uncommitted == self.commit_writes || self.requests_left == 0) {
            self.uncommitted = 0;
            return Some(PageEvent::Commit);
        }
        self.requests_left = self.requests_left.checked_sub(1)?;
        let page = self.page();
        let write = self.write_share > 0.0 && self.rng.chance(self.write_share);
        self.uncommitted += u64::from(write);
        Some(PageEvent::one(page, write))
    }
}
