//! The HTML page of `tantalum stat`: use of the space, fill and wear of zones.
use tantalum_base::size::human_bytes;
use tantalum_report::html::{Drawn, Measure, Meter, Number, Point, draw};
use tantalum_report::{Page, Report, Section, Style, Table, Tone, Value, number};

/// The values of the only row.
struct Row<'a>(&'a Table);

impl Row<'_> {
    fn text(&self, key: &str) -> String {
        let row = self.0.rows().first();
        self.0.index(key).zip(row).map_or_else(String::new, |(at, row)| row[at].plain())
    }

    fn count(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or(0)
    }
}

/// The page around the row.
pub fn page(report: &Report) -> Page {
    let row = Row(&report.table);
    let lost = row.count("pages_lost");
    let mut verdict = verdict(&row);
    if lost > 0 {
        verdict += &format!("; {} pages cannot be read", number::thousands(lost));
    }
    let zones = report.lists.iter().filter_map(|(name, table)| match *name {
        "zone_fill" => fill(table),
        _ => wear(table),
    });
    let sections = vec![
        Section { drawn: zones.collect(), ..Section::new("Zones", Table::new(&[])) },
        Section::new("All of it", report.table.clone()),
    ];
    Page {
        title: format!("{}, a {} volume", row.text("volume"), row.text("kind")),
        verdict,
        tone: if lost > 0 { Tone::Bad } else { Tone::Plain },
        numbers: numbers(&row),
        meters: vec![contents(&row), space(&row)],
        sections,
        ..Page::default()
    }
}

fn verdict(row: &Row) -> String {
    let bytes = |key: &str| human_bytes(row.count(key));
    let zones = format!("{} of {} zones are free", row.count("zones_free"), row.count("zones"));
    match row.text("kind").as_str() {
        "tiered" => format!(
            "{} of {} are in the cache, {} of that newer than home; {zones}",
            bytes("mapped_bytes"),
            bytes("capacity_bytes"),
            bytes("dirty_bytes"),
        ),
        _ => format!("{} of {} hold data; {zones}", bytes("mapped_bytes"), bytes("capacity_bytes")),
    }
}

fn numbers(row: &Row) -> Vec<Number> {
    let count = |key: &str| number::thousands(row.count(key));
    let bytes = |key: &str| human_bytes(row.count(key));
    let mut numbers = vec![
        Number::new("Durability", row.text("durability"), ""),
        Number::new("Buffer in memory", bytes("buffer_bytes"), row.text("buffer_policy")),
        Number::new("Mapping in memory", bytes("mapping_bytes"), ""),
        Number::new("Largest transaction", count("transaction_pages_max"), "pages"),
        Number::new(
            "Changes replayed at opening",
            count("replayed_at_open"),
            "0 after a clean close",
        ),
    ];
    let lost = Number::new("Pages lost", count("pages_lost"), "they read as errors");
    numbers.extend((row.count("pages_lost") > 0).then_some(lost));
    numbers
}

/// The capacity that hosts see.
fn contents(row: &Row) -> Meter {
    let parts = match row.text("kind").as_str() {
        "tiered" => {
            vec![
                ("newer than home", row.count("dirty_bytes")),
                ("the same as at home", row.count("clean_bytes")),
            ]
        }
        _ => {
            let mapped = row.count("mapped_bytes");
            let empty = row.count("capacity_bytes").saturating_sub(mapped);
            vec![("data", mapped), ("empty", empty)]
        }
    };
    Meter::new("Capacity of the volume", in_bytes(parts))
}

/// The use of the store.
fn space(row: &Row) -> Meter {
    let (zone, zones) = (row.count("zone_bytes"), row.count("zones"));
    let (live, dead) = (row.count("live_bytes"), row.count("dead_bytes"));
    let free = row.count("zones_free") * zone;
    let reserve = (row.count("zones_reserve") * zone).min(free);
    let retired = row.count("zones_retired") * zone;
    let rest = (zones * zone).saturating_sub(live + dead + free + retired);
    let head = row.count("store_bytes").saturating_sub(zones * zone);
    let parts = vec![
        ("live", live),
        ("dead: replaced, headers, padding", dead),
        ("rest of zones being filled", rest),
        ("free", free - reserve),
        ("reserve of cleaning and checkpoints", reserve),
        ("worn out", retired),
        ("superblock and anchors", head),
    ];
    Meter::new("Use of the store's space", in_bytes(parts))
}

fn in_bytes(parts: Vec<(&'static str, u64)>) -> Vec<(&'static str, f64, String)> {
    parts.into_iter().map(|(name, bytes)| (name, bytes as f64, human_bytes(bytes))).collect()
}

/// Zones by their live part.
fn fill(table: &Table) -> Option<Drawn> {
    let points = bars(table, |row| format!("{} %", row[0].plain()));
    let x = Measure::new("of a zone live, up to", Style::Text);
    draw("Zones by how full they are", &x, &Measure::new("zones", Style::Count), points)
}

/// Zones by their number of resets.
fn wear(table: &Table) -> Option<Drawn> {
    let points = bars(table, |row| match &row[..2] {
        [from, to] if from == to => from.plain(),
        [from, to] => format!("{} to {}", from.plain(), to.plain()),
        _ => String::new(),
    });
    let x = Measure::new("resets", Style::Text);
    draw("Zones by how worn they are", &x, &Measure::new("zones", Style::Count), points)
}

/// One bar per row, named by `name`; its height is the last column.
fn bars(table: &Table, name: impl Fn(&[Value]) -> String) -> Vec<Point> {
    let point = |row: &Vec<Value>| Point {
        series: String::new(),
        x: name(row).into(),
        y: row.last().and_then(|zones| zones.plain().parse().ok()).unwrap_or(0.0),
        paper: None,
    };
    table.rows().iter().map(point).collect()
}
