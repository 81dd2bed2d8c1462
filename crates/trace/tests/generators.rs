//! Generators: repeatable, in range, and of the shape they claim.
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
    let text = "link_bench:pages=1000,requests=20000,seed=3";
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
        ("zip", "uniform, zipf, self_similar, scan, link_bench"),
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

/// Every generator that the documentation shows is one.
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
