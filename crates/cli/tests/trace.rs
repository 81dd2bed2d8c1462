//! `tantalum trace convert|stat|generate`.
mod support;
use std::path::Path;
use support::{good, refused, sample, tantalum};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_generated_trace_is_the_generator_written_down() {
    let folder = folder();
    let spec = "zipf:pages=500,requests=5000,writes=0.4,commit=4,seed=3";
    let (one, two) = (folder.path().join("t.csv"), folder.path().join("t2.csv"));
    let run = tantalum(&["trace", "generate", spec, text(&one)]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("events, seed 3, configuration "), "{}", run.err);
    good(&["trace", "generate", spec, text(&two)]);
    let bytes = std::fs::read(&one).unwrap();
    assert_eq!(bytes, std::fs::read(&two).unwrap());
    assert_eq!(good(&["trace", "generate", spec, "-"]).as_bytes(), bytes);

    let stat = |trace: &str| {
        let out = good(&["trace", "stat", trace, "--format", "json"]);
        let mut row = serde_json::from_str::<serde_json::Value>(&out).unwrap()["rows"][0].take();
        row["trace"] = "".into();
        row
    };
    assert_eq!(stat(text(&one)), stat(spec));
    assert_eq!(stat(spec)["requests"], 5000);
}

#[test]
fn conversion_round_trips_through_each_compression() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let from = sample("tpcb-pg-logical-2000.csv.gz");
    good(&["trace", "convert", &from, text(&at("a.csv"))]);
    good(&["trace", "convert", text(&at("a.csv")), text(&at("b.csv.zst"))]);
    good(&["trace", "convert", text(&at("b.csv.zst")), text(&at("c.csv.gz"))]);
    let out = good(&["trace", "convert", text(&at("c.csv.gz")), "-"]);
    let plain = std::fs::read_to_string(at("a.csv")).unwrap();
    assert_eq!(out, plain);
    assert!(plain.starts_with("op,page\n"));
}

#[test]
fn bytes_become_pages_and_stay_bytes_where_asked() {
    let from = sample("sqlite-oltp-wal-2000.csv");
    let out = good(&["trace", "convert", &from, "-", "--to", "block_csv"]);
    assert_eq!(out, std::fs::read_to_string(&from).unwrap());
    assert!(good(&["trace", "convert", &from, "-"]).starts_with("op,page\n"));

    let pages = sample("tpcb-pg-logical-2000.csv.gz");
    let folder = folder();
    let out = folder.path().join("t.csv");
    let error = refused(&["trace", "convert", &pages, text(&out), "--to", "block_csv"]);
    assert!(error.contains("has pages"), "{error}");
    assert!(!out.exists(), "nothing unfinished is left");
    let error = refused(&["trace", "convert", &pages, text(&out), "--to", "xls"]);
    assert!(error.contains("\"xls\"") && error.contains("page_csv, block_csv"), "{error}");
    assert!(!error.contains("msr"), "a format that is only read: {error}");
    let error = refused(&["trace", "generate", "scan:pages=3", text(&out), "--to", "xls"]);
    assert!(error.contains("page_csv, block_csv") && !error.contains("msr"), "{error}");
    let error = refused(&["trace", "convert", &pages, text(&out), "--to", "msr"]);
    assert!(
        error.contains("msr can only be read; formats for writing: page_csv, block_csv"),
        "{error}"
    );
    // An existing file stays if the run never began.
    std::fs::write(&out, "mine").unwrap();
    refused(&["trace", "convert", &pages, text(&out), "--to", "block_csv"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");
}

#[test]
fn a_bad_line_gives_file_line_and_reason_and_leaves_no_output() {
    let folder = folder();
    let (bad, out) = (folder.path().join("bad.csv"), folder.path().join("out.csv"));
    std::fs::write(&bad, "op,page\nR,1\nX,2\n").unwrap();
    let at = format!("{}:3: ", text(&bad));
    for args in [
        &["trace", "stat", text(&bad)][..],
        &["trace", "convert", text(&bad), text(&out)],
        &["replay", text(&bad), "--policy", "lru", "--size", "1"],
    ] {
        let error = refused(args);
        assert!(error.contains(&at) && error.contains("X,2"), "{error}");
    }
    assert!(!out.exists(), "nothing unfinished is left");
}

#[test]
fn a_trace_is_not_written_over_itself() {
    let folder = folder();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "op,page\nR,1\n").unwrap();
    let error = refused(&["trace", "convert", text(&path), text(&path)]);
    assert!(error.contains("overwritten while it is read"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "op,page\nR,1\n");
}

#[test]
fn stat_counts_blocks_by_kind_of_file() {
    let from = sample("sqlite-oltp-wal-2000.csv");
    let lines = std::fs::read_to_string(&from).unwrap();
    let out = good(&["trace", "stat", &from, "--blocks", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, lines.lines().count() as u64 - 1);
    let wal = rows.iter().find(|row| row["file_kind"] == "wal" && row["op"] == "W").unwrap();
    let by_hand = lines.lines().filter(|line| line.starts_with("W,wal,")).count();
    assert_eq!(wal["calls"], by_hand as u64);

    let pages = sample("tpcb-pg-logical-2000.csv.gz");
    assert!(refused(&["trace", "stat", &pages, "--blocks"]).contains("--blocks"));
    assert!(refused(&["trace", "stat", "/none.csv"]).contains("/none.csv"));
}
