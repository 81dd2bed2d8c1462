//! CFLRU, LRU-WSR, CCF-LRU and AD-LRU.
use super::{Model, Step, agree, steps};
use crate::page_table::{DirectTable, SparseTable};
use crate::{Effect, Policy, PolicySpec, Request, Workload};
use proptest::prelude::*;
use tantalum_base::PageNo;

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: PageNo,
    dirty: bool,
    cold: bool,
    /// When the page was last put at the end of a queue.
    put: usize,
}

/// Queues of pages, the oldest first.
struct Naive {
    policy: &'static str,
    frames: usize,
    /// CFLRU's window, or the minimum of AD-LRU's cold queue.
    share: usize,
    /// The one list; or CCF-LRU's cold clean and mixed lists; or AD-LRU's cold and hot queues.
    queues: [Vec<Entry>; 2],
    puts: usize,
}

impl Naive {
    fn new(policy: &'static str, frames: u32, share: f64) -> Naive {
        let share = (share * f64::from(frames)).floor() as usize;
        Naive { policy, frames: frames as usize, share, queues: [Vec::new(), Vec::new()], puts: 0 }
    }

    fn put(&mut self, queue: usize, page: PageNo, dirty: bool, cold: bool) {
        self.puts += 1;
        self.queues[queue].push(Entry { page, dirty, cold, put: self.puts });
    }

    fn position(&self, page: PageNo) -> Option<(usize, usize)> {
        (0..2).find_map(|queue| {
            let at = self.queues[queue].iter().position(|entry| entry.page == page)?;
            Some((queue, at))
        })
    }

    /// Removes and returns the victim.
    fn evict(&mut self) -> Entry {
        match self.policy {
            "cflru" => {
                let window = &self.queues[0][..self.share];
                let clean = window.iter().position(|entry| !entry.dirty);
                self.queues[0].remove(clean.unwrap_or(0))
            }
            "lru_wsr" => second_chance(&mut self.queues[0]),
            "ccflru" => {
                if self.queues[0].is_empty() {
                    while !self.queues[1].is_empty() {
                        let oldest = self.queues[1].remove(0);
                        if oldest.cold {
                            return oldest;
                        }
                        self.put(usize::from(oldest.dirty), oldest.page, oldest.dirty, true);
                    }
                }
                self.queues[0].remove(0)
            }
            "ad_lru" => {
                let queue = if self.queues[0].len() > self.share { 0 } else { 1 };
                let queue = &mut self.queues[queue];
                match queue.iter().position(|entry| !entry.dirty) {
                    Some(first_clean) => queue.remove(first_clean),
                    None => second_chance(queue),
                }
            }
            _ => unreachable!("no naive {}", self.policy),
        }
    }
}

/// LRU-WSR's rule over one queue.
fn second_chance(queue: &mut Vec<Entry>) -> Entry {
    loop {
        let mut entry = queue.remove(0);
        if !entry.dirty || entry.cold {
            return entry;
        }
        entry.cold = true;
        queue.push(entry);
    }
}

impl Model for Naive {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let (page, write) = (request.page(), request.is_write());
        if let Some((queue, at)) = self.position(page) {
            let entry = self.queues[queue].remove(at);
            let to = usize::from(["ccflru", "ad_lru"].contains(&self.policy));
            self.put(to, page, entry.dirty || write, false);
            return (true, Vec::new());
        }
        let mut effects = Vec::new();
        if self.queues[0].len() + self.queues[1].len() == self.frames {
            let Entry { page, dirty, .. } = self.evict();
            effects.push(Effect::Evicted { page, dirty });
        }
        let is_ccflru = self.policy == "ccflru";
        let queue = usize::from(is_ccflru && write);
        self.put(queue, page, write, is_ccflru);
        (false, effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some((queue, at)) = self.position(page) {
            self.queues[queue][at].dirty = false;
            if self.policy == "ccflru" && self.queues[queue][at].cold {
                let entry = self.queues[queue].remove(at);
                self.queues[0].push(entry);
                self.queues[0].sort_by_key(|entry| entry.put);
            }
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let found = self.position(page);
        found.map(|(queue, at)| self.queues[queue].remove(at)).is_some()
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        self.queues.iter().flatten().map(|entry| (entry.page, entry.dirty)).collect()
    }

    /// Pages that already had their second chance come before those that have not.
    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        let of = |queue: usize, cold: bool| {
            let entries = self.queues[queue].iter();
            entries.filter(move |entry| entry.dirty && entry.cold == cold).map(|entry| entry.page)
        };
        let all = |queue| of(queue, true).chain(of(queue, false)).collect::<Vec<PageNo>>();
        let [mut pages, second] = [all(0), all(1)];
        if self.policy == "ad_lru" {
            // This many leave the hot queue, clean ones first, until the cold queue is above its
            // minimum.
            let free = self.frames - self.queues[0].len() - self.queues[1].len();
            let from_hot = (self.share + 1).saturating_sub(self.queues[0].len() + free);
            let clean = self.queues[1].iter().filter(|entry| !entry.dirty).count();
            let dirty = from_hot.saturating_sub(clean).min(second.len());
            return Some([&second[..dirty], &pages, &second[dirty..]].concat());
        }
        pages.extend(second);
        Some(pages)
    }
}

fn build(text: &str, frames: u32, direct: bool) -> Box<dyn Policy> {
    let (spec, workload) =
        (PolicySpec::parse(text).unwrap(), Workload { pages_end: 64, future: &[] });
    let policy = match direct {
        true => spec.build_over::<DirectTable>(frames, workload),
        false => spec.build_over::<SparseTable>(frames, workload),
    };
    policy.unwrap()
}

/// The form with queues and the walk behave alike at every step.
fn both_forms_agree(window: f64, frames: u32, steps: &[Step]) {
    let mut walk = build(&format!("cflru:window={window},form=walk"), frames, true);
    let mut queues = build(&format!("cflru:window={window},form=queues"), frames, false);
    let (mut walked, mut queued) = (Vec::new(), Vec::new());
    for &step in steps {
        match step {
            Step::Access(request) => {
                let hit = walk.access(request, &mut walked);
                assert_eq!(queues.access(request, &mut queued), hit, "{step:?}");
            }
            Step::Cleaned(page) => {
                walk.cleaned(page);
                queues.cleaned(page);
            }
            Step::Forget(page) => assert_eq!(walk.forget(page), queues.forget(page), "{step:?}"),
        }
        assert_eq!(walked, queued, "{step:?}");
        let mut candidates = [Vec::new(), Vec::new()];
        walk.write_candidates(usize::MAX, &mut candidates[0]);
        queues.write_candidates(usize::MAX, &mut candidates[1]);
        assert_eq!(candidates[0], candidates[1], "{step:?}");
        walked.clear();
        queued.clear();
    }
}

proptest! {
    #[test]
    fn both_forms_of_cflru_decide_alike(
        window in 0.0..=1.0,
        frames in 1u32..48,
        steps in steps(64),
    ) {
        both_forms_agree(window, frames, &steps);
    }

    #[test]
    fn cflru_decides_as_its_naive_form(
        form in prop::sample::select(vec!["queues", "walk"]),
        window in prop::sample::select(vec![0.0, 0.25, 0.5, 0.75, 1.0]),
        frames in 1u32..16,
        steps in steps(24),
    ) {
        let text = format!("cflru:window={window},form={form}");
        agree(&text, frames, 24, &mut Naive::new("cflru", frames, window), &steps);
    }

    #[test]
    fn lru_wsr_decides_as_its_naive_form(frames in 1u32..16, steps in steps(24)) {
        agree("lru_wsr", frames, 24, &mut Naive::new("lru_wsr", frames, 0.0), &steps);
    }

    #[test]
    fn ccflru_decides_as_its_naive_form(frames in 1u32..16, steps in steps(24)) {
        agree("ccflru", frames, 24, &mut Naive::new("ccflru", frames, 0.0), &steps);
    }

    #[test]
    fn ad_lru_decides_as_its_naive_form(
        min_lc in prop::sample::select(vec![0.0, 0.1, 0.25, 0.5, 0.9]),
        frames in 1u32..16,
        steps in steps(24),
    ) {
        let text = format!("ad_lru:min_lc={min_lc}");
        agree(&text, frames, 24, &mut Naive::new("ad_lru", frames, min_lc), &steps);
    }
}
