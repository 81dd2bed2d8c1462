//! Compares CASA and SAWC with Algorithms 3 and 4 of the dissertation, line by line.
use super::{Model, agree, requests, steps};
use crate::{Effect, Gauge, Physical, PolicySpec, Request, Workload};
use proptest::prelude::*;
use tantalum_base::PageNo;

#[derive(Clone, Copy, PartialEq)]
struct Entry {
    page: PageNo,
    updates: u32,
}

/// Both lists least recently used first.
struct Naive {
    frames: usize,
    clean: Vec<Entry>,
    dirty: Vec<Entry>,
    tau: f64,
    read_cost: f64,
    write_cost: f64,
    /// `None` for CASA.
    cluster_pages: Option<u64>,
}

impl Naive {
    fn new(frames: u32, cost: (f64, f64), cluster_pages: Option<u64>) -> Self {
        Naive {
            frames: frames as usize,
            clean: Vec::new(),
            dirty: Vec::new(),
            tau: 0.0,
            read_cost: cost.0 / (cost.0 + cost.1),
            write_cost: cost.1 / (cost.0 + cost.1),
            cluster_pages,
        }
    }

    fn hit(&mut self, request: Request) -> bool {
        let at = |list: &[Entry]| list.iter().position(|entry| entry.page == request.page());
        let (clean, dirty) = (self.clean.len() as f64, self.dirty.len() as f64);
        let write = request.is_write();
        let mut entry = if let Some(at) = at(&self.clean) {
            if !write {
                self.tau = (self.tau + self.read_cost * (dirty / clean)).min(self.frames as f64);
                let entry = self.clean.remove(at);
                self.clean.push(entry);
                return true;
            }
            self.clean.remove(at)
        } else if let Some(at) = at(&self.dirty) {
            if write {
                self.tau = (self.tau - self.write_cost * (clean / dirty)).max(0.0);
            }
            self.dirty.remove(at)
        } else {
            return false;
        };
        entry.updates += u32::from(write);
        self.dirty.push(entry);
        true
    }

    /// The pages in the cluster of `page` that may be written for a victim with `updates` updates,
    /// by page number.
    fn along(&self, page: PageNo, updates: u32) -> Vec<PageNo> {
        let Some(cluster_pages) = self.cluster_pages else { return Vec::new() };
        let cluster = |page: PageNo| page.0 / cluster_pages;
        let in_cluster = self.dirty.iter().filter(|entry| cluster(entry.page) == cluster(page));
        let mut along: Vec<PageNo> = in_cluster
            .filter(|entry| entry.page != page && entry.updates <= updates)
            .map(|entry| entry.page)
            .collect();
        along.sort_unstable();
        along
    }
}

impl Model for Naive {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        if self.hit(request) {
            return (true, Vec::new());
        }
        let mut effects = Vec::new();
        if self.clean.len() + self.dirty.len() == self.frames {
            if self.clean.len() as f64 > self.tau || self.dirty.is_empty() {
                effects.push(Effect::Evicted { page: self.clean.remove(0).page, dirty: false });
            } else {
                let Entry { page, updates } = self.dirty.remove(0);
                effects.push(Effect::Evicted { page, dirty: true });
                for page in self.along(page, updates) {
                    effects.push(Effect::Cleaned { page });
                    self.cleaned(page);
                }
            }
        }
        let write = request.is_write();
        let list = if write { &mut self.dirty } else { &mut self.clean };
        list.push(Entry { page: request.page(), updates: u32::from(write) });
        (false, effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some(at) = self.dirty.iter().position(|entry| entry.page == page) {
            let entry = self.dirty.remove(at);
            self.clean.insert(0, entry);
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let before = self.clean.len() + self.dirty.len();
        self.clean.retain(|entry| entry.page != page);
        self.dirty.retain(|entry| entry.page != page);
        self.clean.len() + self.dirty.len() < before
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        let clean = self.clean.iter().map(|entry| (entry.page, false));
        clean.chain(self.dirty.iter().map(|entry| (entry.page, true))).collect()
    }

    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        let mut pages = Vec::new();
        for &Entry { page, updates } in &self.dirty {
            if !pages.contains(&page) {
                let mut group = vec![page];
                group.extend(self.along(page, updates));
                group.retain(|page| !pages.contains(page));
                pages.extend(group);
            }
        }
        Some(pages)
    }

    fn gauges(&self) -> Option<Vec<Gauge>> {
        Some(vec![
            Gauge::new("clean_pages", self.clean.len() as f64),
            Gauge::new("dirty_pages", self.dirty.len() as f64),
            Gauge::new("clean_target_pages", self.tau),
            Gauge::new("write_cost_ratio", self.write_cost / self.read_cost),
        ])
    }
}

const COSTS: [(&str, (f64, f64)); 4] = [
    ("cost=1:1", (1.0, 1.0)),
    ("cost=1:64", (1.0, 64.0)),
    ("cost=4:1", (4.0, 1.0)),
    ("cost=auto", (1.0, 1.0)),
];

proptest! {
    #[test]
    fn casa_decides_as_its_naive_form(
        (text, cost) in prop::sample::select(COSTS.to_vec()),
        frames in 1u32..12,
        steps in steps(24),
    ) {
        let mut naive = Naive::new(frames, cost, None);
        agree(&format!("casa:{text}"), frames, 24, &mut naive, &steps);
    }

    #[test]
    fn sawc_decides_as_its_naive_form(
        (text, cost) in prop::sample::select(COSTS.to_vec()),
        frames in 1u32..12,
        cluster in 1u64..8,
        steps in steps(24),
    ) {
        let mut naive = Naive::new(frames, cost, Some(cluster));
        agree(&format!("sawc:cluster={cluster},{text}"), frames, 24, &mut naive, &steps);
    }
}

proptest! {
    /// Once both are measured, detected costs act as given ones do; earlier measurements are
    /// forgotten.
    #[test]
    fn detected_costs_steer_casa_as_given_ones_do(
        frames in 1u32..12,
        requests in requests(24),
        cost in 1u64..64,
    ) {
        let workload = Workload { pages_end: 24, future: &[] };
        let build = |text: &str| PolicySpec::parse(text).unwrap().build(frames, workload).unwrap();
        let mut detected = build("casa:points=4");
        let mut given = build(&format!("casa:cost=1:{cost}"));
        for time_ns in [900_000, 1000, 1000, 1000, 1000] {
            detected.measured(Physical::Read, time_ns);
            detected.measured(Physical::Write, time_ns * cost);
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for request in requests {
            prop_assert_eq!(detected.access(request, &mut left), given.access(request, &mut right));
        }
        prop_assert_eq!(left, right);
        let means = &detected.gauges()[4..];
        let expected =
            [Gauge::new("read_cost_ns", 1000.0), Gauge::new("write_cost_ns", 1000.0 * cost as f64)];
        prop_assert_eq!(means, expected);
    }
}
