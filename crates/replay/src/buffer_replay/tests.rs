use super::*;
use crate::cache_replay::{self, CacheReplayOptions};
use tantalum_trace::Generator;

fn trace() -> Arc<CacheTrace> {
    let text = "zipf:pages=4000,requests=20000,theta=0.8,writes=0.4,commit=9,seed=3";
    Arc::new(CacheTrace::collect("zipf", Generator::parse(text).unwrap().map(Ok)).unwrap())
}

fn runs_of(policies: &str, sizes: &[u32], devices: &[&str]) -> Vec<BufferRun> {
    let mut runs = Vec::new();
    for policy in PolicySpec::parse_list(policies).unwrap() {
        for &buffer_pages in sizes {
            for device in devices {
                let device = DeviceSpec::parse(device).unwrap();
                runs.push(BufferRun { policy: policy.clone(), buffer_pages, device });
            }
        }
    }
    runs
}

const DEVICES: [&str; 3] = ["mtron:pages=4096", "x25-m:pages=4096", "mba3147rc:pages=4096"];

/// The rows of runs that are not interrupted.
fn rows_of(
    trace: &Arc<CacheTrace>,
    runs: &[BufferRun],
    options: &BufferReplayOptions,
) -> Result<Vec<BufferReplayRow>> {
    let rows = replay(trace, runs, options, &Arc::default())?;
    Ok(rows.into_iter().map(Option::unwrap).collect())
}

fn quick() -> BufferReplayOptions {
    let age = Age { rounds_max: 1, ..Age::default() };
    BufferReplayOptions { age: Some(age), ..BufferReplayOptions::default() }
}

#[test]
fn counts_are_those_of_the_cache_only_replay_whatever_the_device() {
    let trace = trace();
    let runs = runs_of("lru,casa:cost=1:8,sawc:cost=1:8,opt", &[64, 500], &DEVICES);
    let options = CacheReplayOptions {
        policies: PolicySpec::parse_list("lru,casa:cost=1:8,sawc:cost=1:8,opt").unwrap(),
        cache_pages: vec![64, 500],
        timing: false,
        threads: 1,
    };
    let counted = cache_replay::replay(&trace, &options, &Work::default()).unwrap();
    let (opt, others): (Vec<_>, Vec<_>) =
        runs.iter().cloned().partition(|run| run.policy.text() == "opt");
    for (clients, runs) in [(1, &runs), (8, &others)] {
        let options = BufferReplayOptions { clients, ..quick() };
        let rows = rows_of(&trace, runs, &options).unwrap();
        for (row, run) in rows.iter().zip(runs) {
            let same = counted.iter().find(|counted| {
                counted.policy == row.policy && counted.cache_pages == row.buffer_pages
            });
            let same = same.unwrap();
            if clients == 1 {
                assert_eq!(row.pool.misses, same.misses, "{run:?}");
                assert_eq!(row.pool.physical_reads, same.physical_reads, "{run:?}");
                assert_eq!(row.pool.physical_writes, same.physical_writes, "{run:?}");
                assert_eq!(row.dirty_pages_at_end, same.dirty_pages_at_end, "{run:?}");
            }
            // Requests of several clients overtake one another.
            let about = |ours: u64, theirs: u64| ours.abs_diff(theirs) * 100 <= theirs;
            assert!(about(row.pool.misses, same.misses), "{run:?}");
            assert!(about(row.pool.write_backs, same.physical_writes), "{run:?}");
        }
    }
    // With several clients the future is not known, and neither is it with folded pages.
    let several = BufferReplayOptions { clients: 2, ..quick() };
    assert!(rows_of(&trace, &opt, &several).is_err());
    let folded = runs_of("opt", &[64], &["mtron:pages=2048"]);
    assert!(rows_of(&trace, &folded, &quick()).is_err());
}

/// Pages of one, two and four device pages, on devices of which the first writes one page at a time.
#[test]
fn counts_do_not_depend_on_the_page_size_and_time_does() {
    let trace = trace();
    for device in ["mtron", "x25-m", "mba3147rc"] {
        let of = |parts: u32| {
            let sized = format!("{device}:pages={}", 4096 * parts);
            let runs = runs_of("lru,casa:cost=1:8,cfdc:window=0.5,opt", &[64, 500], &[&sized]);
            let options = BufferReplayOptions { page_bytes: 4096 * parts, ..quick() };
            rows_of(&trace, &runs, &options).unwrap()
        };
        let (one, two, four) = (of(1), of(2), of(4));
        for ((one, two), four) in one.iter().zip(&two).zip(&four) {
            let counted = |row: &BufferReplayRow| (row.pool, row.dirty_pages_at_end);
            assert_eq!(counted(one), counted(two), "{device}, {}", one.policy);
            assert_eq!(counted(one), counted(four), "{device}, {}", one.policy);
            // The others differ in more than the page size: the place of a disk's pages, and the number of planes of a small
            // drive.
            if device == "mtron" {
                assert!(
                    one.read_mean_ns < two.read_mean_ns && two.read_mean_ns < four.read_mean_ns
                );
                assert!(one.seconds < two.seconds && two.seconds < four.seconds);
            }
            assert_eq!([one, two, four].map(|row| row.page_bytes), [4096, 8192, 16384]);
        }
    }
}

#[test]
fn pages_that_a_device_cannot_have_are_refused() {
    let trace = trace();
    let refused = |page_bytes: u32, device: &str| {
        let options = BufferReplayOptions { page_bytes, ..quick() };
        rows_of(&trace, &runs_of("lru", &[64], &[device]), &options).unwrap_err()
    };
    for page_bytes in [0, 512, 4097, 12_000] {
        let error = refused(page_bytes, "bast:pages=4096");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(refused(1 << 20, "bast:pages=255").kind(), ErrorKind::InvalidInput);
    // Without twice the trace's pages they are folded, and the future is not known.
    let options = BufferReplayOptions { page_bytes: 8192, ..quick() };
    let opt = |pages: u64| {
        rows_of(&trace, &runs_of("opt", &[64], &[&format!("bast:pages={pages}")]), &options)
    };
    assert!(opt(2 * trace.pages_end - 1).is_err() && opt(2 * trace.pages_end).is_ok());
}

#[test]
fn time_is_the_devices_and_the_clients_and_busy_time_is_part_of_it() {
    let trace = trace();
    let runs = runs_of("lru", &[500], &DEVICES);
    let of = |cpu_ns: u64, clients: u32| {
        let options = BufferReplayOptions { cpu_ns, clients, ..quick() };
        rows_of(&trace, &runs, &options).unwrap()
    };
    let (none, some, many) = (of(0, 1), of(50_000, 1), of(50_000, 8));
    for ((none, some), many) in none.iter().zip(&some).zip(&many) {
        // One client waits for the device whenever it is not computing.
        assert!((none.seconds - none.device_busy_seconds).abs() < 1e-6, "{none:?}");
        let waited = none.read_mean_ns.unwrap() * none.pool.physical_reads as f64
            + none.write_mean_ns.unwrap() * none.pool.physical_writes as f64;
        assert!((waited / 1e9 - none.seconds).abs() < 1e-6, "{none:?}");
        let computed = none.pool.requests as f64 * 50e-6;
        let sum = some.device_busy_seconds + computed;
        assert!((some.seconds - sum).abs() < 1e-6, "{} and {sum}", some.seconds);
        assert!(many.seconds < some.seconds && many.device_busy_seconds <= many.seconds);
    }
    // Random writes are the MTRON's weakness, not the X25-M's.
    assert!(none[0].write_mean_ns.unwrap() > 30.0 * none[0].read_mean_ns.unwrap());
    assert!(none[1].write_mean_ns.unwrap() < 10.0 * none[1].read_mean_ns.unwrap());
}

/// REF searches the pages of its window again and again, LRU takes the end of a list.
#[test]
fn a_search_takes_time_and_a_list_does_not() {
    let trace = trace();
    let runs = runs_of("lru,ref:window=0.5", &[500], &DEVICES[1..2]);
    let of = |search_step_ns: u64| {
        rows_of(&trace, &runs, &BufferReplayOptions { search_step_ns, ..quick() }).unwrap()
    };
    let (free, charged) = (of(0), of(1_000));
    assert_eq!((free[0].search_steps, free[0].seconds), (0, charged[0].seconds));
    let steps = charged[1].search_steps;
    // Half of the frames are visited each time, and no page is evicted before it was in the pool.
    assert!(steps % 250 == 0 && steps > charged[1].pool.evictions, "{steps}");
    assert_eq!(steps, free[1].search_steps, "what is decided does not depend on time");
    let searched = charged[1].computed_seconds - free[1].computed_seconds;
    assert!((searched - steps as f64 / 1e6).abs() < 1e-9, "{searched} s for {steps} steps");
    for row in free.iter().chain(&charged) {
        // One client computes or waits.
        let sum = row.device_busy_seconds + row.computed_seconds;
        assert!((row.seconds - sum).abs() < 1e-6, "{} and {sum}", row.seconds);
    }
}

#[test]
fn samples_are_what_the_policy_tells_on_the_way_and_cost_nothing() {
    let trace = trace();
    let runs = runs_of("casa", &[300], &DEVICES[1..2]);
    let every = trace.requests.len() / 4;
    let rows = |gauges_every| {
        let options = BufferReplayOptions { gauges_every, ..quick() };
        rows_of(&trace, &runs, &options).unwrap().remove(0)
    };
    let (without, with) = (rows(0), rows(every));
    let at: Vec<usize> = with.samples.iter().map(|sample| sample.requests).collect();
    assert_eq!(at, [every, 2 * every, 3 * every, 4 * every]);
    assert_eq!(trace.requests.len(), 4 * every);
    assert_eq!(with.samples[3].gauges, with.gauges, "the last one is the end");
    let (first, last) = (&with.samples[0], &with.samples[3]);
    assert!(first.gauge("read_cost_ns").unwrap() > 0.0);
    assert_ne!(first.gauges, last.gauges);
    assert_eq!(without, BufferReplayRow { samples: Vec::new(), ..with });
}

#[test]
fn rows_are_the_same_on_any_number_of_threads() {
    let (trace, runs) = (trace(), runs_of("lru,casa", &[100, 300], &DEVICES[..2]));
    let of = |threads| {
        let options = BufferReplayOptions { threads, clients: 3, ..quick() };
        rows_of(&trace, &runs, &options).unwrap()
    };
    assert_eq!(of(1), of(3));
}
