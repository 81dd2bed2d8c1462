//! Compares CFDC with Algorithms 1 and 2 and formulas 3.1 and 3.2 of the dissertation; every
//! priority is computed anew.
use super::basic::Naive as NaiveBase;
use super::{Model, Step, agree, requests, steps};
use crate::{Effect, Gauge, Request};
use proptest::prelude::*;
use std::cmp::Ordering;
use tantalum_base::{PageNo, Rng};

struct Cluster {
    number: u64,
    /// In the order of arrival.
    pages: Vec<PageNo>,
    timestamp: u64,
    /// A victim's IPD is 0 until it is consumed.
    is_victim: bool,
}

impl Cluster {
    /// Formula 3.1.
    fn ipd(&self) -> i128 {
        let steps = self.pages.windows(2).map(|pair| pair[0].0.abs_diff(pair[1].0));
        match self.pages.len() {
            1 => 1,
            _ => i128::from(steps.sum::<u64>()),
        }
    }

    /// Formula 3.2 as (numerator, denominator); a denominator of 0 is an infinite priority.
    fn priority(&self, now: u64) -> (i128, i128) {
        let pages = self.pages.len() as i128;
        if self.is_victim {
            (0, 1)
        } else {
            (self.ipd(), pages * pages * i128::from(now - self.timestamp))
        }
    }

    fn order(&self, other: &Cluster, now: u64) -> Ordering {
        let (left, right) = (self.priority(now), other.priority(now));
        let by_priority = match (left.1, right.1) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            _ => (left.0 * right.1).cmp(&(right.0 * left.1)),
        };
        let key = |cluster: &Cluster| (cluster.timestamp, cluster.number);
        by_priority.then_with(|| key(self).cmp(&key(other)))
    }
}

struct Naive<'a> {
    working: NaiveBase<'a>,
    priority_pages: usize,
    cluster_pages: u64,
    /// Least recently used first.
    clean: Vec<PageNo>,
    clusters: Vec<Cluster>,
    global_time: u64,
}

impl Naive<'_> {
    fn new(base: &str, frames: u32, window: f64, cluster_pages: u64) -> Naive<'_> {
        let priority_pages = ((window * f64::from(frames)) as u32).min(frames - 1);
        Naive {
            working: NaiveBase::new(base, frames - priority_pages),
            priority_pages: priority_pages as usize,
            cluster_pages,
            clean: Vec::new(),
            clusters: Vec::new(),
            global_time: 0,
        }
    }

    fn dirty(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.pages.len()).sum()
    }

    /// Removes `page` from the priority region. Returns whether it was dirty; `None` if it is not
    /// in the region.
    fn take(&mut self, page: PageNo, hit: bool) -> Option<bool> {
        if let Some(at) = self.clean.iter().position(|held| *held == page) {
            self.clean.remove(at);
            return Some(false);
        }
        let cluster = self.clusters.iter_mut().find(|cluster| cluster.pages.contains(&page))?;
        cluster.pages.retain(|held| *held != page);
        if hit {
            cluster.timestamp = self.global_time;
        }
        self.clusters.retain(|cluster| !cluster.pages.is_empty());
        Some(true)
    }

    fn demote(&mut self, page: PageNo, dirty: bool) {
        if !dirty {
            self.clean.push(page);
            return;
        }
        self.global_time += 1;
        let number = page.0 / self.cluster_pages;
        match self.clusters.iter_mut().find(|cluster| cluster.number == number) {
            Some(cluster) => cluster.pages.push(page),
            None => self.clusters.push(Cluster {
                number,
                pages: vec![page],
                timestamp: self.global_time,
                is_victim: false,
            }),
        }
    }

    /// Algorithm 2.
    fn victim(&mut self) -> Option<Effect> {
        if !self.clean.is_empty() {
            return Some(Effect::Evicted { page: self.clean.remove(0), dirty: false });
        }
        let now = self.global_time;
        let cluster = self.clusters.iter_mut().min_by(|left, right| left.order(right, now))?;
        cluster.is_victim = true;
        let page = cluster.pages.remove(0);
        self.clusters.retain(|cluster| !cluster.pages.is_empty());
        Some(Effect::Evicted { page, dirty: true })
    }

    fn in_priority_region(&self, page: PageNo) -> Option<bool> {
        if self.clean.contains(&page) {
            return Some(false);
        }
        self.clusters.iter().any(|cluster| cluster.pages.contains(&page)).then_some(true)
    }
}

impl Model for Naive<'_> {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let page = request.page();
        let there = self.in_priority_region(page);
        let dirty = there == Some(true) || request.is_write();
        let free = self.pages().len() < self.working.frames() + self.priority_pages;
        let (in_working, demoted) = self.working.access(Request::new(page, dirty));
        if in_working {
            return (true, Vec::new());
        }
        let mut effects = Vec::new();
        if there.is_none() && !free {
            match self.victim() {
                Some(victim) => effects.push(victim),
                // The priority region is empty: the page that the working region evicted is the
                // victim.
                None => return (false, demoted),
            }
        }
        for effect in demoted {
            let Effect::Evicted { page, dirty } = effect else { unreachable!("{effect:?}") };
            self.demote(page, dirty);
        }
        self.take(page, true);
        (there.is_some(), effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        self.working.cleaned(page);
        if self.in_priority_region(page) == Some(true) {
            self.take(page, false);
            self.clean.push(page);
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        self.take(page, false).is_some() || self.working.forget(page)
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        let mut pages = self.working.pages();
        pages.extend(self.clean.iter().map(|page| (*page, false)));
        let dirty = self.clusters.iter().flat_map(|cluster| &cluster.pages);
        pages.extend(dirty.map(|page| (*page, true)));
        pages
    }

    /// Modelled if the working region's order is that of its entries.
    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        let mut clusters: Vec<&Cluster> = self.clusters.iter().collect();
        clusters.sort_by(|left, right| left.order(right, self.global_time));
        let mut pages: Vec<PageNo> =
            clusters.iter().flat_map(|cluster| cluster.pages.iter().copied()).collect();
        pages.extend(self.working.pages().iter().filter(|(_, dirty)| *dirty).map(|(page, _)| page));
        Some(pages)
    }

    fn gauges(&self) -> Option<Vec<Gauge>> {
        Some(vec![
            Gauge::new("priority_clean_pages", self.clean.len() as f64),
            Gauge::new("priority_dirty_pages", self.dirty() as f64),
            Gauge::new("priority_clusters", self.clusters.len() as f64),
        ])
    }
}

/// The original CFLRU (Park et al., CASES 2006): one LRU list. The victim is the oldest clean page
/// of the last `window_pages`, or the oldest of all pages if there is none.
struct CfLru {
    /// Least recently used first, with dirty flags.
    pages: Vec<(PageNo, bool)>,
    frames: usize,
    window_pages: usize,
}

impl Model for CfLru {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let found = self.pages.iter().position(|(page, _)| *page == request.page());
        let mut effects = Vec::new();
        let mut dirty = request.is_write();
        if let Some(at) = found {
            dirty |= self.pages.remove(at).1;
        } else if self.pages.len() == self.frames {
            let clean = self.pages[..self.window_pages].iter().position(|(_, dirty)| !dirty);
            let (page, dirty) = self.pages.remove(clean.unwrap_or(0));
            effects.push(Effect::Evicted { page, dirty });
        }
        self.pages.push((request.page(), dirty));
        (found.is_some(), effects)
    }

    fn cleaned(&mut self, _: PageNo) {}

    fn forget(&mut self, _: PageNo) -> bool {
        false
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        self.pages.clone()
    }
}

proptest! {
    /// With clusters of one page the oldest dirty page has the lowest priority, so CFDC equals
    /// CFLRU.
    #[test]
    fn cfdc_of_single_pages_is_cflru(
        frames in 1u32..24,
        window in prop::sample::select(vec![0.0, 0.3, 0.5, 0.8, 1.0]),
        requests in requests(48),
    ) {
        let window_pages = ((window * f64::from(frames)) as u32).min(frames - 1) as usize;
        let mut naive = CfLru { pages: Vec::new(), frames: frames as usize, window_pages };
        let steps: Vec<Step> = requests.into_iter().map(Step::Access).collect();
        agree(&format!("cfdc:window={window},cluster=1"), frames, 48, &mut naive, &steps);
    }

    #[test]
    fn cfdc_decides_as_its_naive_form(
        base in prop::sample::select(vec!["lru", "fifo", "clock"]),
        frames in 1u32..24,
        window in prop::sample::select(vec![0.0, 0.3, 0.5, 0.8, 1.0]),
        cluster in 1u64..9,
        steps in steps(48),
    ) {
        let text = format!("cfdc:window={window},cluster={cluster},base={base}");
        let mut naive = Naive::new(base, frames, window, cluster);
        agree(&text, frames, 48, &mut naive, &steps);
    }
}

/// Many clusters over a long time, so that their priorities cross again and again.
#[test]
fn cfdc_finds_the_lowest_priority_of_many_as_time_goes_on() {
    for (seed, window, cluster) in [(1, 0.95, 4), (2, 0.9, 16), (3, 0.6, 8), (4, 0.9, 2)] {
        let mut rng = Rng::new(seed);
        let steps: Vec<Step> = (0..6000)
            .map(|_| {
                let page = if rng.chance(0.5) { rng.below(400) } else { rng.below(60) * 7 % 400 };
                Step::Access(Request::new(PageNo(page), rng.chance(0.9)))
            })
            .collect();
        let text = format!("cfdc:window={window},cluster={cluster}");
        agree(&text, 120, 400, &mut Naive::new("lru", 120, window, cluster), &steps);
    }
}
