//! Curves compared with replays at each size and with other programs' counts, and samples compared
//! with the whole.
use tantalum_base::Result;
use tantalum_policy::PolicySpec;
use tantalum_replay::cache_replay::{CacheReplayOptions, CacheTrace, replay};
use tantalum_replay::miss_ratio_curve::{Curve, CurveOptions, Sampling};
use tantalum_replay::work::Work;
use tantalum_testing::found;
use tantalum_trace::{Generator, OpenOptions, PageEvent, open_pages, shared};

const EXACT: CurveOptions = CurveOptions { sampling: Sampling::None, seed: 0 };

fn made(text: &str) -> impl Iterator<Item = Result<PageEvent>> {
    Generator::parse(text).unwrap().map(Ok)
}

fn agrees_with_replays(name: &str, trace: &CacheTrace, curve: &Curve, sizes: &[u32]) {
    let options = CacheReplayOptions {
        policies: PolicySpec::parse_list("lru").unwrap(),
        cache_pages: sizes.to_vec(),
        timing: false,
        threads: 2,
    };
    for row in replay(trace, &options, &Work::default()).unwrap() {
        let point = curve.point(u64::from(row.cache_pages));
        let context = format!("{name}, {} pages", row.cache_pages);
        assert_eq!(point.requests, row.requests, "{context}");
        assert_eq!(point.misses(), row.misses, "{context}: misses");
        assert_eq!(point.read_misses, row.read_misses, "{context}: read misses");
        assert_eq!(point.physical_writes, row.physical_writes, "{context}: write-backs");
        let dirty = u64::from(row.dirty_pages_at_end);
        assert_eq!(point.dirty_pages_at_end, dirty, "{context}: dirty at the end");
        assert_eq!(point.miss_ratio_error, None);
    }
    assert_eq!(curve.distinct_pages(), trace.distinct_pages(), "{name}");
}

#[test]
fn every_size_has_the_counts_of_a_replay() {
    for text in [
        "zipf:pages=300,requests=5000,theta=0.8,writes=0.3,commit=5,seed=7",
        "uniform:pages=100,requests=3000,writes=0.1,seed=2",
        "scan:pages=50,requests=500,writes=0.5",
        "cfdc_synthetic:pages=400,reads=2000,updates=2000,scans=10,scan_pages=30",
        "varmail:transactions=100",
        "zipf:requests=0",
    ] {
        let trace = CacheTrace::collect(text, made(text)).unwrap();
        let curve = Curve::of(made(text), &EXACT).unwrap();
        let sizes: Vec<u32> = (1..=160).chain([300, 5000, 1 << 20]).collect();
        agrees_with_replays(text, &trace, &curve, &sizes);
    }
}

/// Every LRU row of the reference: other programs' counts on real traces.
#[test]
fn real_traces_have_the_counts_of_other_programs() {
    for folder in ["databases", "public"] {
        let Some(path) =
            found(shared::find(&format!("traces/{folder}/reference.json")), "shared traces")
        else {
            return;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let reference: serde_json::Value = serde_json::from_str(&text).unwrap();
        let write_backs = &reference["writeback"];
        let write_backs = write_backs.as_array().or(write_backs["rows"].as_array()).unwrap();
        let rows = reference["miss_counts"].as_array().unwrap().iter().chain(write_backs);
        let rows: Vec<&serde_json::Value> = rows.filter(|row| row["policy"] == "LRU").collect();
        let mut names: Vec<&str> = rows.iter().map(|row| row["trace"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        let mut checked = 0;
        for name in names {
            let trace = path.with_file_name(format!("{name}.csv.zst"));
            let events = open_pages(&trace, &OpenOptions::default()).unwrap();
            let curve = Curve::of(events, &EXACT).unwrap();
            for row in rows.iter().filter(|row| row["trace"] == name) {
                let count = |key: &str| row[key].as_u64();
                let pages = count("cache_objects").or(count("cache_pages")).unwrap();
                let point = curve.point(pages);
                for (key, value) in [
                    ("requests", point.requests),
                    ("misses", point.misses()),
                    ("read_misses", point.read_misses),
                    ("write_misses", point.write_misses),
                    ("write_backs", point.physical_writes),
                    ("dirty_at_end", point.dirty_pages_at_end),
                ] {
                    if let Some(expected) = count(key) {
                        assert_eq!(value, expected, "{name}, {pages} pages: {key}");
                        checked += 1;
                    }
                }
            }
        }
        println!("{folder}: {checked} counts agree");
        assert!(checked > 20, "{checked}");
    }
}

/// A sampled curve against the exact one, at sizes from a hundredth to all of the pages.
struct Off {
    /// Mean absolute error.
    error: f64,
    /// Mean of the error that the curve states.
    stated: f64,
    /// Share of the sizes at which the error is within the stated one.
    covered: f64,
}

fn off(exact: &Curve, sampled: &Curve) -> Off {
    let pages = exact.distinct_pages();
    let mut off = Off { error: 0.0, stated: 0.0, covered: 0.0 };
    for size in (1..=100).map(|percent| pages * percent / 100) {
        let estimate = sampled.point(size);
        let error = (estimate.miss_ratio() - exact.point(size).miss_ratio()).abs();
        let stated = estimate.miss_ratio_error.unwrap();
        off.error += error / 100.0;
        off.stated += stated / 100.0;
        off.covered += f64::from(u8::from(error <= stated)) / 100.0;
    }
    off
}

#[test]
fn a_sample_of_all_is_the_whole() {
    let text = "zipf:pages=3000,requests=30000,theta=0.8,writes=0.3,seed=7";
    let exact = Curve::of(made(text), &EXACT).unwrap();
    for sampling in [Sampling::Rate(1.0), Sampling::Pages(1 << 20)] {
        let all = Curve::of(made(text), &CurveOptions { sampling, seed: 5 }).unwrap();
        for size in [1, 10, 100, 250] {
            let (all, exact) = (all.point(size), exact.point(size));
            assert_eq!(all.misses(), exact.misses(), "{size} pages");
            assert_eq!(all.physical_writes, exact.physical_writes, "{size} pages");
            assert_eq!(all.dirty_pages_at_end, exact.dirty_pages_at_end, "{size} pages");
            assert_eq!(all.miss_ratio_error, Some(0.0));
        }
        assert_eq!(all.sample(), Some((1.0, 30_000)));
        assert_eq!(all.distinct_pages(), exact.distinct_pages());
    }
}

/// Over many seeds the error is within the stated one about as often as promised, and shrinks with the sample. A
/// stated error that is far too large would be no better than none.
#[test]
fn the_error_is_within_the_stated_one() {
    let text = "zipf:pages=40000,requests=400000,theta=0.8,writes=0.3,seed=3";
    let exact = Curve::of(made(text), &EXACT).unwrap();
    let mean = |sampling: Sampling| {
        let seeds = 40;
        let mut mean = Off { error: 0.0, stated: 0.0, covered: 0.0 };
        for seed in 1..=seeds {
            let sampled = Curve::of(made(text), &CurveOptions { sampling, seed }).unwrap();
            let off = off(&exact, &sampled);
            mean.error += off.error / seeds as f64;
            mean.stated += off.stated / seeds as f64;
            mean.covered += off.covered / seeds as f64;
        }
        let Off { error, stated, covered } = mean;
        println!("{sampling:?}: error {error:.5}, stated {stated:.5}, covered {covered:.3}");
        assert!(covered >= 0.9, "{sampling:?}: {covered} are covered");
        assert!(stated < 5.0 * error, "{sampling:?}: {error} of {stated}");
        error
    };
    let hundredth = mean(Sampling::Rate(0.01));
    let tenth = mean(Sampling::Rate(0.1));
    assert!(hundredth < 0.04 && tenth < 0.6 * hundredth, "{hundredth}, {tenth}");
    assert!(mean(Sampling::Pages(2000)) < 0.03);
}

/// The trace of a server, whose errors once were stated far too small.
#[test]
fn the_error_of_a_real_trace_is_within_the_stated_one() {
    let Some(path) = found(shared::find("traces/public/cloudPhysicsIO.csv.zst"), "shared traces")
    else {
        return;
    };
    let trace = || open_pages(&path, &OpenOptions::default()).unwrap();
    let exact = Curve::of(trace(), &EXACT).unwrap();
    let sizes = [100, 1_000, 4_000, 10_000];
    let (seeds, mut covered) = (60, 0);
    for seed in 1..=seeds {
        let sampling = Sampling::Rate(0.01);
        let sampled = Curve::of(trace(), &CurveOptions { sampling, seed }).unwrap();
        for size in sizes {
            let point = sampled.point(size);
            let error = (point.miss_ratio() - exact.point(size).miss_ratio()).abs();
            covered += u64::from(error <= point.miss_ratio_error.unwrap());
        }
    }
    let share = covered as f64 / (seeds * sizes.len() as u64) as f64;
    assert!(share >= 0.92, "{share}");
}

/// A hot page in the sample makes every estimate too large.
#[test]
fn no_estimate_is_impossible() {
    for text in [
        "zipf:pages=4000,requests=40000,theta=1.0,writes=0.9,seed=3",
        "uniform:pages=2000,requests=20000,writes=1.0,seed=3",
    ] {
        let exact = Curve::of(made(text), &EXACT).unwrap();
        let writes = exact.point(0).write_misses;
        for seed in 1..=20 {
            let sampling = Sampling::Rate(0.05);
            let sampled = Curve::of(made(text), &CurveOptions { sampling, seed }).unwrap();
            for size in [1, 7, 100, 1_000, 2_000, 4_000] {
                let point = sampled.point(size);
                let (dirty, misses) = (point.dirty_pages_at_end, point.misses());
                assert!(misses <= point.requests, "{point:?}");
                assert!(dirty <= size, "{point:?}");
                assert!(point.physical_writes + dirty <= writes.min(misses), "{point:?}");
                assert!(point.miss_ratio_error.unwrap() <= 1.0, "{point:?}");
            }
        }
    }
}

/// Nothing can be said from a few pages, and less from none.
#[test]
fn a_sample_of_few_pages_is_refused() {
    let text = "zipf:pages=40000,requests=400000,theta=0.8,seed=3";
    for rate in [0.000_01, 0.000_5] {
        let options = CurveOptions { sampling: Sampling::Rate(rate), seed: 1 };
        let told = Curve::of(made(text), &options).unwrap_err().to_string();
        assert!(told.contains("an estimate needs at least 64"), "{told}");
    }
    let none = CurveOptions { sampling: Sampling::Rate(0.5), seed: 1 };
    assert_eq!(Curve::of([], &none).unwrap().point(1).requests, 0);
}

#[test]
fn real_traces_are_sampled_well() {
    for name in ["tpcc-pg-logical", "tpch-pg-logical"] {
        let Some(path) =
            found(shared::find(&format!("traces/databases/{name}.csv.zst")), "shared traces")
        else {
            return;
        };
        let trace = || open_pages(&path, &OpenOptions::default()).unwrap();
        let exact = Curve::of(trace(), &EXACT).unwrap();
        for sampling in [Sampling::Rate(0.01), Sampling::Rate(0.1), Sampling::Pages(8192)] {
            let sampled = Curve::of(trace(), &CurveOptions { sampling, seed: 1 }).unwrap();
            let Off { error, stated, .. } = off(&exact, &sampled);
            println!("{name}, {sampling:?}: error {error:.5}, stated {stated:.5}");
            assert!(error < 0.05 && error < 1.5 * stated, "{name} {sampling:?}: {error}");
            let writes = |curve: &Curve| curve.point(4000).physical_writes as f64;
            let off = (writes(&sampled) - writes(&exact)).abs() / exact.point(1).requests as f64;
            assert!(off < 0.03, "{name} {sampling:?}: write-backs {off}");
        }
    }
}

#[test]
fn the_seed_chooses_the_sample_and_nonsense_is_refused() {
    let text = "zipf:pages=4000,requests=40000,seed=3";
    let misses = |sampling, seed| {
        let curve = Curve::of(made(text), &CurveOptions { sampling, seed }).unwrap();
        (1..2000).step_by(100).map(|size| curve.point(size).misses()).collect::<Vec<_>>()
    };
    for sampling in [Sampling::Rate(0.1), Sampling::Pages(100)] {
        assert_eq!(misses(sampling, 1), misses(sampling, 1));
        assert_ne!(misses(sampling, 1), misses(sampling, 2));
    }
    for sampling in [Sampling::Rate(0.0), Sampling::Rate(1.5), Sampling::Pages(63)] {
        let options = CurveOptions { sampling, seed: 1 };
        assert!(Curve::of(made(text), &options).is_err(), "{sampling:?}");
    }
}
