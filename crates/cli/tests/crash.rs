//! `tantalum crash`.
mod support;

use support::{good, refused, tantalum};

const REPLAY: &str = "ssd:cache=through; file; pages=24; seed=7; w3 w5+4 f / c1.9 r3 -> tear@12;  -> \
                      vanish@1; t5+2 a3 -> close";

#[test]
fn cuts_are_made_and_counted_and_repeat_byte_for_byte() {
    let run = |format: &str, more: &[&str]| {
        let mut args = vec!["crash", "--device", "ssd:cache=durable", "--device", "txcache"];
        args.extend(["--media", "nand", "--cuts", "60", "--seed", "5", "--format", format]);
        args.extend(more);
        good(&args)
    };
    let json = run("json", &["--threads", "1"]);
    assert_eq!(json, run("json", &["--threads", "3"]), "a rerun gives the same bytes");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&parsed["seed"], &parsed["violations"]), (&5.into(), &serde_json::json!([])));
    let rows = parsed["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for column in tantalum_report::schema::CRASH {
        assert!(rows[0].get(column.key).is_some(), "{} is missing", column.key);
    }
    let cuts: u64 = rows.iter().map(|row| row["cuts"].as_u64().unwrap()).sum();
    assert!(cuts >= 120 && parsed["cuts"] == cuts, "{json}");
    assert!(rows[1]["device"] == "txcache" && rows[0]["cuts_per_minute"].is_null());
    let table = run("table", &[]);
    assert!(table.contains("in recovery") && table.contains("seed 5, configuration"), "{table}");
    let in_recovery: u64 = rows.iter().map(|row| row["cuts_in_recovery"].as_u64().unwrap()).sum();
    let sentence = format!(
        "\nevery promise held in {cuts} cuts and {in_recovery} in recoveries, of 2 devices on nand\n"
    );
    assert!(table.ends_with(&sentence), "{table}");
}

#[test]
fn a_replay_is_what_the_text_says() {
    let json = good(&["crash", "--replay", REPLAY, "--format", "json"]);
    assert_eq!(json, good(&["crash", "--replay", REPLAY, "--format", "json"]));
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = &parsed["rows"][0];
    assert_eq!((row["lives"].as_u64(), row["commands"].as_u64()), (Some(1), Some(7)));
    assert_eq!((&parsed["seed"], row["media"].as_str()), (&7.into(), Some("file")));
    assert!(row["cuts"].as_u64() >= Some(1), "{json}");
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let message = refused(&["crash", "--device", "floppy"]);
    assert!(message.contains("ssd:cache=durable") && message.contains("txcache"), "{message}");
    let message = refused(&["crash", "--media", "tape"]);
    assert!(message.contains("nand-bytes"), "{message}");
    let message = refused(&["crash", "--workload", "mixed:clients=9"]);
    assert!(message.contains("1 to 4"), "{message}");
    let message = refused(&["crash", "--replay", "ssd; nand; pages=3; seed=1; w9 -> dark"]);
    assert!(message.contains("w9") && message.contains("0 to 2"), "{message}");
    let alone = "ssd:cache=through; nand; pages=24; seed=1; w0+24 -> dark";
    let message = refused(&["crash", "--replay", alone]);
    assert!(message.contains("w0+24") && message.contains("limit"), "{message}");
    let both = tantalum(&["crash", "--replay", alone, "--seed", "3"]);
    assert!(both.code == 2 && both.err.contains("--seed"), "{}", both.err);
    let message = refused(&["crash", "--device", "bast:logs=8"]);
    assert!(message.contains("do not fit"), "{message}");
}

#[test]
fn numbers_have_suffixes_and_layers_have_defaults_of_the_lab() {
    let args = ["crash", "--device", "bast", "--media", "nand", "--cuts", "1k", "--format", "csv"];
    let csv = good(&args);
    assert!(csv.contains("bast:logs=2"), "{csv}");
    let bytes = tantalum(&["crash", "--cuts", "5MiB"]);
    assert!(bytes.code == 2 && bytes.err.contains("100k"), "{}", bytes.err);
}
