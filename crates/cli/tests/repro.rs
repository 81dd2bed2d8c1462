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
        let Some(paper) = paper else {
            // What is a picture in the paper has nothing to be compared with.
            assert!(row["ratio"].is_null(), "{row}");
            continue;
        };
        let ratio = row["ratio"].as_f64().unwrap();
        assert!((ratio / (measured / paper) - 1.0).abs() < 1e-4, "{row}");
    }
    assert!(rows.iter().filter(|row| row["paper"].is_f64()).count() > 50, "{}", rows.len());
}

/// The last line counts what the rows and the shapes say, in every format.
#[test]
fn it_ends_with_how_much_of_the_paper_is_met() {
    let args = ["repro", "durassd", "--scale", "small"];
    let json = good(&[&args[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let counted = |is_one: fn(&serde_json::Value) -> bool| {
        rows.iter().filter(|row| row["paper"].is_f64() && is_one(row)).count()
    };
    let figures = counted(|row| row["calibrated"] == false);
    let within = counted(|row| {
        row["calibrated"] == false && (0.5..=2.0).contains(&row["ratio"].as_f64().unwrap())
    });
    let calibrated = counted(|row| row["calibrated"] == true);
    assert_eq!((&json["figures"], &json["figures_within"]), (&figures.into(), &within.into()));
    assert_eq!(json["figures_calibrated"], calibrated);
    let shapes = json["shapes"].as_array().unwrap();
    for column in tantalum_report::schema::REPRO_SHAPES {
        assert!(shapes.iter().all(|shape| shape.get(column.key).is_some()), "{}", column.key);
    }
    let hold = shapes.iter().filter(|shape| shape["holds"] == true).count();
    assert!(figures > 50 && calibrated > 5 && hold > 5, "{figures}, {calibrated}, {hold}");
    let table = good(&args);
    let last = format!(
        "{figures} figures, {within} within half to double, {hold} of {} shapes hold",
        shapes.len()
    );
    assert_eq!(table.lines().last().unwrap(), last);
    assert!(table.contains("\nholds    Table 1: "), "{table}");
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
