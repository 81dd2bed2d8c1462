use super::*;
use tantalum_base::{PageNo, PageRange};
use tantalum_trace::{Generator, PageEvent};

/// A replay without progress reports.
fn replay(
    trace: &Rc<DeviceTrace>,
    config: &DeviceSpec,
    options: &DeviceReplayOptions,
) -> Result<DeviceReplayRow> {
    super::replay(trace, config, options, &Arc::default())
}

fn generated(text: &str) -> Rc<DeviceTrace> {
    Rc::new(DeviceTrace::collect("made", Generator::parse(text).unwrap().map(Ok)).unwrap())
}

fn device(text: &str) -> DeviceSpec {
    DeviceSpec::parse(text).unwrap()
}

fn small(profile: &str) -> DeviceSpec {
    device(&format!("{profile}:capacity=64MiB,op=0.15"))
}

#[test]
fn the_same_seed_gives_the_same_row_to_the_last_bit() {
    let trace = generated("zipf:pages=20000,requests=30000,theta=0.8,writes=0.7,commit=9,seed=3");
    for name in ["durassd", "ssd-a"] {
        let age = Some(Age { rounds_max: 3, ..Age::default() });
        let options = DeviceReplayOptions { clients: 7, age, ..DeviceReplayOptions::default() };
        let row = replay(&trace, &small(name), &options).unwrap();
        let again = replay(&trace, &small(name), &options).unwrap();
        assert_eq!(format!("{row:?}"), format!("{again:?}"));
        assert_eq!(row.read.requests + row.write.requests, 30_000);
        assert!(row.zones_cleaned > 0 && row.write_amplification > 1.0, "{row:?}");
        assert!(row.erases > 0 && row.pages_moved > 0);
        match row.dump {
            Some(dump) => {
                assert_eq!(name, "durassd");
                // 1,024 frames, which this load fills, and mapping entries.
                assert!(dump.bytes_max > 500 * 4096, "{dump:?}");
                assert!(dump.bytes_max <= dump.budget_bytes && dump.delta_pages > 0, "{dump:?}");
            }
            None => assert_eq!(name, "ssd-a"),
        }
        let other = DeviceReplayOptions { seed: 2, ..options };
        assert_ne!(replay(&trace, &small(name), &other).unwrap(), row);
    }
}

#[test]
fn one_client_writes_at_the_speed_of_the_paper() {
    // Table 1, DuraSSD without barriers, no fsync: 15,458 writes a second; SSD-A 11,681.
    let text = "uniform:pages=4000,requests=4000,writes=1,seed=1";
    let options = DeviceReplayOptions::default();
    let large = |name: &str| device(&format!("{name}:capacity=2GiB"));
    for (name, paper) in [("durassd", 15_458.0), ("ssd-a", 11_681.0), ("ssd-b", 8_456.0)] {
        let row = replay(&generated(text), &large(name), &options).unwrap();
        assert!((row.requests_per_s / paper - 1.0).abs() < 0.02, "{name}: {row:?}");
        assert_eq!(row.write.requests, 4000);
    }
    // With a flush after each: if it does not reach the flash of DuraSSD, 14,484; otherwise
    // programs of 0.93 ms (SSD-B: 0.33, and 0.2 more) and their transfers, of the page and of its
    // mapping.
    let text = "uniform:pages=4000,requests=1000,writes=1,commit=1,seed=1";
    for (name, expected) in [("durassd", 14_484.0), ("ssd-a", 493.0), ("ssd-b", 940.0)] {
        let row = replay(&generated(text), &large(name), &options).unwrap();
        assert!((row.requests_per_s / expected - 1.0).abs() < 0.05, "{name}: {row:?}");
        assert_eq!(row.commit.requests, 1000);
        assert_eq!(row.flushes, if name == "durassd" { 0 } else { 1000 });
    }
}

#[test]
fn a_disk_replays_too_slowly_and_checked() {
    let trace = generated("uniform:pages=3000,requests=600,writes=0.5,commit=20,seed=4");
    let options = DeviceReplayOptions { clients: 4, ..DeviceReplayOptions::default() };
    let disk = device("cheetah-15k6:capacity=1GiB");
    let row = replay(&trace, &disk, &options).unwrap();
    assert!((100.0..1_500.0).contains(&row.requests_per_s), "{row:?}");
    assert_eq!((row.flushes, row.erases, row.zones_cleaned), (row.commit.requests, 0, 0));
    assert!(row.flushes > 10);
    assert!(row.physical_reads > 100 && row.physical_writes > 100, "{row:?}");
    assert_eq!(replay(&trace, &disk, &options).unwrap(), row);
}

#[test]
fn a_tx_ssd_replays_with_transactions_or_without() {
    let trace = generated("zipf:pages=16000,requests=20000,theta=0.8,writes=0.7,commit=9,seed=6");
    let age = Some(Age { rounds_max: 2, ..Age::default() });
    for (name, transactions) in [("txssd", true), ("txssd", false), ("nvcache", false)] {
        let options = DeviceReplayOptions { transactions, age, ..DeviceReplayOptions::default() };
        let row = replay(&trace, &small(name), &options).unwrap();
        assert_eq!((row.cache_pages, row.transactions_split), (1024, 0), "{row:?}");
        assert_eq!(row.read.requests + row.write.requests, 20_000);
        // Rewriting pages in the cache needs no flash; cleaning the aged pages does.
        assert!(row.misses > 0 && row.misses < row.read.requests, "{row:?}");
        assert!(row.erases > 0 && row.zones_cleaned > 0 && row.pages_moved > 0, "{row:?}");
        assert!((0.5..4.0).contains(&row.write_amplification), "{row:?}");
        if transactions {
            assert!(row.transactions > 1000 && row.flushes == 0, "{row:?}");
        } else {
            assert_eq!((row.transactions, row.flushes), (0, row.commit.requests));
        }
        assert_eq!(replay(&trace, &small(name), &options).unwrap(), row);
        let fresh = DeviceReplayOptions { age: None, ..options };
        let fresh = replay(&trace, &small(name), &fresh).unwrap();
        assert!(fresh.write_amplification < row.write_amplification, "{fresh:?}");
    }
    let long = [PageEvent::Write { page: PageNo(3), pages: 700 }, PageEvent::Commit];
    let long = Rc::new(DeviceTrace::collect("long", long.map(Ok).into_iter()).unwrap());
    let options = DeviceReplayOptions { transactions: true, ..DeviceReplayOptions::default() };
    // More than one command allows, and no more than one transaction.
    let row = replay(&long, &small("txssd"), &options).unwrap();
    assert_eq!((row.transactions, row.transactions_split, row.requests), (1, 0, 700));
    let error = replay(&long, &small("nvcache"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn what_tx_cache_was_measured_against_replays_too() {
    let trace = generated("zipf:pages=16000,requests=8000,theta=0.8,writes=0.7,commit=9,seed=6");
    let mut costs = Vec::new();
    for name in ["wal", "tx-flash", "atomic-log"] {
        let age = Some(Age { rounds_max: 2, ..Age::default() });
        let options =
            DeviceReplayOptions { transactions: true, age, ..DeviceReplayOptions::default() };
        let row = replay(&trace, &small(name), &options).unwrap();
        assert_eq!((row.transactions_split, row.flushes), (0, 0));
        // A transaction's reads of its own pages are served from memory.
        assert!((1..row.read.requests).contains(&row.misses), "{row:?}");
        assert!(row.transactions > 500 && row.zones_cleaned > 0, "{row:?}");
        assert_eq!(replay(&trace, &small(name), &options).unwrap(), row);
        // Two accounts of the same programs, including the redo log's: the device's, and the
        // array's.
        let written = row.physical_writes as f64 / row.write_amplification;
        costs.push((written.round() as u64, row.physical_writes));
    }
    assert_eq!(costs[1], costs[2], "they differ in recovery alone");
    assert_eq!(costs[0].0, costs[1].0, "{costs:?}");
    assert_ne!(costs[0].1, costs[1].1, "{costs:?}");
}

#[test]
fn earlier_layers_replay_one_request_at_a_time() {
    let trace = generated("uniform:pages=1000,requests=600,writes=0.7,commit=9,seed=7");
    let mut costs = Vec::new();
    for name in ["dftl", "fast", "bast", "block-map"] {
        let device = device(&format!("{name}:pages=1024,op=0.15,block=16"));
        let age = Some(Age { rounds_max: 2, ..Age::default() });
        let options = DeviceReplayOptions { clients: 4, age, ..DeviceReplayOptions::default() };
        let row = replay(&trace, &device, &options).unwrap();
        assert_eq!(row.read.requests + row.write.requests, 600);
        assert_eq!((row.misses, row.cache_pages), (row.read.requests, 0), "{row:?}");
        assert_eq!(row.flushes, row.commit.requests);
        assert!(row.erases > 0 && row.pages_moved > 0, "{row:?}");
        // Two accounts of the same programs: the layer's, and the array's.
        let programs = row.write_amplification * row.write.requests as f64;
        assert_eq!(programs.round() as u64, row.physical_writes, "{row:?}");
        assert_eq!(row.zones_cleaned > 0, name == "dftl", "the others merge: {row:?}");
        assert_eq!(replay(&trace, &device, &options).unwrap(), row);
        costs.push(row.write_amplification);
        let fresh = DeviceReplayOptions { age: None, ..options };
        let fresh = replay(&trace, &device, &fresh).unwrap();
        assert!(fresh.write_amplification < row.write_amplification, "{fresh:?}");
    }
    assert!(costs.is_sorted() && costs[0] > 1.0, "a coarser map costs more: {costs:?}");
}

#[test]
fn transactions_of_the_trace_become_transactions_of_the_device() {
    let trace = generated("zipf:pages=9000,requests=8000,theta=0.8,writes=0.6,commit=8,seed=5");
    let options =
        DeviceReplayOptions { transactions: true, age: None, ..DeviceReplayOptions::default() };
    let row = replay(&trace, &small("durassd"), &options).unwrap();
    let commits = trace.events.iter().filter(|event| **event == PageEvent::Commit).count() as u64;
    assert!(row.transactions.abs_diff(commits) <= 1, "{row:?}");
    assert_eq!((row.transactions_split, row.flushes), (0, 0));

    let error = replay(&trace, &small("ssd-a"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let many = DeviceReplayOptions { clients: 2, ..options };
    assert_eq!(
        replay(&trace, &small("durassd"), &many).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn long_requests_and_pages_past_the_end_are_folded() {
    let events = [
        PageEvent::Write { page: PageNo(1 << 40), pages: 20_000 },
        PageEvent::Read { page: PageNo((1 << 40) + 19_000), pages: 1_000 },
        PageEvent::Trim { page: PageNo((1 << 40) + 100), pages: 50 },
        PageEvent::Read { page: PageNo((1 << 40) + 90), pages: 70 },
        PageEvent::Write { page: PageNo(5), pages: 1 },
        PageEvent::Trim { page: PageNo(6), pages: u32::MAX },
        PageEvent::Commit,
    ];
    let trace = DeviceTrace::collect("long", events.map(Ok).into_iter()).unwrap();
    assert_eq!((trace.pages, trace.events.len()), (20_001, 6), "nothing uses what is trimmed last");
    assert_eq!(trace.events[2], PageEvent::Trim { page: PageNo(101), pages: 50 });
    assert_eq!(trace.events[4], PageEvent::Write { page: PageNo(0), pages: 1 });
    assert_eq!(trace.events[0], PageEvent::Write { page: PageNo(1), pages: 20_000 });
    for clients in [1, 3] {
        let options = DeviceReplayOptions { clients, ..DeviceReplayOptions::default() };
        // 64 MiB are 16,384 pages: the trace has more.
        let row = replay(&Rc::new(trace.clone()), &small("durassd"), &options).unwrap();
        assert_eq!((row.requests, row.trim.requests, row.commit.requests), (21_071, 1, 1));
    }
}

#[test]
fn a_wrong_content_is_found() {
    let mut expected = Expected::new(8);
    let mut contents = Vec::new();
    let range = PageRange::new(PageNo(2), 3);
    expected.write(range, &mut contents);
    expected.check(PageNo(2), &contents).unwrap();
    expected.check(PageNo(5), &[Stamp::default()]).unwrap();
    let old = contents.clone();
    expected.write(PageRange::new(PageNo(3), 1), &mut contents);
    let error = expected.check(PageNo(2), &old).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("page 3"), "{error}");
    assert!(expected.enter(range, false) && expected.enter(range, false));
    assert!(!expected.enter(PageRange::new(PageNo(4), 1), true));
    expected.leave(range, false);
    expected.leave(range, false);
    assert!(expected.enter(range, true) && !expected.enter(PageRange::new(PageNo(2), 1), false));
}
