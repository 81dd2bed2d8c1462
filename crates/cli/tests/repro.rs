//! `tantalum repro NAME`.
mod support;

use support::{good, refused};

#[test]
fn rows_have_every_documented_field_and_the_same_bytes_twice() {
    let args = ["repro", "durassd", "--scale", "small", "--seed", "3", "--format", "json"];
    let json = good(&args);
    assert_eq!(json, good(&args), "a rerun gives the same bytes");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed["seed"], 3);
    let rows = parsed["rows"].as_array().unwrap();
    for column in tantalum_report::schema::REPRO {
        assert!(rows.iter().all(|row| row.get(column.key).is_some()), "{} is missing", column.key);
    }
    for row in rows {
        let (paper, measured) = (row["paper"].as_f64(), row["measured"].as_f64().unwrap());
        let ratio = paper.map(|paper| measured / paper);
        assert!((row["ratio"].as_f64().unwrap() / ratio.unwrap() - 1.0).abs() < 1e-4, "{row}");
    }
}

#[test]
fn unknown_names_are_refused_with_those_there_are() {
    let message = refused(&["repro", "durasd"]);
    assert!(message.contains("durassd") && message.contains("all"), "{message}");
    let message = refused(&["repro", "durassd", "--scale", "huge"]);
    assert!(message.contains("small, full, paper"), "{message}");
    let message = refused(&["repro", "durassd", "--live", "/nowhere/file"]);
    assert!(message.contains("part of casa"), "{message}");
}
