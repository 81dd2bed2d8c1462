//! Generators: repeatable, in range, and of the promised shape.
use std::path::Path;
use tantalum_trace::{Generator, OpenOptions, PageEvent, PageStat, open_pages};

fn stat(text: &str) -> PageStat {
    let events = Generator::parse(text).unwrap().map(Ok::<_, ()>);
    PageStat::of(events).unwrap()
}

#[test]
fn the_same_text_gives_the_same_events() {
    for name in ["uniform", "zipf", "self_similar", "scan"] {
        let text = format!("{name}:pages=1000,requests=5000,writes=0.3,commit=8,seed=4");
        let events = |text: &str| Generator::parse(text).unwrap().collect::<Vec<_>>();
        assert_eq!(events(&text), events(&text));
        assert_ne!(events(&text), events(&text.replace("seed=4", "seed=5")), "{name}");
        let stat = stat(&text);
        assert_eq!(stat.requests(), 5000);
        assert!(stat.max_page.unwrap().0 < 1000);
        assert!((stat.write_share() - 0.3).abs() < 0.03, "{name}: {}", stat.write_share());
        assert_eq!(stat.commits, stat.writes.div_ceil(8));
    }
}

#[test]
fn transactions_have_the_writes_asked_for() {
    let text = "uniform:pages=50,requests=1000,writes=0.5,commit=3,seed=2";
    let events: Vec<PageEvent> = Generator::parse(text).unwrap().collect();
    let transactions: Vec<_> = events.split(|event| *event == PageEvent::Commit).collect();
    let writes = |events: &[PageEvent]| {
        events.iter().filter(|event| matches!(event, PageEvent::Write { .. })).count()
    };
    let (last, whole) = transactions.split_last().unwrap();
    assert_eq!(writes(last), 0, "writes are left without a commit point");
    assert!(whole[..whole.len() - 1].iter().all(|events| writes(events) == 3));
    assert_eq!(*events.last().unwrap(), PageEvent::Commit);
}

#[test]
fn self_similar_is_80_20_within_80_20() {
    let text = "self_similar:pages=10000,requests=200000,h=0.2,order=sorted,seed=3";
    let pages: Vec<u64> = Generator::parse(text)
        .unwrap()
        .map(|event| match event {
            PageEvent::Read { page, .. } => page.0,
            other => panic!("{other:?}"),
        })
        .collect();
    let share =
        |end: u64| pages.iter().filter(|page| **page < end).count() as f64 / pages.len() as f64;
    assert!((share(2000) - 0.8).abs() < 0.01, "{}", share(2000));
    assert!((share(400) - 0.64).abs() < 0.01, "{}", share(400));
}

#[test]
fn scattering_moves_pages_and_loses_none() {
    for pages in [1, 2, 10, 997, 1024] {
        let text = format!("zipf:pages={pages},requests=1000,theta=0.0,seed=9");
        let (scattered, sorted) = (stat(&text), stat(&format!("{text},order=sorted")));
        assert_eq!(scattered.distinct_pages(), sorted.distinct_pages(), "{pages} pages");
        assert!(scattered.max_page.unwrap().0 < pages);
    }
}

#[test]
fn a_scan_goes_round() {
    let stat = stat("scan:pages=100,requests=1000");
    assert_eq!((stat.distinct_pages(), stat.reads), (100, 1000));
    // Each page comes again after exactly 100 requests: class 64 to 127.
    assert_eq!(stat.reuse_by_log2[6], 900);
    assert_eq!(stat.reuse_distance_at(0.5), Some(127));
}

#[test]
fn writing_transactions_end_in_a_commit_point() {
    let text = "link_bench:pages=1000,transactions=20000,seed=3";
    let events: Vec<PageEvent> = Generator::parse(text).unwrap().collect();
    let commits = events.iter().filter(|event| **event == PageEvent::Commit).count();
    assert!((6_000..6_500).contains(&commits), "31 % of 20,000 transactions, not {commits}");
    assert_eq!(stat(text).writes, {
        let is_write = |event: &&PageEvent| matches!(event, PageEvent::Write { .. });
        events.iter().filter(is_write).count() as u64
    });
    let unfinished = events.iter().rev().take_while(|event| **event != PageEvent::Commit);
    assert!(unfinished.into_iter().all(|event| matches!(event, PageEvent::Read { .. })));
}

#[test]
fn bad_text_says_what_is_accepted() {
    for (text, said) in [
        (
            "zip",
            "uniform, zipf, self_similar, scan, fileserver, varmail, webproxy, tpcc, link_bench",
        ),
        ("zipf:theta=-1", "0 to 4"),
        ("zipf:pages=0", "pages is 1 to"),
        ("zipf:pages=64MiB", "pages is 1 to"),
        ("uniform:theta=1", "no parameter \"theta\""),
        ("self_similar:h=0.9", "0.001 to 0.5"),
        ("zipf:order=up", "scattered or sorted"),
        ("zipf:writes=2", "0 to 1"),
        ("link_bench:writes=0.5", "no parameter \"writes\""),
        ("link_bench:pages=24", "pages is 25 to"),
    ] {
        let shown = Generator::parse(text).unwrap_err().to_string();
        assert!(shown.contains(said), "{text}: {shown}");
    }
}

#[test]
fn a_generator_opens_like_a_trace() {
    let text = "zipf:pages=100,requests=50,commit=2,writes=1";
    let opened = open_pages(Path::new(text), &OpenOptions::default()).unwrap();
    let opened: Vec<PageEvent> = opened.map(Result::unwrap).collect();
    assert_eq!(opened, Generator::parse(text).unwrap().collect::<Vec<_>>());
    let bad = open_pages(Path::new("zipf:pages=x"), &OpenOptions::default()).unwrap_err();
    assert!(bad.to_string().contains("pages=x"), "{bad}");
    let file = open_pages(Path::new("zap:pages=1"), &OpenOptions::default()).unwrap_err();
    assert!(file.to_string().contains("cannot open zap:pages=1"), "{file}");
}

/// Every generator in the documentation exists.
#[test]
fn documented_generators_are_accepted() {
    let docs = include_str!("../../../docs/traces.md");
    let shown: Vec<&str> = docs
        .split('`')
        .filter(|text| {
            let name = text.split_once(':').map(|(name, _)| name);
            name.is_some_and(|name| tantalum_trace::generate::NAMES.contains(&name))
        })
        .collect();
    assert!(shown.len() >= 4, "{shown:?}");
    for text in shown {
        Generator::parse(text).unwrap();
    }
}

/// The pages that each transaction writes, in the order of the trace.
fn transactions(text: &str) -> Vec<Vec<u64>> {
    let mut transactions = vec![Vec::new()];
    for event in Generator::parse(text).unwrap() {
        match event {
            PageEvent::Write { page, pages } => {
                transactions.last_mut().unwrap().extend(page.0..page.0 + u64::from(pages));
            }
            PageEvent::Commit => transactions.push(Vec::new()),
            _ => {}
        }
    }
    assert!(transactions.pop().unwrap().is_empty(), "writes are left without a commit point");
    transactions
}

fn mean_pages(transactions: &[Vec<u64>]) -> f64 {
    let pages: usize = transactions.iter().map(Vec::len).sum();
    pages as f64 / transactions.len() as f64
}

fn distinct(transactions: &[Vec<u64>]) -> usize {
    let pages: std::collections::BTreeSet<u64> = transactions.iter().flatten().copied().collect();
    pages.len()
}

#[test]
fn servers_make_transactions_that_repeat_and_stay_in_range() {
    for text in [
        "fileserver:transactions=4,commit=500,files=300",
        "varmail:transactions=300",
        "webproxy:transactions=20,files=500",
        "tpcc:transactions=500,warehouses=2",
    ] {
        let one = transactions(&format!("{text},seed=4"));
        assert_eq!(one, transactions(&format!("{text},seed=4")), "{text}");
        assert_ne!(one, transactions(&format!("{text},seed=5")), "{text}");
        let pages = Generator::parse(text).unwrap().pages();
        for transaction in &one {
            assert!(transaction.is_sorted_by(|a, b| a < b), "{text}: a page twice");
            assert!(transaction.iter().all(|page| *page < pages), "{text}");
        }
    }
}

#[test]
fn varmail_is_small_transactions_in_a_small_place() {
    let made = transactions("varmail:transactions=5000");
    assert_eq!(made.len(), 5000);
    let mean = mean_pages(&made);
    assert!((10.0..40.0).contains(&mean), "{mean}");
    // 1000 mails of 16 KiB are 4000 blocks: all fits into 32 MiB, and is written repeatedly.
    let distinct = distinct(&made);
    assert!((2_000..8_192).contains(&distinct), "{distinct}");
    assert!(made.iter().all(|transaction| transaction.contains(&1)), "no group descriptors");
}

#[test]
fn fileserver_is_transactions_of_a_quarter_of_the_journal() {
    let made = transactions("fileserver:transactions=12");
    for transaction in &made {
        assert!((7680..=8192).contains(&transaction.len()), "{}", transaction.len());
    }
    // Few blocks are written twice in a sequence of transactions that fills the cache.
    let written: usize = made.iter().map(Vec::len).sum();
    assert!(distinct(&made) as f64 > 0.6 * written as f64, "{} of {written}", distinct(&made));
}

#[test]
fn webproxy_is_between_the_two() {
    let made = transactions("webproxy:transactions=100");
    let mean = mean_pages(&made);
    assert!((300.0..1500.0).contains(&mean), "{mean}");
    let share = distinct(&made) as f64 / (mean * 100.0);
    assert!((0.05..0.7).contains(&share), "{share}");
}

#[test]
fn a_file_system_does_not_fill_up() {
    // The blocks of deleted files are reused: the total written is 40 times the content of the files.
    for text in ["fileserver:transactions=1200,commit=100,files=20", "webproxy:files=40,commit=4"] {
        let made = transactions(text);
        let half = made.len() / 2;
        let (early, late) = (mean_pages(&made[..half]), mean_pages(&made[half..]));
        assert!((late / early - 1.0).abs() < 0.1, "{text}: {early} pages, later {late}");
    }
}

#[test]
fn tpcc_has_the_sizes_and_the_skew_of_the_benchmark() {
    let made = transactions("tpcc:transactions=20000,reads=off");
    // New-order: district, order, new-order, ten stock pages, one or two of order lines.
    let mean = mean_pages(&made);
    assert!((7.0..12.0).contains(&mean), "{mean}");
    let read_only = made.iter().filter(|pages| pages.is_empty()).count();
    assert!((read_only as f64 / 20_000.0 - 0.08).abs() < 0.01, "{read_only}");
    // Leutenegger and Dias, section 3: with NURand on tuples packed in key order, 20 % of the
    // stock pages get less of the accesses than 20 % of the tuples, and clearly more than 20 %.
    let generator = Generator::parse("tpcc:transactions=20000").unwrap();
    assert_eq!(generator.pages(), Generator::parse("tpcc:transactions=20000").unwrap().pages());
    let stock_first: u64 = 1 + 7 + 140_000;
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    let stock = stock_first..stock_first + 215_385;
    for page in made.iter().flatten().filter(|page| stock.contains(*page)) {
        // The same items are hot in every warehouse; 100,000 items are about 7693 pages.
        *counts.entry((page - stock_first) % 7_692).or_default() += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hot: u64 = counts[..counts.len() / 5].iter().sum();
    let share = hot as f64 / counts.iter().sum::<u64>() as f64;
    assert!((0.3..0.95).contains(&share), "{share}");
    let reading = Generator::parse("tpcc:transactions=100").unwrap();
    assert!(reading.clone().any(|event| matches!(event, PageEvent::Read { .. })));
}
