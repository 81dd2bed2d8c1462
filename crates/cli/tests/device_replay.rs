//! `tantalum replay TRACE --device ...`.
mod support;

use support::{good, refused};

const TRACE: &str = "zipf:pages=2k,requests=4k,theta=0.9,writes=0.6,commit=8,seed=3";

#[test]
fn both_devices_replay_with_every_documented_field_and_the_same_bytes_twice() {
    let devices = ["--device", "durassd:capacity=64MiB", "--device", "ssd-a:capacity=64MiB"];
    let run = |format: &str| {
        let mut args = vec!["replay", TRACE];
        args.extend(devices);
        args.extend(["--format", format, "--device-seed", "5"]);
        good(&args)
    };
    let json = run("json");
    assert_eq!(json, run("json"), "a rerun gives the same bytes");
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
fn an_unknown_device_is_refused_with_the_names() {
    let message = refused(&["replay", TRACE, "--device", "floppy"]);
    assert!(message.contains("durassd") && message.contains("ssd-a"), "{message}");
    let both = support::tantalum(&["replay", TRACE, "--device", "durassd", "--policy", "lru"]);
    assert_eq!(both.code, 2, "policies and devices are two kinds of replay");
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
