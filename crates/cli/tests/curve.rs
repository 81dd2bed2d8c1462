//! `tantalum curve`: the counts of replays at all sizes, samples, output and refusals.
mod support;
use support::{good, refused, sample, tantalum};
use tantalum_report::schema;

fn rows(args: &[&str]) -> Vec<serde_json::Value> {
    let out = good(&[args, &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    json["rows"].as_array().unwrap().clone()
}

#[test]
fn a_curve_has_the_counts_of_replays() {
    let trace = sample("tpcc-pg-logical-6000.csv.zst");
    let sizes = ["--size", "7,100,10%,1MiB"];
    let curve = rows(&[&["curve", &trace], &sizes[..]].concat());
    let replay = rows(&[&["replay", &trace, "--policy", "lru"], &sizes[..]].concat());
    assert_eq!(curve.len(), 4);
    for (point, row) in curve.iter().zip(&replay) {
        for key in [
            "trace",
            "policy",
            "cache_pages",
            "requests",
            "misses",
            "hit_ratio",
            "miss_ratio",
            "cache_size",
            "read_misses",
            "write_misses",
            "physical_reads",
            "physical_writes",
            "dirty_pages_at_end",
        ] {
            assert_eq!(point[key], row[key], "{key}");
        }
        assert!(point["miss_ratio_error"].is_null() && point["sample_rate"].is_null());
    }
    assert_eq!(curve[2]["cache_size"], "10%");
    let text = |args: &[&str]| {
        // A single row would be printed as one line per column.
        let out = good(&[args, &["--size", "10%,20%"]].concat());
        let lines: Vec<&str> = out.lines().collect();
        let at = lines[0].find("miss ratio").unwrap() + "miss ratio".len();
        lines[1][..at].split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(text(&["curve", &trace]), text(&["replay", &trace, "--policy", "lru"]));
}

#[test]
fn fields_that_curve_and_replay_share_come_in_one_order() {
    let names = |columns: &'static [tantalum_report::Column]| -> Vec<&'static str> {
        columns.iter().map(|column| column.key).collect()
    };
    let (curve, replay) = (names(schema::CURVE), names(schema::CACHE_REPLAY));
    let shared = |of: &[&'static str], other: &[&str]| -> Vec<&'static str> {
        of.iter().filter(|key| other.contains(key)).copied().collect()
    };
    assert_eq!(shared(&curve, &replay), shared(&replay, &curve));
    assert!(shared(&curve, &replay).len() >= 12);
}

#[test]
fn another_policy_gets_the_command_that_counts_it() {
    let trace = "scan:pages=50,requests=500";
    let error = refused(&["curve", trace, "--policy", "ARC,lru", "--size", "10%"]);
    let command = format!("`tantalum replay {trace} --policy arc,lru --size 10%`");
    assert!(error.contains(&command) && error.contains("LRU"), "{error}");
    assert_eq!(rows(&["curve", trace, "--policy", "lru"]), rows(&["curve", trace]));
    let error = refused(&["curve", trace, "--policy", "lur"]);
    assert!(error.contains("\"lur\" is not a policy"), "{error}");
}

#[test]
fn without_sizes_they_are_powers_of_two_up_to_all_pages() {
    let curve = rows(&["curve", "scan:pages=50,requests=500"]);
    let sizes: Vec<u64> = curve.iter().map(|row| row["cache_pages"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 50]);
    assert_eq!(curve[5]["misses"], 500);
    assert_eq!(curve[6]["misses"], 50);
}

#[test]
fn a_sample_says_its_rate_and_error_and_repeats() {
    let trace = "zipf:pages=20000,requests=100000,theta=0.8,seed=4";
    for sampling in [["--sample", "0.1"], ["--sample", "10%"], ["--sample-pages", "1k"]] {
        let args = [&["curve", trace, "--size", "1000"], &sampling[..]].concat();
        let point = &rows(&args)[0];
        let exact = &rows(&["curve", trace, "--size", "1000"])[0];
        let real = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
        let rate = real(point, "sample_rate");
        assert!((0.03..0.2).contains(&rate), "{rate}");
        assert!(point["sampled_requests"].as_u64().unwrap() < 50_000);
        let error = real(point, "miss_ratio_error");
        let off = (real(point, "miss_ratio") - real(exact, "miss_ratio")).abs();
        assert!(error > 0.0 && off < 2.0 * error, "{off}, expected {error}");
        assert_eq!(good(&args), good(&args));
        assert_ne!(good(&args), good(&[&args[..], &["--sample-seed", "2"]].concat()));
    }
}

#[test]
fn a_page_draws_the_curve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curve.html");
    let file = path.to_str().unwrap();
    good(&["curve", "scan:pages=50,requests=500", "--report", file]);
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("Miss ratio") && page.contains("Pages written back"));
}

#[test]
fn refusals_name_what_is_wrong() {
    let trace = "scan:pages=50,requests=500";
    for (option, value, said) in [
        ("--sample", "2", "over 0 and at most 1, such as 0.01 or 1%"),
        ("--sample", "0%", "over 0 and at most 1, such as 0.01 or 1%"),
        ("--sample", "-1", "over 0 and at most 1, such as 0.01 or 1%"),
        ("--sample", "half", "over 0 and at most 1, such as 0.01 or 1%"),
        ("--sample-pages", "1GiB", "such as 8192 or 8k"),
    ] {
        let run = tantalum(&["curve", trace, option, value]);
        assert!(run.code == 2 && run.err.contains(said), "{value}: {}", run.err);
    }
    let error = refused(&["curve", trace, "--sample-pages", "4"]);
    assert!(error.contains("at least 64"), "{error}");
    let error = refused(&["curve", trace, "--size", "0"]);
    assert!(error.contains("cache of 0 pages"), "{error}");
    let error = refused(&["curve", "/none.csv"]);
    assert!(error.contains("/none.csv"), "{error}");
}
