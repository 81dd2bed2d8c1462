//! Requests a second of every policy over a trace in memory.
//!
//! The trace is TPC-C's page requests with 4,000 pages cached where the large traces are there, and
//! a Zipf trace with a tenth of its pages cached anyway.
use criterion::{BatchSize, Criterion, Throughput};
use tantalum_policy::{PolicySpec, Request, Tally, Workload};
use tantalum_trace::{Generator, OpenOptions, PageEvent, open_pages, shared};

fn requests(events: impl Iterator<Item = PageEvent>) -> Vec<Request> {
    events
        .filter_map(|event| match event {
            PageEvent::Read { page, .. } => Some(Request::new(page, false)),
            PageEvent::Write { page, .. } => Some(Request::new(page, true)),
            PageEvent::Trim { .. } | PageEvent::Commit => None,
        })
        .collect()
}

fn bench(criterion: &mut Criterion, name: &str, requests: &[Request], frames: u32) {
    let pages_end = requests.iter().map(|request| request.page().0 + 1).max().unwrap_or(0);
    let workload = Workload { pages_end, future: requests };
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(requests.len() as u64)).sample_size(10);
    for policy in PolicySpec::NAMES {
        let spec = PolicySpec::parse(policy).expect("a name of the registry");
        group.bench_function(*policy, |bencher| {
            bencher.iter_batched(
                || spec.build(frames, workload).expect("a policy of a sound size"),
                |mut policy| {
                    let mut tally = Tally::default();
                    policy.run(requests, &mut tally);
                    tally
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    if let Some(path) = shared::find("traces/databases/tpcc-pg-logical.csv.zst") {
        let events = open_pages(&path, &OpenOptions::default()).expect("the trace opens");
        let events = events.map(|event| event.expect("the trace is sound"));
        bench(&mut criterion, "tpcc-pg-logical/4000", &requests(events), 4_000);
    }
    let text = "zipf:pages=100000,requests=1000000,theta=1.0,writes=0.3";
    let events = Generator::parse(text).expect("a sound generator");
    bench(&mut criterion, "zipf/10000", &requests(events), 10_000);
    criterion.final_summary();
}
