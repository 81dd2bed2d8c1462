//! The examples in docs/output.md have exactly the printed fields, in the same order.
use tantalum_report::{Column, OutputFormat, Report, Table, Value, schema};

const DOCS: &str = include_str!("../../../docs/output.md");

/// The example behind the fence "```json NAME".
fn example(name: &str) -> &'static str {
    let fence = format!("```json {name}\n");
    let start = DOCS.find(&fence).unwrap_or_else(|| panic!("no example {name}")) + fence.len();
    let length = DOCS[start..].find("```").expect("the fence ends");
    &DOCS[start..start + length]
}

/// Prints the example's own values through `columns`: the result must equal the example.
fn prints_as_documented(name: &str, columns: &[Column]) {
    let text = example(name);
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let table = table_of(name, columns, &json["rows"]);
    let config = json["config"].as_str().unwrap().to_owned();
    assert_eq!(config.len(), 16);
    let mut report = Report::new(json["seed"].as_u64().unwrap(), config, table);
    if name == "crash" {
        report.fields.push(("cuts", cell(&json["cuts"])));
        let violations = table_of(name, schema::CRASH_VIOLATIONS, &json["violations"]);
        report.lists.push(("violations", violations));
    }
    if name == "repro" {
        for key in
            ["figures", "figures_within", "figures_calibrated", "shapes_checked", "shapes_hold"]
        {
            report.fields.push((key, cell(&json[key])));
            assert!(DOCS.contains(&format!("`{key}`")), "{key} is not explained");
        }
        let shapes = table_of(name, schema::REPRO_SHAPES, &json["shapes"]);
        report.lists.push(("shapes", shapes));
    }
    if name == "volume_stat" {
        let fill = table_of(name, schema::ZONE_FILL, &json["zone_fill"]);
        let wear = table_of(name, schema::ZONE_WEAR, &json["zone_wear"]);
        report.lists.extend([("zone_fill", fill), ("zone_wear", wear)]);
    }
    if name == "advise" {
        for key in
            ["advised_policy", "advised_pages", "rule", "read_ns", "write_ns", "clustered_write_ns"]
        {
            report.fields.push((key, cell(&json[key])));
            assert!(DOCS.contains(&format!("`{key}`")), "{key} is not explained");
        }
    }
    assert_eq!(report.render(OutputFormat::Json).unwrap(), text, "{name}");
}

fn table_of(name: &str, columns: &[Column], rows: &serde_json::Value) -> Table {
    let mut table = Table::new(columns);
    for row in rows.as_array().unwrap() {
        let fields = row.as_object().unwrap();
        let cells: Vec<Value> = columns
            .iter()
            .map(|column| {
                let value = fields.get(column.key);
                let value = value.unwrap_or_else(|| panic!("{name}: no {}", column.key));
                cell(value)
            })
            .collect();
        table.push(cells);
    }
    table
}

fn cell(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Bool(flag) => (*flag).into(),
        serde_json::Value::Array(values) => Value::List(values.iter().map(cell).collect()),
        number if number.is_u64() => number.as_u64().into(),
        number => number.as_f64().into(),
    }
}

#[test]
fn the_examples_are_what_is_printed() {
    prints_as_documented("replay", schema::CACHE_REPLAY);
    prints_as_documented("curve", schema::CURVE);
    prints_as_documented("device_replay", schema::DEVICE_REPLAY);
    prints_as_documented("buffer_replay", schema::BUFFER_REPLAY);
    prints_as_documented("tier_replay", schema::TIER_REPLAY);
    prints_as_documented("advise", schema::ADVISE);
    prints_as_documented("repro", schema::REPRO);
    prints_as_documented("crash", schema::CRASH);
    prints_as_documented("page_stat", schema::PAGE_STAT);
    prints_as_documented("block_stat", schema::BLOCK_STAT);
    prints_as_documented("volume_stat", schema::VOLUME_STAT);
    prints_as_documented("home_claim", schema::HOME_CLAIM);
}

/// Rows that are printed one at a time: one object per line, without a frame.
#[test]
fn the_example_of_lines_is_what_is_printed() {
    let text = example("top");
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let rows = serde_json::Value::Array(vec![json]);
    assert_eq!(table_of("top", schema::TOP, &rows).to_json_lines().unwrap(), text);
}

#[test]
fn every_documented_field_has_its_explanation() {
    let replays = schema::CACHE_REPLAY.iter().chain(schema::DEVICE_REPLAY);
    let replays = replays.chain(schema::BUFFER_REPLAY).chain(schema::TIER_REPLAY);
    let replays = replays.chain(schema::ADVISE);
    let columns = replays.chain(schema::REPRO).chain(schema::PAGE_STAT).chain(schema::VOLUME_STAT);
    let columns = columns.chain(schema::ZONE_FILL).chain(schema::ZONE_WEAR);
    let columns = columns.chain(schema::CRASH).chain(schema::CRASH_VIOLATIONS).chain(schema::TOP);
    let columns = columns.chain(schema::REPRO_SHAPES).chain(schema::HOME_CLAIM);
    for column in columns.filter(|column| column.key != "reuse_distance_p90") {
        assert!(DOCS.contains(&format!("`{}`", column.key)), "{} is not explained", column.key);
    }
}

#[test]
fn a_table_names_seed_and_configuration_and_csv_has_rows_alone() {
    let mut table = Table::new(schema::BLOCK_STAT);
    let row: Vec<Value> =
        vec!["t".into(), "wal".into(), "W".into(), 3u64.into(), (1u64 << 20).into()];
    table.push(row);
    let mut report = Report::new(5, "00000000000000aa".into(), table);
    report.fields.push(("cuts", 2u64.into()));
    let text = report.render(OutputFormat::Table).unwrap();
    assert!(text.contains("1.0 MiB"));
    assert!(text.ends_with("seed 5, configuration 00000000000000aa, cuts 2\n"), "{text}");
    let csv = report.render(OutputFormat::Csv).unwrap();
    assert!(csv.starts_with("trace,file_kind,op,calls,bytes\nt,wal,W,3,"), "{csv}");
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert_eq!(report.facts(), "seed 5, configuration 00000000000000aa, cuts 2");
    let facts = "{\n  \"seed\": 5,\n  \"config\": \"00000000000000aa\",\n  \"cuts\": 2\n}\n";
    assert_eq!(report.facts_json().unwrap(), facts);
    let json = report.render(OutputFormat::Json).unwrap();
    assert!(json.find("\"cuts\"") < json.find("\"rows\""));
    // Each row of an interrupted run carries a mark: a reader of the rows alone would take them for all.
    report.fields.extend([("interrupted", true.into()), ("completed", 1u64.into())]);
    let csv = report.render(OutputFormat::Csv).unwrap();
    assert!(csv.starts_with("trace,file_kind,op,calls,bytes,interrupted,completed\n"), "{csv}");
    assert!(csv.ends_with(",true,1\n"), "{csv}");
    assert!(OutputFormat::parse("yaml").unwrap_err().to_string().contains("table, csv, json"));
}
