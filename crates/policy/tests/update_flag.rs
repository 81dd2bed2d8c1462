//! The pages that a request evicts do not depend on its update flag. So a buffer that learns of updates only at the unfix, as the
//! dissertation's does (Ou 2012, 5.2.5), evicts and writes the same pages as one that knows them at the fix, provided that no other
//! request comes between the two.
use tantalum_base::PageNo;
use tantalum_policy::{Effect, Policy, PolicySpec, Request, Workload};
use tantalum_trace::{Generator, PageEvent};

const PAGES: u64 = 160;
const FRAMES: u32 = 48;
/// The distance between requests that are tried both ways.
const EVERY: usize = 7;

/// With the parameters of the dissertation's experiments, in addition to the defaults of all.
const MORE: [&str; 8] = [
    "cflru:window=0.25",
    "cflru:window=0.75",
    "ref:window=0.5,block=16,victims=4",
    "cfdc:window=0.25,cluster=16",
    "cfdc:window=0.75,cluster=16",
    "cfdc:window=0.5,cluster=16,base=lru_k/k=2",
    "casa:cost=1:1",
    "casa:cost=1:64",
];

fn requests() -> Vec<Request> {
    let text = format!("zipf:pages={PAGES},requests=2000,theta=0.7,writes=0.4,seed=5");
    let request = |event| match event {
        PageEvent::Read { page, .. } => Some(Request::new(page, false)),
        PageEvent::Write { page, .. } => Some(Request::new(page, true)),
        PageEvent::Trim { .. } | PageEvent::Commit => None,
    };
    Generator::parse(&text).unwrap().filter_map(request).collect()
}

/// The result of `last` after `requests`: whether it hits, and its effects.
fn done_behind(
    policy: &mut dyn Policy,
    requests: &[Request],
    last: Request,
) -> (bool, Vec<Effect>) {
    let mut effects = Vec::new();
    for request in requests {
        policy.access(*request, &mut effects);
        effects.clear();
    }
    (policy.access(last, &mut effects), effects)
}

#[test]
fn what_a_request_evicts_does_not_depend_on_whether_it_updates() {
    let requests = requests();
    let workload = Workload { pages_end: PAGES, future: &requests };
    for text in PolicySpec::NAMES.iter().chain(&MORE) {
        let spec = PolicySpec::parse(text).unwrap();
        let mut evicted = 0;
        for at in (0..requests.len()).step_by(EVERY) {
            let page = requests[at].page();
            let [read, update] = [false, true].map(|update| {
                let mut policy = spec.build(FRAMES, workload).unwrap();
                done_behind(&mut *policy, &requests[..at], Request::new(page, update))
            });
            assert_eq!(read, update, "{text}: request {at}, for page {}", PageNo(page.0));
            evicted += update.1.len();
        }
        assert!(evicted > 20, "{text}: {evicted} effects are no test");
    }
}
