//! The pool decides like the cache-only replay of the same requests, regardless of timing.
mod support;

use std::rc::Rc;
use support::{FIFO, Memory, Recorded, policy, run};
use tantalum_base::{PageNo, Stamp};
use tantalum_buffer::{Intent, Pool, PoolOptions, PoolStatistics, PrefetchOptions};
use tantalum_policy::{PolicySpec, Request, Tally};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_trace::{Generator, PageEvent};

const PAGES: u64 = 2000;
const FRAMES: u32 = 200;

fn requests(seed: u64) -> Vec<Request> {
    let text =
        format!("zipf:pages={PAGES},requests=20000,theta=0.8,writes=0.4,commit=5,seed={seed}");
    let mut requests = Vec::new();
    for event in Generator::parse(&text).unwrap() {
        match event {
            PageEvent::Read { page, .. } => requests.push(Request::new(page, false)),
            PageEvent::Write { page, .. } => requests.push(Request::new(page, true)),
            PageEvent::Trim { .. } | PageEvent::Commit => {}
        }
    }
    requests
}

/// Replays the requests with `clients` tasks; returns the requests that the policy got, in order.
fn through_pool(
    text: &'static str,
    clients: usize,
    schedule: Schedule,
    time_ns: u64,
    options: PoolOptions,
) -> (Vec<Request>, PoolStatistics) {
    run(schedule, move |runtime: Virtual| async move {
        let device = Memory::new(&runtime, PAGES, time_ns, 1);
        let recorded = Recorded::new(policy(text, FRAMES, PAGES));
        let asked = recorded.requests.clone();
        let pool = Pool::new(device, runtime.clone(), Box::new(recorded), options).unwrap();
        pool.start();
        let requests = Rc::new(requests(7));
        let tasks: Vec<_> = (0..clients)
            .map(|client| {
                let (pool, requests) = (Rc::clone(&pool), Rc::clone(&requests));
                runtime.spawn("client", async move {
                    for request in requests.iter().skip(client).step_by(clients) {
                        use_page(&pool, *request).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        pool.validate();
        let statistics = pool.statistics();
        pool.close().await.unwrap();
        pool.validate();
        let requests = asked.lock().unwrap().clone();
        (requests, statistics)
    })
}

async fn use_page(pool: &Rc<Pool<Memory, Virtual>>, request: Request) {
    let page = request.page();
    if request.is_write() {
        let mut guard = pool.fix(page, Intent::Update).await.unwrap();
        let count = guard.page().count + 1;
        *guard.page_mut() = Stamp::new(page, count);
    } else {
        drop(pool.fix(page, Intent::Read).await.unwrap());
    }
}

fn replayed(text: &str, requests: &[Request]) -> Tally {
    let mut tally = Tally::default();
    policy(text, FRAMES, PAGES).run(requests, &mut tally);
    tally
}

fn policies() -> impl Iterator<Item = &'static str> {
    // Opt decides only for a known future, in its order. Policies that measure costs depend on
    // device times, which do not exist in a replay without a device.
    PolicySpec::NAMES.iter().copied().filter(|name| *name != "opt").map(|name| match name {
        "casa" => "casa:cost=1:4",
        "sawc" => "sawc:cost=1:4",
        name => name,
    })
}

#[test]
fn decisions_are_those_of_the_replay_with_any_number_of_clients() {
    for text in policies() {
        for (clients, schedule, time_ns) in [
            (1, FIFO, 0),
            (1, FIFO, 100_000),
            (8, FIFO, 100_000),
            (8, Schedule::Shuffled(3), 100_000),
            (32, Schedule::Shuffled(4), 1_000),
            (32, FIFO, 0),
        ] {
            let prefetching = PoolOptions {
                prefetch: Some(PrefetchOptions::default()),
                ..PoolOptions::default()
            };
            for options in [PoolOptions::default(), PoolOptions::classic(), prefetching] {
                let (asked, seen) = through_pool(text, clients, schedule, time_ns, options);
                let expected = replayed(text, &asked);
                let case = format!("{text}, {clients} clients, {schedule:?}, {options:?}");
                assert_eq!(asked.len(), 20_000, "{case}");
                assert_eq!(seen.requests, expected.requests, "{case}");
                assert_eq!(seen.misses, expected.misses, "{case}");
                assert_eq!(seen.hits, expected.requests - expected.misses, "{case}");
                assert_eq!(seen.write_misses, expected.write_misses, "{case}");
                assert_eq!(seen.evictions, expected.evictions, "{case}");
                assert_eq!(seen.write_backs, expected.write_backs, "{case}");
                assert_eq!(seen.frames_taken, 0, "{case}");
                // Each missed page was read, or was still in a frame.
                let asked_for = seen.physical_reads - seen.prefetched;
                let without = seen.rescues + seen.prefetch_hits;
                assert_eq!(asked_for + without, seen.misses, "{case}");
                assert!(seen.physical_writes <= seen.write_backs, "{case}");
                if clients == 1 {
                    let given: Vec<Request> = requests(7);
                    assert_eq!(asked, given, "{case}");
                }
            }
        }
    }
}

#[test]
fn a_classic_pool_writes_what_the_replay_counts() {
    for text in policies() {
        let (asked, seen) = through_pool(text, 1, FIFO, 1000, PoolOptions::classic());
        let expected = replayed(text, &asked);
        assert_eq!(seen.physical_writes, expected.write_backs, "{text}");
        assert_eq!(seen.physical_reads, expected.misses, "{text}");
        assert_eq!(seen.write_backs_waited, expected.write_backs, "{text}");
        assert_eq!(seen.device_writes, seen.physical_writes, "{text}");
    }
}

#[test]
fn the_same_seed_twice_is_the_same() {
    let options = PoolOptions {
        flusher: Some(tantalum_buffer::FlusherOptions::default()),
        ..PoolOptions::default()
    };
    let one = || through_pool("lru", 16, Schedule::Shuffled(11), 50_000, options);
    assert_eq!(one(), one());
    let other = through_pool("lru", 16, Schedule::Shuffled(12), 50_000, options);
    assert_ne!(one().0, other.0, "another seed is another order");
}

#[test]
fn pages_hold_what_was_written_to_them() {
    run(Schedule::Shuffled(5), |runtime: Virtual| async move {
        let device = Memory::new(&runtime, PAGES, 10_000, 2);
        let lru = policy("lru", FRAMES, PAGES);
        let options = PoolOptions::default();
        let pool = Pool::new(Rc::clone(&device), runtime.clone(), lru, options).unwrap();
        pool.start();
        let requests = requests(9);
        let mut counts = vec![0; PAGES as usize];
        let tasks: Vec<_> = (0..16)
            .map(|client| {
                let pool = Rc::clone(&pool);
                let own: Vec<Request> = requests.iter().copied().skip(client).step_by(16).collect();
                runtime.spawn("client", async move {
                    for request in own {
                        use_page(&pool, request).await;
                    }
                })
            })
            .collect();
        for request in requests.iter().filter(|request| request.is_write()) {
            counts[request.page().index()] += 1;
        }
        for task in tasks {
            task.await;
        }
        pool.flush().await.unwrap();
        pool.validate();
        for (page, count) in (0..PAGES).zip(counts) {
            let expected =
                if count == 0 { Stamp::default() } else { Stamp::new(PageNo(page), count) };
            assert_eq!(device.held(page), expected, "page {page}");
        }
    });
}
