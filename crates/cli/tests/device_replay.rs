//! `tantalum replay TRACE --device ...`.
mod support;

use support::{good, refused, tantalum};

const TRACE: &str = "zipf:pages=2k,requests=4k,theta=0.9,writes=0.6,commit=8,seed=3";

#[test]
fn both_devices_replay_with_every_documented_field_and_the_same_bytes_twice() {
    let devices = ["--device", "durassd:capacity=64MiB", "--device", "ssd-a:capacity=64MiB"];
    let listed = ["--device", "DuraSSD:capacity=64MiB,SSD_A:capacity=64MiB"];
    let run = |format: &str| {
        let mut args = vec!["replay", TRACE];
        args.extend(devices);
        args.extend(["--format", format, "--device-seed", "5"]);
        good(&args)
    };
    let json = run("json");
    assert_eq!(json, run("json"), "a rerun gives the same bytes");
    let more = ["--format", "json", "--device-seed", "5"];
    assert_eq!(json, good(&[&["replay", TRACE], &listed[..], &more].concat()), "between commas");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed["seed"], 5);
    let rows = parsed["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for column in tantalum_report::schema::DEVICE_REPLAY {
        assert!(rows[0].get(column.key).is_some(), "{} is missing", column.key);
    }
    let commit_p50 = |row: usize| rows[row]["commit_p50_ns"].as_u64().unwrap();
    assert!(commit_p50(0) * 10 < commit_p50(1), "a durable cache makes flushes cheap: {json}");
    assert!(run("table").contains("WA"));
}

#[test]
fn a_device_without_a_capacity_is_as_large_as_the_trace() {
    let trace = "zipf:pages=30k,requests=60k,theta=0,writes=0.6,seed=3";
    for more in [&[][..], &["--policy", "lru", "--size", "100"]] {
        let args = [&["replay", trace, "--device", "ssd-a", "--device", "durassd:pages=40k"], more]
            .concat();
        let run = tantalum(&[&args[..], &["--format", "json"]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        let told: Vec<&str> = run.err.lines().filter(|line| line.contains("pages (")).collect();
        assert_eq!(told.len(), 1, "{}", run.err);
        let pages = told[0].strip_prefix("ssd-a: as large as the trace needs, ").expect(told[0]);
        let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
        assert!((20_000..=30 << 10).contains(&pages), "{}", run.err);
        assert!(!run.err.contains("warning"), "no page is folded into another: {}", run.err);
        let parsed: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        let device = |row: usize| parsed["rows"][row]["device"].as_str().unwrap();
        assert!(device(0).contains(&format!("pages={pages}")), "{}", device(0));
        assert!(device(1).contains("pages=40960"), "{}", device(1));
    }
}

#[test]
fn an_unknown_device_is_refused_with_the_names() {
    let message = refused(&["replay", TRACE, "--device", "floppy"]);
    assert!(message.contains("durassd") && message.contains("ssd-a"), "{message}");
}

const BUFFER: [&str; 6] =
    ["--policy", "lru,casa", "--size", "100,10%", "--device", "mtron:pages=2k,logs=2"];

#[test]
fn a_buffer_above_a_device_replays_with_every_documented_field_and_the_same_bytes_twice() {
    let run = |more: &[&str]| {
        // The smallest size that keeps all its planes.
        let other = ["--device", "x25-m:pages=64k"];
        good(&[&["replay", TRACE], &BUFFER[..], &other, more].concat())
    };
    let json = run(&["--format", "json", "--device-seed", "7"]);
    let one = run(&["--format", "json", "--device-seed", "7", "--threads", "1"]);
    assert_eq!(json, one, "the same bytes on any number of threads");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed["seed"], 7);
    let rows = parsed["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "policies times sizes times devices");
    for column in tantalum_report::schema::BUFFER_REPLAY {
        assert!(rows[0].get(column.key).is_some(), "{} is missing", column.key);
    }
    let number = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    // Rows are ordered by policy, then size, then device; the decisions of a policy do not depend on the device.
    assert_eq!((number(0, "cache_pages"), number(2, "cache_pages") > 100.0), (100.0, true));
    assert_eq!(number(0, "physical_writes"), number(1, "physical_writes"));
    assert!(number(0, "seconds") > 5.0 * number(1, "seconds"), "log blocks are slow: {json}");
    assert!(number(2, "misses") < number(0, "misses"));
    let busy = run(&["--format", "json", "--device-seed", "7", "--cpu-ns", "1000000"]);
    let busy: serde_json::Value = serde_json::from_str(&busy).unwrap();
    let added = busy["rows"][0]["seconds"].as_f64().unwrap() - number(0, "seconds");
    assert!(
        (added - number(0, "requests") * 1e-3).abs() < 1e-3,
        "a millisecond a request: {added}"
    );
    assert!(run(&["--format", "table"]).contains("cluster switches"));
}

#[test]
fn a_page_of_8_kib_takes_two_of_the_device_and_no_other_decision() {
    let rows = |page_size: &str, device: &str| {
        let args = ["replay", TRACE, "--policy", "lru,cfdc", "--size", "100", "--format", "json"];
        let json = good(&[&args[..], &["--page-size", page_size, "--device", device]].concat());
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        parsed["rows"].as_array().unwrap().clone()
    };
    let (small, large) = (rows("4KiB", "mtron:pages=2k"), rows("8KiB", "mtron:pages=4k"));
    assert_eq!((small.len(), large.len()), (2, 2));
    for (small, large) in small.iter().zip(&large) {
        assert_eq!((&small["page_bytes"], &large["page_bytes"]), (&4096.into(), &8192.into()));
        for same in ["misses", "physical_writes", "dirty_pages_at_end", "cluster_switches"] {
            assert_eq!(small[same], large[same], "{same}");
        }
        for longer in ["seconds", "read_mean_ns", "write_mean_ns"] {
            assert!(small[longer].as_f64().unwrap() < large[longer].as_f64().unwrap(), "{longer}");
        }
    }
    // A page smaller than the device's takes one page of the device.
    assert_eq!(rows("512", "mtron:pages=2k"), small);
}

#[test]
fn what_a_buffer_above_a_device_does_not_take_is_refused() {
    let tiny = ["--page-size", "1MiB", "--device", "bast:pages=64"];
    let message =
        refused(&[&["replay", TRACE, "--policy", "lru", "--size", "9"], &tiny[..]].concat());
    assert!(message.contains("256 pages of the device, which has only 64"), "{message}");
    for (more, said) in [(["--transactions"], "without a buffer"), (["--timing"], "virtual time")] {
        let message = refused(&[&["replay", TRACE], &BUFFER[..], &more[..]].concat());
        assert!(message.contains(said), "{message}");
    }
    let half = support::tantalum(&["replay", TRACE, "--device", "durassd", "--policy", "lru"]);
    assert_eq!(half.code, 2, "a policy has a size");
}

#[test]
fn a_real_trace_replays_as_transactions_too() {
    let trace = support::sample("tpcb-pg-logical-2000.csv.gz");
    let json = good(&[
        "replay",
        &trace,
        "--device",
        "durassd:capacity=2GiB",
        "--fresh",
        "--transactions",
        "--format",
        "json",
    ]);
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(parsed["rows"][0]["transactions"].as_u64().unwrap() > 0, "{json}");
}

/// More pages than a small device has.
const WIDE: &str = "uniform:pages=20k,requests=8k,writes=0.6,seed=3";

#[test]
fn a_row_says_how_many_pages_were_folded_into_its_device() {
    let devices = ["--device", "mtron:pages=2k,logs=2", "--device", "durassd:pages=40k"];
    for more in [&["--fresh"][..], &["--fresh", "--policy", "lru", "--size", "10%"]] {
        let run = |format: &str| {
            tantalum(&[&["replay", WIDE], &devices[..], more, &["--format", format]].concat())
        };
        let json = run("json");
        assert!(json.err.contains("folded"), "{}", json.err);
        let parsed: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        let pages = |row: usize, key: &str| parsed["rows"][row][key].as_u64().expect(key);
        assert_eq!((pages(0, "device_pages"), pages(1, "device_pages")), (2048, 40 << 10));
        let taken = pages(0, "trace_pages");
        assert!(taken > 6000 && taken == pages(1, "trace_pages"), "{}", json.out);
        let told = format!("the trace takes {taken} pages, the device has 2048");
        assert!(json.err.contains(&told), "{}", json.err);
        assert!(run("csv").out.contains("trace_pages,device_pages,"));
        if more.len() > 1 {
            // A share is a share of the trace's pages, even if they are folded.
            let tenth = pages(0, "cache_pages");
            assert!(tenth > 600 && tenth == pages(1, "cache_pages"), "{}", json.out);
        }
    }
}

#[test]
fn a_page_size_that_would_say_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.csv");
    std::fs::write(&path, "op,page\nW,1\nW,2\n").unwrap();
    let (file, blocks) = (support::text(&path), support::sample("sqlite-oltp-wal-2000.csv"));
    let parts = format!("concat:{file}@50%+{WIDE}@10%");
    let on_device = ["--device", "durassd:pages=40k", "--fresh", "--page-size", "8KiB"];
    for trace in [file, WIDE, &parts] {
        let error = refused(&[&["replay", trace], &on_device[..]].concat());
        assert!(error.contains("--page-size") && error.contains("--policy"), "{trace}: {error}");
        good(&[&["replay", trace], &on_device[..4], &["4096"]].concat());
    }
    // Here it is the size that bytes are cut into, or the page size of the buffer.
    good(&[&["replay", &blocks], &on_device[..]].concat());
    good(&[&["replay", WIDE], &on_device[..], &["--policy", "lru", "--size", "9"]].concat());
}
