//! `tantalum advise`: its advice follows from its own rows.
mod support;
use serde_json::Value;
use support::{good, refused, sample, tantalum};

const TRACE: &str = "tpcc-pg-logical-6000.csv.zst";

#[test]
fn the_advice_is_one_of_its_rows_and_comes_again() {
    let trace = sample(TRACE);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("advice.html");
    let args = ["advise", &trace, "--flash", "ssd-b:pages=220k,storage-cache=off"];
    let what = ["--size", "100,1k", "--policy", "lru,cflru", "--tries", "1"];
    let run = |more: &[&str]| good(&[&args[..], &what[..], more].concat());
    let json = run(&["--format", "json", "--report", page.to_str().unwrap()]);
    assert_eq!(run(&["--format", "json", "--threads", "1"]), json);
    let out: Value = serde_json::from_str(&json).unwrap();
    let rows = out["rows"].as_array().unwrap();
    // Two policies and the limit, at two sizes.
    assert_eq!(rows.len(), 6);
    let advised: Vec<&Value> = rows.iter().filter(|row| row["verdict"] == "advised").collect();
    assert_eq!(advised.len(), 1);
    assert_eq!(advised[0]["policy"], out["advised_policy"]);
    assert_eq!(advised[0]["cache_pages"], out["advised_pages"]);
    for row in rows {
        let count = |key: &str| row[key].as_f64().unwrap();
        let ns = |key: &str| out[key].as_f64().unwrap();
        let estimate =
            count("physical_reads") * ns("read_ns") + count("physical_writes") * ns("write_ns");
        assert!((estimate / 1e9 / count("estimated_seconds") - 1.0).abs() < 1e-3, "{row}");
        assert_eq!(row["policy"] == "opt", row["seconds"].is_null() && row["policy"] != "cflru");
        assert!(row["policy"] != "lru" || row["seconds"].is_number(), "LRU is always tried");
    }
    assert_eq!((&out["rule"], &rows[0]["monthly_price"]), (&"doubling:10%".into(), &Value::Null));
    let text = run(&[]);
    assert!(text.contains("no larger one saves 10 % of the time for each doubling"), "{text}");
    // Only memory has a price: ten times as much of it does not make the trace ten times as fast.
    let priced = run(&["--price-memory", "4", "--price-flash", "0", "--format", "json"]);
    let priced: Value = serde_json::from_str(&priced).unwrap();
    assert_eq!((&priced["advised_pages"], &priced["rule"]), (&100.into(), &"price:4:0".into()));
    // 1,024 pages are 1/256 GiB.
    let largest = priced["rows"].as_array().unwrap().last().unwrap();
    assert_eq!(largest["monthly_price"], 0.015625);
    assert!(text.contains(&format!("Take {} with", out["advised_policy"].as_str().unwrap())));
    assert!(std::fs::read_to_string(page).unwrap().contains("Take "));
}

#[test]
fn a_device_without_a_size_holds_the_trace() {
    let trace = sample(TRACE);
    let args = ["advise", &trace, "--flash", "cheetah-15k6", "--size", "10%"];
    let more = ["--policy", "lru", "--format", "json"];
    let out: Value = serde_json::from_str(&good(&[&args[..], &more[..]].concat())).unwrap();
    let device = out["rows"][0]["device"].as_str().unwrap();
    let pages = device.split("pages=").nth(1).unwrap().split(',').next().unwrap();
    let stat = good(&["trace", "stat", &trace, "--format", "json"]);
    let stat: Value = serde_json::from_str(&stat).unwrap();
    let needed = stat["rows"][0]["max_page"].as_u64().unwrap() + 1;
    assert_eq!(pages.parse::<u64>().unwrap(), needed.max(16 << 10));
}

#[test]
fn what_cannot_be_is_refused_before_the_trace_is_read() {
    let trace = sample(TRACE);
    let refusal = |args: &[&str]| refused(&[&["advise", "/nowhere"], args].concat());
    assert!(refusal(&["--flash", "ssd-z"]).contains("durassd"));
    assert!(refusal(&["--flash", "ssd-a", "--policy", "lur"]).contains("second_chance"));
    let told = refusal(&["--flash", "ssd-a,ssd-b"]);
    assert!(told.contains("--flash ssd-a,ssd-b: one device") && told.contains("such as ssd-a"));
    assert!(refusal(&["--flash", "ssd-a", "--slack=-1"]).contains("--slack"));
    assert!(refusal(&["--flash", "ssd-a", "--worth", "100"]).contains("--worth"));
    let free = ["--flash", "ssd-a", "--price-memory", "0", "--price-flash", "0"];
    assert!(refusal(&free).contains("not both 0"));
    // Only one rule at a time is accepted, and only both prices together.
    for more in [&["--price-memory", "1"][..], &["--slack", "5", "--worth", "5"]] {
        let run = tantalum(&[&["advise", "/nowhere", "--flash", "ssd-a"], more].concat());
        assert!(run.code == 2 && run.err.contains("--flash <DEVICE>"), "{}", run.err);
    }
    assert!(refusal(&["--flash", "ssd-a", "--clients", "0"]).contains("--clients"));
    assert!(refusal(&["--flash", "ssd-a"]).contains("/nowhere"));
    let empty = ["advise", &trace, "--flash", "ssd-a", "--size", "0"];
    assert!(refused(&empty).contains("--size"));
}
