//! Made-up traces, from text: `zipf:pages=1m,requests=10m,theta=1.0,writes=0.3,commit=8,seed=1`.
//!
//! The same text gives the same events, always.
use crate::event::PageEvent;
use crate::link_bench::LinkBench;
use crate::zipf::Zipf;
use std::collections::VecDeque;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// The accepted names.
pub const NAMES: &[&str] = &["uniform", "zipf", "self_similar", "scan", "link_bench"];

/// More pages than any device of 4 KiB pages has (16 PiB), so that arithmetic cannot overflow.
const PAGES_MAX: u64 = 1 << 42;

/// Which page is next.
#[derive(Clone, Debug)]
enum Pattern {
    /// Every page alike.
    Uniform,
    /// Page of rank k with a probability in proportion to k^-theta.
    Zipf(Zipf),
    /// The share 1-h of the requests goes to the share h of the pages, and so on within it (Gray,
    /// Sundaresan, Englert, Baclawski, Weinberger, "Quickly generating billion-record synthetic
    /// databases", SIGMOD 1994, section 3). The exponent is ln h / ln (1-h).
    SelfSimilar { exponent: f64 },
    /// Page after page, from 0 again after the last.
    Scan { next: u64 },
    /// Transactions of several pages each; requests count these.
    LinkBench { bench: Box<LinkBench>, pending: VecDeque<PageEvent> },
}

/// Makes page events: an iterator.
#[derive(Clone, Debug)]
pub struct Generator {
    pattern: Pattern,
    pages: u64,
    /// Rank r stands for page r * stride % pages, so that the hot pages are not neighbours. Has no
    /// divisor in common with `pages`: the mapping is one to one.
    stride: u64,
    requests_left: u64,
    write_share: f64,
    /// Writes between two commit points; 0 for no commit points.
    commit_writes: u64,
    /// Writes since the last commit point.
    uncommitted: u64,
    seed: u64,
    rng: Rng,
}

impl Generator {
    /// Makes the generator that `text` names; a refusal lists what is accepted.
    ///
    /// All take `pages` (1m), `requests` (10m), `writes` (share of the requests, 0), `commit`
    /// (writes in a transaction, 0 for no commit points) and `seed` (1). `zipf` takes `theta` (1),
    /// `self_similar` takes `h` (0.2: 80-20); both take `order` (`scattered`, or `sorted` with the
    /// hottest page first). `link_bench` takes `theta` (0.6); its `requests` are transactions, of
    /// which those that write end in a commit point, so that it takes no `writes` and no `commit`.
    pub fn parse(text: &str) -> Result<Generator> {
        let mut spec = Spec::parse(text)?;
        let is_bench = spec.name() == "link_bench";
        let pages_min = if is_bench { LinkBench::PAGES_MIN } else { 1 };
        let pages = spec.count("pages", pages_min..=PAGES_MAX, 1 << 20)?;
        let seed = spec.count("seed", 0..=u64::MAX, 1)?;
        let skewed = matches!(spec.name(), "zipf" | "self_similar");
        let pattern = match spec.name() {
            "uniform" => Pattern::Uniform,
            "zipf" => Pattern::Zipf(Zipf::new(pages, spec.number("theta", 0.0..=4.0, 1.0)?)),
            "self_similar" => {
                let h = spec.number("h", 0.001..=0.5, 0.2)?;
                Pattern::SelfSimilar { exponent: h.ln() / (1.0 - h).ln() }
            }
            "scan" => Pattern::Scan { next: 0 },
            "link_bench" => {
                let theta = spec.number("theta", 0.0..=4.0, 0.6)?;
                let bench = Box::new(LinkBench::new(pages, theta, seed));
                Pattern::LinkBench { bench, pending: VecDeque::new() }
            }
            _ => return Err(spec.unknown_name("generator", NAMES)),
        };
        let scattered = skewed && spec.word("order", &["scattered", "sorted"])? == "scattered";
        let generator = Generator {
            pattern,
            pages,
            stride: if scattered { scattering_stride(pages) } else { 1 },
            requests_left: spec.count("requests", 0..=u64::MAX, 10 << 20)?,
            write_share: if is_bench { 0.0 } else { spec.number("writes", 0.0..=1.0, 0.0)? },
            commit_writes: if is_bench { 0 } else { spec.count("commit", 0..=1 << 32, 0)? },
            uncommitted: 0,
            seed,
            rng: Rng::split(seed, "generate"),
        };
        spec.finish()?;
        Ok(generator)
    }

    /// All pages lie below this.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The seed it was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    fn page(&mut self) -> PageNo {
        let rank = match &mut self.pattern {
            Pattern::Uniform => self.rng.below(self.pages),
            Pattern::Zipf(zipf) => zipf.next(&mut self.rng) - 1,
            Pattern::SelfSimilar { exponent } => {
                let share = self.rng.unit().powf(*exponent);
                ((self.pages as f64 * share) as u64).min(self.pages - 1)
            }
            Pattern::Scan { next } => {
                let page = *next;
                *next = if page + 1 == self.pages { 0 } else { page + 1 };
                page
            }
            Pattern::LinkBench { .. } => unreachable!("its events come as transactions"),
        };
        if self.stride == 1 {
            return PageNo(rank);
        }
        PageNo((u128::from(rank) * u128::from(self.stride) % u128::from(self.pages)) as u64)
    }
}

/// A stride near the golden section of `pages` that has no divisor in common with it.
fn scattering_stride(pages: u64) -> u64 {
    let golden = (pages as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..).find(|&stride| gcd(stride, pages) == 1).unwrap_or(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Iterator for Generator {
    type Item = PageEvent;

    #[inline]
    fn next(&mut self) -> Option<PageEvent> {
        if let Pattern::LinkBench { bench, pending } = &mut self.pattern {
            if pending.is_empty() {
                self.requests_left = self.requests_left.checked_sub(1)?;
                let mut events = Vec::with_capacity(4);
                let writes = bench.transaction(&mut events);
                pending.extend(events);
                pending.extend(writes.then_some(PageEvent::Commit));
            }
            return pending.pop_front();
        }
        let due = self.commit_writes > 0 && self.uncommitted > 0;
        if due && (self.uncommitted == self.commit_writes || self.requests_left == 0) {
            self.uncommitted = 0;
            return Some(PageEvent::Commit);
        }
        self.requests_left = self.requests_left.checked_sub(1)?;
        let page = self.page();
        let write = self.write_share > 0.0 && self.rng.chance(self.write_share);
        self.uncommitted += u64::from(write);
        Some(if write {
            PageEvent::Write { page, pages: 1 }
        } else {
            PageEvent::Read { page, pages: 1 }
        })
    }
}
