//! `tantalum replay`: output, refusals, reruns.
mod support;
use support::{good, refused, sample, tantalum, text};

const TPCC: &str = "tpcc-pg-logical-6000.csv.zst";

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn rows_come_policies_outermost_with_the_documented_fields() {
    let trace = sample(TPCC);
    let args = ["--policy", "lru,clock:bits=2", "--size", "100,1k,10%", "--format", "json"];
    let out = json(&good(&[&["replay", &trace], &args[..]].concat()));
    assert_eq!(out["seed"], 0);
    assert_eq!(out["config"].as_str().unwrap().len(), 16);
    let rows = out["rows"].as_array().unwrap();
    let order: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| (row["policy"].as_str().unwrap(), row["cache_pages"].as_u64().unwrap()))
        .collect();
    let tenth = order[2].1;
    let expected = [100, 1024, tenth];
    assert_eq!(order[..3], expected.map(|pages| ("lru", pages)));
    assert_eq!(order[3..], expected.map(|pages| ("clock:bits=2", pages)));
    for row in rows {
        assert_eq!(row["trace"], "tpcc-pg-logical-6000");
        for key in ["requests", "misses", "physical_reads", "physical_writes"] {
            assert!(row[key].is_u64(), "{key}: {row}");
        }
        assert!(row["seconds"].is_null());
    }

    // The share is of the distinct pages that `trace stat` counts.
    let stat = json(&good(&["trace", "stat", &trace, "--format", "json"]));
    let distinct = stat["rows"][0]["distinct_pages"].as_u64().unwrap();
    assert_eq!(tenth, (distinct as f64 / 10.0).round() as u64);
    assert_eq!(stat["rows"][0]["requests"], rows[0]["requests"]);
}

#[test]
fn bytes_are_pages_of_the_page_size() {
    let trace = sample("sqlite-oltp-wal-2000.csv");
    let pages = |page_size: &str| {
        let args = ["replay", &trace, "--policy", "lru", "--size", "1MiB", "--format", "json"];
        let out = json(&good(&[&args[..], &["--page-size", page_size]].concat()));
        out["rows"][0]["cache_pages"].as_u64().unwrap()
    };
    assert_eq!(pages("4096"), 256);
    assert_eq!(pages("8192"), 128);
}

#[test]
fn reruns_are_byte_identical_on_any_number_of_threads() {
    let trace = "zipf:pages=2000,requests=30000,theta=0.9,writes=0.3,seed=9";
    let args = ["replay", trace, "--policy", "lru,fifo,clock,sieve,opt", "--size", "10%,20%,400"];
    for format in ["table", "csv", "json"] {
        let run =
            |threads| good(&[&args[..], &["--format", format, "--threads", threads]].concat());
        let first = run("1");
        let is_said = first.contains("seed 9, configuration ") || first.contains("\"seed\": 9");
        assert_eq!(is_said, format != "csv", "{first}");
        assert_eq!(run("1"), first);
        assert_eq!(run("3"), first);
    }
}

#[test]
fn the_configuration_hash_tells_settings_apart_and_folders_not() {
    let hash = |trace: &str, policy: &str, size: &str| {
        let args = ["replay", trace, "--policy", policy, "--size", size, "--format", "json"];
        json(&good(&args))["config"].as_str().unwrap().to_owned()
    };
    let trace = sample(TPCC);
    let one = hash(&trace, "lru", "100");
    assert_ne!(hash(&trace, "fifo", "100"), one);
    assert_ne!(hash(&trace, "lru", "101"), one);
    assert_ne!(hash("scan:pages=100,requests=200", "lru", "100"), one);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(TPCC);
    std::fs::copy(&trace, &copy).unwrap();
    assert_eq!(hash(copy.to_str().unwrap(), "lru", "100"), one);
}

#[test]
fn timing_measures_each_run() {
    let trace = "uniform:pages=100,requests=1000";
    let out = json(&good(&[
        "replay", trace, "--policy", "lru", "--size", "10", "--timing", "--format", "json",
    ]));
    assert!(out["rows"][0]["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn csv_has_rows_alone_and_the_facts_go_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("facts.json");
    let run = tantalum(&[
        "replay",
        "scan:pages=10,requests=20",
        "--policy",
        "lru",
        "--size",
        "100%",
        "--format",
        "csv",
        "--facts",
        text(&facts),
    ]);
    assert_eq!(run.code, 0, "{}", run.err);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines[0].starts_with("trace,policy,cache_pages,requests,misses,"), "{}", run.out);
    assert!(lines[1].starts_with("scan,lru,10,20,10,0.5,"), "{}", run.out);
    let sizes = lines[0].ends_with(",cache_size") && lines[1].ends_with(",100%");
    assert!(sizes && lines.len() == 2, "the size as it was asked for: {}", run.out);
    assert!(run.err.contains("tantalum: seed 1, configuration "), "{}", run.err);
    let facts = json(&std::fs::read_to_string(&facts).unwrap());
    assert_eq!((&facts["seed"], &facts["trace_requests"]), (&1.into(), &20.into()));
    assert_eq!(facts["config"].as_str().unwrap().len(), 16);
    assert!(facts.get("rows").is_none());
    let error = refused(&["curve", "scan", "--facts", "/none/facts.json"]);
    assert!(error.contains("--facts: /none/facts.json"), "{error}");
}

#[test]
fn names_may_have_hyphens_and_any_case() {
    let trace = "ZIPF:pages=200,requests=2000,seed=3";
    let rows = |policy: &str| {
        let args = ["replay", trace, "--policy", policy, "--size", "20", "--format", "json"];
        json(&good(&args))
    };
    let known = rows("s3_fifo:small=0.2,lru_k");
    assert_eq!(rows("S3-FIFO:small=0.2,LRU-K"), known);
    assert_eq!(known["rows"][0]["policy"], "s3_fifo:small=0.2");
}

#[test]
fn refusals_name_what_is_wrong_and_what_is_accepted() {
    let trace = sample(TPCC);
    let replay =
        |policy: &str, size: &str| refused(&["replay", &trace, "--policy", policy, "--size", size]);
    let error = replay("lur", "10");
    assert!(
        error.contains("\"lur\"") && error.contains("lru, fifo, clock, second_chance, sieve"),
        "{error}"
    );
    let error = replay("clock:bits=9", "10");
    assert!(error.contains("bits=9") && error.contains("1 to 7"), "{error}");
    let error = replay("lru", "ten");
    assert!(error.contains("--size") && error.contains("\"ten\"") && error.contains("64MiB"));
    let error = replay("lru", "0");
    assert!(error.contains("cache of 0 pages"), "{error}");
    let error = refused(&["replay", "/none/t.csv", "--policy", "lru", "--size", "1"]);
    assert!(error.contains("/none/t.csv") && error.contains("No such file"), "{error}");
    let error = refused(&["replay", &trace, "--policy", "lru", "--size", "1", "--format", "yaml"]);
    assert!(error.contains("table, csv, json"), "{error}");
    let error = refused(&["replay", "zipf:pages=0", "--policy", "lru", "--size", "1"]);
    assert!(error.contains("pages=0"), "{error}");
}

#[test]
fn an_unknown_option_or_command_is_used_wrong() {
    for args in [&["replay"][..], &["replay", "x", "--polcy", "lru"], &["fly"], &[]] {
        let run = tantalum(args);
        assert_eq!(run.code, 2, "{args:?}");
        assert_eq!(run.out, "", "{args:?}");
    }
    assert_eq!(tantalum(&["--help"]).code, 0);
    assert!(good(&["--version"]).starts_with("tantalum "));
}
