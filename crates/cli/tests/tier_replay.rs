//! `tantalum replay --tier`: flash caches between a buffer and a slow home.
mod support;
use support::{good, refused, sample, tantalum};

const TPCC: &str = "tpcc-pg-logical-6000.csv.zst";

#[test]
fn rows_are_every_tier_and_size_with_what_they_take() {
    let trace = sample(TPCC);
    let run = |threads| {
        let args = [
            "--policy",
            "lru",
            "--size",
            "100",
            "--tier",
            "none,loc,nfa:block=16,lazy:block=16,keep=0.8",
        ];
        let more = ["--tier-size", "400,20%", "--format", "json", "--threads", threads];
        good(&[&["replay", &trace], &args[..], &more[..]].concat())
    };
    let text = run("1");
    assert_eq!(text, run("2"), "whatever the number of threads");
    let out: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = out["rows"].as_array().unwrap();
    let tiers: Vec<&str> = rows.iter().map(|row| row["tier"].as_str().unwrap()).collect();
    let expected = ["none", "loc", "nfa:block=16", "lazy:block=16,keep=0.8"];
    assert_eq!(tiers, expected.map(|tier| [tier; 2]).concat());
    for row in rows {
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
        assert_eq!(number("tier_reads"), number("misses"), "{row}");
        let seconds = number("disk_reads") + number("disk_writes");
        let seconds = seconds as f64 * 0.0055;
        assert!((row["disk_seconds"].as_f64().unwrap() - seconds).abs() < 1e-6, "{row}");
    }
    let seconds = |at: usize| rows[at]["seconds"].as_f64().unwrap();
    assert!(seconds(2) < seconds(0), "a cache saves time: {text}");
}

#[test]
fn what_contradicts_itself_is_refused_in_one_line() {
    let trace = sample(TPCC);
    let base = ["replay", &trace, "--policy", "lru", "--size", "100"];
    for (more, why) in [
        (&["--tier", "bcache", "--tier-size", "10%"][..], "accepted: write_cache, loc"),
        (&["--tier", "loc", "--tier-size", "10%", "--tier-costs", "1,2"], "four numbers"),
        (
            &["--tier", "write_cache:place=sequential,order=lru", "--tier-size", "10%"],
            "cannot be combined",
        ),
    ] {
        let told = refused(&[&base[..], more].concat());
        assert!(told.contains(why), "{more:?}: {told}");
    }
    // Refusals of the parser include the usage.
    for (more, why) in [
        (&["--tier", "nfa"][..], "--tier-size"),
        (&["--tier", "loc", "--tier-size", "10%", "--device", "ssd-a"], "cannot be used with"),
    ] {
        let run = tantalum(&[&base[..], more].concat());
        assert!(run.code == 2 && run.err.contains(why), "{more:?}: {}", run.err);
    }
}
