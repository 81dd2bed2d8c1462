//! `--report` of every command that has it: properties that each page must have in a browser.
mod support;
use serde_json::Value;
use std::path::{Path, PathBuf};
use support::browser::{Look, browser, look};
use support::{good, sample, tantalum, text};

const ZIPF: &str = "zipf:pages=2k,requests=10k,writes=0.5,commit=8,theta=0.9";

/// A page of every command, and of every kind of replay.
fn pages(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let volume = folder.join("v.toml");
    good(&["create", text(&volume), "--capacity", "4MiB"]);
    let tpcc = &*sample("tpcc-pg-logical-6000.csv.zst");
    let policies = ["--policy", "lru,cflru,arc,opt", "--size", "1%,5%,20%"];
    let mtron = ["--device", "mtron"];
    let devices = [
        "--device",
        "durassd:capacity=64MiB",
        "--device",
        "ssd-a:capacity=64MiB",
        "--clients",
        "4",
    ];
    let tiers = ["--policy", "lru", "--size", "2%", "--tier", "bl,nfa", "--tier-size", "10%,20%"];
    let commands: Vec<(&str, Vec<&str>)> = vec![
        ("replay", [&["replay", tpcc], &policies[..]].concat()),
        ("replay one size", vec!["replay", tpcc, "--policy", "lru,arc", "--size", "10%"]),
        ("replay one run", vec!["replay", tpcc, "--policy", "lru", "--size", "10%"]),
        ("replay devices", [&["replay", ZIPF], &devices[..]].concat()),
        ("replay device", [&["replay", ZIPF], &devices[..2]].concat()),
        ("replay buffer", [&["replay", tpcc], &policies[..], &mtron[..]].concat()),
        ("replay tier", [&["replay", ZIPF], &tiers[..]].concat()),
        ("curve", vec!["curve", tpcc]),
        ("advise", vec!["advise", ZIPF, "--flash", "mtron", "--size", "5%,20%", "--tries", "1"]),
        ("trace stat", vec!["trace", "stat", tpcc]),
        ("repro layers", vec!["repro", "layers", "--scale", "small"]),
        ("repro devices", vec!["repro", "devices", "--scale", "small"]),
        (
            "crash",
            vec!["crash", "--device", "ssd:cache=durable", "--device", "txcache", "--cuts", "40"],
        ),
        ("stat", vec!["stat", text(&volume)]),
        ("check", vec!["check", text(&volume)]),
    ];
    let page = |(at, (name, args)): (usize, &(&'static str, Vec<&str>))| {
        let page = folder.join(format!("{at}.html"));
        good(&[&args[..], &["--report", text(&page)]].concat());
        (*name, page)
    };
    commands.iter().enumerate().map(page).collect()
}

/// Checks the properties that every page and each of its charts must have.
fn is_sound(name: &str, seen: &Value) {
    let list = |key: &str| seen[key].as_array().unwrap_or_else(|| panic!("{name}: no {key}"));
    assert_eq!(
        (&seen["errors"], &seen["loaded"], &seen["links"]),
        (&Value::Array(vec![]), &0.into(), &Value::Array(vec![])),
        "{name}"
    );
    assert_eq!(seen["first"], "verdict", "{name}: the verdict stands below the title");
    assert!(!seen["says"].as_str().unwrap().is_empty(), "{name}");
    assert_eq!(seen["scrolled"], seen["client"], "{name}: the page does not scroll aside");
    let words = seen["text"].as_str().unwrap();
    for wrong in ["NaN", "undefined", "Infinity", "null"] {
        assert!(!words.contains(wrong), "{name}: {wrong} in {words}");
    }
    for chart in list("charts") {
        let told = format!("{name}: {chart}");
        assert_eq!(chart["isDrawn"], true, "{told}");
        assert!(chart["right"].as_f64() <= seen["width"].as_f64(), "{told}");
        let series = chart["series"].as_array().unwrap();
        let values: Vec<f64> = series
            .iter()
            .flat_map(|series| series["values"].as_array().unwrap())
            .filter_map(Value::as_f64)
            .collect();
        assert!(values.iter().any(|value| *value != values[0]), "one value is no chart: {told}");
        let ours = series.iter().filter(|series| series["is_paper"] == false).count();
        let named = if ours > 1 { ours } else { 0 };
        assert_eq!(chart["legend"].as_array().unwrap().len(), named, "{told}");
        let is_positive = values.iter().all(|value| *value > 0.0);
        assert!(is_positive || chart["isLog"][1] == false, "{told}");
        assert!(chart["isLog"][1] == false || chart["low"].as_f64() > Some(0.0), "{told}");
        if !is_positive {
            assert!(chart["hint"].as_str().unwrap().contains("no logarithmic axis"), "{told}");
        }
        if chart["form"] == "bars" && chart["isLog"][1] == false {
            assert!(chart["low"].as_f64() <= Some(0.0), "a bar is as long as its value: {told}");
        }
        let has_names = !chart["labels"].as_array().unwrap().is_empty();
        for (at, axis) in [(0, &chart["x"]), (1, &chart["y"])] {
            let ticks = chart["ticks"][at].as_array().unwrap();
            assert!(ticks.len() >= 2, "{told}");
            // Names of things are shown unchanged.
            for tick in ticks.iter().filter(|_| at == 1 || !has_names) {
                is_round(tick.as_str().unwrap(), axis["style"] == "bytes", &told);
            }
        }
    }
}

/// A tick is 1, 2 or 5 times a power of ten, or a small multiple of such a step: at most three significant digits, with
/// separated thousands.
fn is_round(tick: &str, is_bytes: bool, told: &str) {
    let number = tick.split(' ').next().unwrap().trim_start_matches(['-', '\u{2212}']);
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    assert!(is_bytes || significant.len() <= 3, "{tick} is not round: {told}");
    let whole = number.split('.').next().unwrap();
    assert!(whole.len() <= 3 || whole.contains(','), "{tick} has no thousands: {told}");
}

#[test]
fn every_page_is_sound_on_a_desk_and_on_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let pages = pages(folder.path());
    let Some(browser) = browser() else { return };
    let wide = pages.iter().map(|(_, page)| Look::at(page));
    let narrow = pages.iter().map(|(_, page)| Look { width: 390, ..Look::at(page) });
    let looks: Vec<Look> = wide.chain(narrow).collect();
    let seen = look(&browser, &looks, &[]);
    let (wide, narrow) = seen.split_at(pages.len());
    for (((name, _), seen), narrow) in pages.iter().zip(wide).zip(narrow) {
        is_sound(name, seen);
        is_sound(&format!("{name} on a phone"), narrow);
        for table in seen["tables"].as_array().unwrap() {
            assert!(table["right"].as_f64() <= Some(1280.0), "{name}: {table}");
            assert_eq!(table["scrolls"], false, "{name}: {table}");
        }
    }
    let of = |wanted: &str| &wide[pages.iter().position(|(name, _)| *name == wanted).unwrap()];
    let charts = |wanted: &str| of(wanted)["charts"].as_array().unwrap();
    assert_eq!(charts("replay one run").len(), 0, "a run is numbers");
    assert!(of("replay one run")["numbers"].as_array().unwrap().len() >= 3);
    assert!(charts("replay one size").iter().all(|chart| chart["form"] == "bars"));
    assert!(
        charts("replay buffer").iter().all(|chart| chart["series"].as_array().unwrap().len() == 4)
    );
    assert!(
        charts("replay tier").iter().all(|chart| chart["series"].as_array().unwrap().len() == 2)
    );
    // No cut of these loses a page permanently, and nothing was violated: zeros are reported as numbers, not drawn.
    let numbers = of("crash")["numbers"].to_string();
    assert!(numbers.contains("Violations") && numbers.contains("in all "), "{numbers}");
    assert!(!charts("crash").is_empty() && !charts("stat").is_empty());
    assert_eq!(of("stat")["meters"].as_array().unwrap().len(), 2);
    assert!(of("check")["says"].as_str().unwrap().contains(": sound: "));
    let layers = charts("repro layers");
    assert_eq!(layers.len(), 3, "a chart for each thing counted");
    assert!(layers.iter().all(|chart| chart["series"].as_array().unwrap().len() == 6));
    let random =
        charts("repro devices").iter().find(|chart| chart["title"] == "Random write").unwrap();
    let names: Vec<&Value> =
        random["series"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["IOPS", "IOPS, paper"]);
}

#[test]
fn the_page_of_a_damaged_volume_says_what_is_wrong_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().join("v.toml");
    good(&["create", text(&volume), "--capacity", "4MiB"]);
    let store = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let store = store.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    // Damage the second copy of the superblock.
    let file = std::fs::OpenOptions::new().write(true).open(store).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xaa; 4096], 4096).unwrap();
    let page = folder.path().join("page.html");
    let run = tantalum(&["check", text(&volume), "--report", text(&page)]);
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains(r#"<p id="verdict" class="bad">"#) && html.contains("Problems"));
    assert!(html.contains("superblock, ") && html.contains(": damaged: "), "{html}");
}

#[test]
fn the_page_of_power_cuts_begins_with_what_held_and_repeats_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let page = folder.path().join(name);
        let crash = ["crash", "--device", "ssd:cache=durable", "--media", "nand", "--cuts", "20"];
        good(&[&crash[..], &["--report", text(&page)]].concat());
        std::fs::read_to_string(page).unwrap().replace(name, "")
    };
    let page = run("a.html");
    assert_eq!(page, run("b.html"), "the same run twice is the same bytes");
    assert!(page.contains(r#"class="good">Every promise held in "#));
}
