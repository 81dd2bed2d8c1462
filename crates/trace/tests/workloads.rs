//! Generated workloads have the numbers that their sources state.
use std::collections::BTreeMap;
use tantalum_trace::{Generator, PageEvent, PageStat};

fn requests(text: &str) -> Vec<(u64, bool)> {
    let generator = Generator::parse(text).unwrap();
    let pages = generator.pages();
    let requests: Vec<(u64, bool)> = generator
        .flat_map(|event| event.requests())
        .map(|(page, is_write)| (page.0, is_write))
        .collect();
    assert!(requests.iter().all(|(page, _)| *page < pages), "{text}");
    requests
}

/// Runs of at least `pages_min` pages in ascending order: (first page, pages, whether written).
fn scans(requests: &[(u64, bool)], pages_min: usize) -> Vec<(u64, usize, bool)> {
    let mut scans = Vec::new();
    let mut run: Vec<(u64, bool)> = Vec::new();
    for &(page, write) in requests.iter().chain([&(u64::MAX, false)]) {
        if run.last().is_none_or(|&(last, was)| page != last + 1 || was != write) {
            if run.len() >= pages_min {
                scans.push((run[0].0, run.len(), run[0].1));
            }
            run.clear();
        }
        run.push((page, write));
    }
    scans
}

#[test]
fn the_synthetic_trace_has_the_numbers_of_section_3_3_1() {
    let requests = requests("cfdc_synthetic:seed=5");
    assert_eq!(requests.len(), 200_000 + 200 * 200);
    let updates = requests.iter().filter(|(_, write)| *write).count();
    assert_eq!(updates, 100_000 + 100 * 200);
    let scans = scans(&requests, 150);
    assert!((195..=200).contains(&scans.len()), "{}", scans.len());
    let updating = scans.iter().filter(|(_, _, write)| *write).count();
    assert!((90..=102).contains(&updating), "{updating}");
    assert!(scans.iter().all(|(first, pages, _)| *first < 100_000 && *pages <= 205));
    // Starts are spread evenly: a quarter in each quarter.
    for quarter in 0..4 {
        let there = scans.iter().filter(|(first, ..)| first / 25_000 == quarter).count();
        assert!((28..=75).contains(&there), "{there}");
    }
    // 80-20, and the hottest page is page 0. Scans have a fifth of their pages there, too.
    let hot = requests.iter().filter(|(page, _)| *page < 20_000).count() as f64;
    assert!((hot / 240_000.0 - (0.8 * 200.0 + 0.2 * 40.0) / 240.0).abs() < 0.02, "{hot}");
    // The four kinds are mixed: each tenth of the trace has about a tenth of the scans.
    let mut at = 0;
    let mut tenths = [0; 10];
    let distance = requests.len() / 10;
    while at + 1 < requests.len() {
        if requests[at + 1].0 == requests[at].0 + 1 {
            tenths[at / distance] += 1;
        }
        at += 1;
    }
    assert!(tenths.iter().all(|&sequential| (2_000..6_500).contains(&sequential)), "{tenths:?}");
}

#[test]
fn scan_resistance_puts_the_scans_behind_the_single_pages() {
    for scans_wanted in [200, 1600] {
        let requests = requests(&format!("cfdc_scans:scans={scans_wanted}"));
        assert_eq!(requests.len(), 200_000 + scans_wanted * 200);
        let single: Vec<u64> =
            requests.iter().map(|(page, _)| *page).filter(|page| *page < 100_000).collect();
        assert_eq!(single.len(), 200_000);
        let hot = single.iter().filter(|page| **page < 10_000).count() as f64;
        assert!((hot / 200_000.0 - 0.9).abs() < 0.005, "{hot}");
        assert!(requests.iter().all(|(page, _)| *page < 150_000 + 200));
    }
    let one = requests("cfdc_scans:scans=0,reads=10,updates=0,seed=3");
    assert_eq!(one, requests("cfdc_scans:scans=0,reads=10,updates=0,seed=3"));
    assert_ne!(one, requests("cfdc_scans:scans=0,reads=10,updates=0,seed=4"));
}

/// (requests, distinct pages, updates, requests to the hottest fifth) of table B.1.
#[test]
fn stand_ins_have_the_numbers_of_table_b_1() {
    for (like, requests, distinct, updates_share, hottest) in [
        ("bank", 607_390, 51_880, 0.2251, 434_702.0 / 607_390.0),
        ("tpcc", 2_841_225, 88_698, 0.1872, 0.88),
        ("tpce", 3_341_738, 460_064, 0.0103, 0.87),
    ] {
        let generator = Generator::parse(&format!("buffer_trace:like={like},seed=2")).unwrap();
        let stat = PageStat::of(generator.map(Ok::<_, ()>)).unwrap();
        assert_eq!((stat.requests(), stat.distinct_pages()), (requests, distinct), "{like}");
        assert!(
            (stat.write_share() - updates_share).abs() < 1e-5,
            "{like}: {}",
            stat.write_share()
        );
        let share = stat.hottest_share(0.2);
        // If most pages are requested once or twice, rounding decides which of them are hot.
        let tolerance = if like == "tpce" { 0.006 } else { 0.002 };
        assert!((share - hottest).abs() < tolerance, "{like}: {share} for {hottest}");
        if like == "bank" {
            assert!((stat.hottest_share(0.03) - 0.4).abs() < 0.002);
        }
    }
}

#[test]
fn ycsb_has_the_mix_of_its_workloads() {
    for (workload, reads, writes, long) in [
        ("a", 0.5, 0.5, false),
        ("b", 0.95, 0.05, false),
        ("c", 1.0, 0.0, false),
        ("d", 0.95, 0.05, false),
        ("e", 0.95, 0.05, true),
        ("f", 1.0, 0.5, false),
    ] {
        let text = format!("ycsb:workload={workload},operations=20000,records=8000");
        let events: Vec<PageEvent> = Generator::parse(&text).unwrap().collect();
        let count = |wanted: fn(&PageEvent) -> bool| {
            events.iter().filter(|event| wanted(event)).count() as f64 / 20_000.0
        };
        let read = count(|event| matches!(event, PageEvent::Read { .. }));
        let written = count(|event| matches!(event, PageEvent::Write { .. }));
        assert!((read - reads).abs() < 0.015, "{workload}: {read}");
        assert!((written - writes).abs() < 0.015, "{workload}: {written}");
        assert_eq!(written, count(|event| *event == PageEvent::Commit), "{workload}");
        let longest = events.iter().map(|event| event.requests().count()).max().unwrap();
        assert_eq!(longest > 1, long, "{workload}: {longest}");
        assert!(longest <= 26, "100 records at four a page");
        assert!(!requests(&text).is_empty());
    }
    // Zipf with 0.99 over 8000 records; four of them share a page.
    let mut counts = BTreeMap::<u64, usize>::new();
    for (page, _) in requests("ycsb:workload=c,operations=100k,records=8000,records_per_page=1") {
        *counts.entry(page).or_default() += 1;
    }
    let hottest = *counts.values().max().unwrap() as f64 / 102_400.0;
    let expected = 1.0 / (1..=8000).map(|rank| f64::from(rank).powf(-0.99)).sum::<f64>();
    assert!((hottest / expected - 1.0).abs() < 0.05, "{hottest} for {expected}");
    // D reads the records inserted last.
    let latest = requests("ycsb:workload=d,operations=50000,records=8000");
    let late = latest[latest.len() / 2..].iter().filter(|(page, _)| *page >= 2000).count();
    assert!(late * 2 > latest.len() / 2, "{late}");
}

#[test]
fn the_list_names_every_generator_with_its_parameters() {
    let list = tantalum_trace::generate::list();
    for name in tantalum_trace::generate::NAMES {
        assert!(list.contains(&format!("\n{name}: ")), "{name} in {list}");
    }
    for part in ["theta", "0 to 4, default 1", "scan_pages", "default 200", "bank or tpcc", "seed"]
    {
        assert!(list.contains(part), "{part} in {list}");
    }
}
