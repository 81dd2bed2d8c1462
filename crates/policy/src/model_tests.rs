//! Every policy beside a naive one that walks a plain `Vec`: same hits, same victims, same
//! dirtiness, request by request, over both page tables.
use crate::page_table::{DirectTable, SparseTable};
use crate::{Evicted, PolicySpec, Request, Workload};
use proptest::prelude::*;
use tantalum_base::PageNo;

#[derive(Clone, Copy)]
struct Entry {
    page: PageNo,
    dirty: bool,
    count: u8,
}

/// Oldest first. What differs between policies is what a hit does and who goes.
struct Naive<'a> {
    policy: &'a str,
    frames: usize,
    entries: Vec<Entry>,
    /// The page SIEVE's hand is at.
    hand: Option<PageNo>,
    future: &'a [Request],
    now: usize,
}

impl Naive<'_> {
    fn access(&mut self, request: Request) -> (bool, Option<Evicted>) {
        let found = self.entries.iter().position(|entry| entry.page == request.page());
        let mut gone = None;
        if let Some(at) = found {
            self.hit(at, request);
        } else {
            if self.entries.len() == self.frames {
                let at = self.victim();
                let entry = self.entries.remove(at);
                gone = Some(Evicted { page: entry.page, dirty: entry.dirty });
            }
            let dirty = request.is_write();
            self.entries.push(Entry { page: request.page(), dirty, count: 0 });
        }
        self.now += 1;
        (found.is_some(), gone)
    }

    fn hit(&mut self, at: usize, request: Request) {
        let entry = &mut self.entries[at];
        entry.dirty |= request.is_write();
        entry.count += 1;
        let count_max = if self.policy == "clock:bits=2" { 3 } else { 1 };
        entry.count = entry.count.min(count_max);
        if self.policy == "lru" {
            let entry = self.entries.remove(at);
            self.entries.push(entry);
        }
    }

    fn victim(&mut self) -> usize {
        match self.policy {
            "lru" | "fifo" => 0,
            // The oldest goes to the end of the queue for each use it had.
            "clock" | "clock:bits=2" => {
                while self.entries[0].count > 0 {
                    let mut entry = self.entries.remove(0);
                    entry.count -= 1;
                    self.entries.push(entry);
                }
                0
            }
            "sieve" => {
                let entries = &mut self.entries;
                let hand = self.hand;
                let mut at = entries.iter().position(|entry| Some(entry.page) == hand).unwrap_or(0);
                while entries[at].count > 0 {
                    entries[at].count = 0;
                    at = (at + 1) % entries.len();
                }
                self.hand = entries.get(at + 1).map(|entry| entry.page);
                at
            }
            _ => unreachable!("no naive {}", self.policy),
        }
    }

    /// Requests until `page` is asked for again.
    fn distance(&self, page: PageNo) -> usize {
        let coming = &self.future[self.now..];
        coming.iter().position(|request| request.page() == page).unwrap_or(usize::MAX)
    }
}

fn requests(pages: u64) -> impl Strategy<Value = Vec<Request>> {
    // Half of the requests go to a few hot pages, so that hits and re-use are common.
    let page = prop_oneof![0..pages, 0..pages.div_ceil(5)];
    let request = (page, any::<bool>()).prop_map(|(page, write)| Request::new(PageNo(page), write));
    prop::collection::vec(request, 1..300)
}

fn agree(text: &str, frames: u32, pages: u64, requests: &[Request]) {
    let workload = Workload { pages_end: pages, future: requests };
    let spec = PolicySpec::parse(text).unwrap();
    let mut direct = spec.build_over::<DirectTable>(frames, workload).unwrap();
    let mut sparse = spec.build_over::<SparseTable>(frames, workload).unwrap();
    let mut naive = Naive {
        policy: text,
        frames: frames as usize,
        entries: Vec::new(),
        hand: None,
        future: requests,
        now: 0,
    };
    for &request in requests {
        let (hit, gone) = naive.access(request);
        for policy in [&mut direct, &mut sparse] {
            let mut evicted = Vec::new();
            assert_eq!(policy.access(request, &mut evicted), hit, "{request:?}");
            assert_eq!(evicted.first().copied(), gone, "{request:?}");
            assert!(evicted.len() <= 1);
            policy.validate();
        }
    }
    let dirty = naive.entries.iter().filter(|entry| entry.dirty).count() as u32;
    assert_eq!(direct.dirty_pages(), dirty);
    assert_eq!(sparse.dirty_pages(), dirty);
}

/// Every victim of OPT must be one that no other cached page outlasts.
fn opt_picks_the_furthest(frames: u32, pages: u64, requests: &[Request]) {
    let workload = Workload { pages_end: pages, future: requests };
    let spec = PolicySpec::parse("opt").unwrap();
    let mut opt = spec.build_over::<SparseTable>(frames, workload).unwrap();
    let mut naive = Naive {
        policy: "opt",
        frames: frames as usize,
        entries: Vec::new(),
        hand: None,
        future: requests,
        now: 0,
    };
    let mut evicted = Vec::new();
    for (now, &request) in requests.iter().enumerate() {
        naive.now = now;
        let found = naive.entries.iter().position(|entry| entry.page == request.page());
        assert_eq!(opt.access(request, &mut evicted), found.is_some());
        assert!(evicted.is_empty() || naive.entries.len() == naive.frames);
        for gone in evicted.drain(..) {
            let furthest =
                naive.entries.iter().map(|entry| naive.distance(entry.page)).max().unwrap();
            assert_eq!(naive.distance(gone.page), furthest);
            let at = naive.entries.iter().position(|entry| entry.page == gone.page).unwrap();
            assert_eq!(naive.entries.remove(at).dirty, gone.dirty);
        }
        match found {
            Some(at) => naive.entries[at].dirty |= request.is_write(),
            None => naive.entries.push(Entry {
                page: request.page(),
                dirty: request.is_write(),
                count: 0,
            }),
        }
        assert!(naive.entries.len() <= naive.frames);
        opt.validate();
    }
}

proptest! {
    #[test]
    fn policies_decide_as_their_naive_form(
        text in prop::sample::select(vec!["lru", "fifo", "clock", "clock:bits=2", "sieve"]),
        frames in 1u32..12,
        requests in requests(24),
    ) {
        agree(text, frames, 24, &requests);
    }

    #[test]
    fn opt_evicts_what_is_needed_last(frames in 1u32..12, requests in requests(24)) {
        opt_picks_the_furthest(frames, 24, &requests);
    }
}

/// Long enough that the heap sheds its past many times over.
#[test]
fn opt_sheds_its_past_and_nothing_else() {
    let mut rng = tantalum_base::Rng::new(5);
    let requests: Vec<Request> =
        (0..8000).map(|_| Request::new(PageNo(rng.below(24)), rng.chance(0.3))).collect();
    opt_picks_the_furthest(20, 24, &requests);
}
