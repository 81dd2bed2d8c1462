//! `--report`: the page of a replay contains its rows, and responds to the reader's actions.
mod support;
use serde_json::Value;
use std::path::{Path, PathBuf};
use support::browser::{Look, browser, look};
use support::{good, refused, sample, tantalum};

/// Runs a replay with a page; returns its rows, and the path of the page.
fn replay(folder: &Path) -> (Value, PathBuf) {
    let page = folder.join("page.html");
    let trace = sample("tpcc-pg-logical-6000.csv.zst");
    let args = ["replay", &trace, "--policy", "lru,clock:bits=2,opt", "--size", "100,200,400,10%"];
    let report = ["--report", page.to_str().unwrap(), "--format", "json"];
    let out = good(&[&args[..], &report[..]].concat());
    (serde_json::from_str(&out).unwrap(), page)
}

/// The values of one policy by size, from the rows.
fn expected(rows: &Value, policy: &str, y: &str) -> Vec<(f64, f64)> {
    let rows = rows["rows"].as_array().unwrap().iter().filter(|row| row["policy"] == policy);
    let mut points: Vec<(f64, f64)> =
        rows.map(|row| (row["cache_pages"].as_f64().unwrap(), row[y].as_f64().unwrap())).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Sorts, hides a series, points at another, zooms, and changes an axis.
const ACT: &str = r##"
function act() {
  const table = document.querySelector(".scroll table");
  const cells = key => {
    const at = [...table.rows[0].cells].findIndex(head => head.dataset.key === key);
    return [...table.tBodies[0].rows].map(row => row.cells[at].dataset.value);
  };
  const sortedByAddress = cells("hit_ratio");
  const head = table.querySelector("th[data-key=misses] button");
  head.click();
  const ascending = cells("misses");
  head.click();
  const descending = cells("misses");
  const drawing = drawings[0], { plot, figure } = drawing;
  const names = [...figure.querySelectorAll(".u-legend .u-series")];
  const shown = () => drawing.plot.series.slice(1).map(series => series.show);
  names[0].firstElementChild.click();
  const hidden = shown();
  names[0].firstElementChild.click();
  plot.setCursor({ left: plot.valToPos(drawing.chart.places[1], "x"), top: plot.valToPos(drawing.chart.series[2].values[1], "y") });
  const tip = figure.querySelector(".tip");
  const pointed = { hidden: tip.hidden, text: tip.textContent, alpha: plot.series.slice(1).map(series => series.alpha) };
  const whole = [plot.scales.x.min, plot.scales.x.max];
  plot.setSelect({ left: 50, top: 20, width: 100, height: 80 });
  const zoomed = [plot.scales.x.min, plot.scales.x.max];
  const all = figure.querySelector(".ways button");
  const wasOffered = !all.hidden;
  all.click();
  const again = [plot.scales.x.min, plot.scales.x.max];
  figure.querySelectorAll(".ways button")[1].click();
  const isLog = drawing.plot.scales.x.distr === 3;
  return { sortedByAddress, ascending, descending, hidden, pointed, whole, zoomed, wasOffered, again, isLog,
    hiddenAfter: shown(), address: location.hash };
}"##;

#[test]
fn charts_hold_the_rows_and_answer_the_reader() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (rows, page) = replay(folder.path());
    let sorted = Look { script: ACT, address: "#sort=-hit_ratio", ..Look::at(&page) };
    let seen = &look(&browser, &[sorted], &[])[0];
    let charts = seen["charts"].as_array().unwrap();
    let titles: Vec<&str> = charts.iter().map(|chart| chart["title"].as_str().unwrap()).collect();
    // No times were measured, so there is no chart of times.
    assert_eq!(titles, ["Miss ratio", "Pages fetched", "Pages written back"]);
    for (chart, y) in charts.iter().zip(["miss_ratio", "physical_reads", "physical_writes"]) {
        let places: Vec<f64> = serde_json::from_value(chart["places"].clone()).unwrap();
        let series = chart["series"].as_array().unwrap();
        assert_eq!(series.len(), 3, "a series a policy");
        let mut colours = Vec::new();
        for (series, policy) in series.iter().zip(["lru", "clock:bits=2", "opt"]) {
            assert_eq!(series["name"], policy);
            colours.push(series["stroke"].clone());
            let values: Vec<f64> = serde_json::from_value(series["values"].clone()).unwrap();
            let held: Vec<(f64, f64)> = places.iter().copied().zip(values).collect();
            assert_eq!(held, expected(&rows, policy, y), "{policy} {y}");
        }
        colours.dedup();
        assert_eq!(colours.len(), 3, "each policy has a colour of its own: {colours:?}");
        assert_eq!(chart["legend"], serde_json::json!(["lru", "clock:bits=2", "opt"]));
        assert_eq!((&chart["form"], &chart["isDrawn"]), (&"lines".into(), &true.into()));
    }
    assert!(
        seen["says"].as_str().unwrap().starts_with("lru misses least at 3 of 4 sizes"),
        "{seen}"
    );

    let done = &seen["done"];
    let numbers = |key: &str| -> Vec<f64> {
        let cells = done[key].as_array().unwrap().iter();
        cells.map(|cell| cell.as_str().unwrap().parse().unwrap()).collect()
    };
    let by_address = numbers("sortedByAddress");
    assert!(by_address.iter().rev().is_sorted() && by_address[0] > by_address[11]);
    let (up, mut down) = (numbers("ascending"), numbers("descending"));
    assert!(up.len() == 12 && up.is_sorted() && up.first() < up.last(), "{up:?}");
    down.reverse();
    assert_eq!((up, &done["address"]), (down, &"#sort=-misses".into()));
    assert_eq!(done["hidden"], serde_json::json!([false, true, true]), "the legend hides a series");
    assert_eq!(done["hiddenAfter"], serde_json::json!([true, true, true]));
    let pointed = &done["pointed"];
    assert_eq!(pointed["hidden"], false, "{done}");
    assert!(pointed["text"].as_str().unwrap().starts_with("opt"), "hover names the series: {done}");
    assert_eq!(pointed["alpha"], serde_json::json!([0.2, 0.2, 1]), "and dims the others");
    let ends = |key: &str| -> (f64, f64) { serde_json::from_value(done[key].clone()).unwrap() };
    let (whole, zoomed) = (ends("whole"), ends("zoomed"));
    assert!(whole.0 < zoomed.0 && zoomed.1 < whole.1, "{done}");
    assert_eq!((&done["wasOffered"], ends("again")), (&true.into(), whole));
    assert_eq!(done["isLog"], true, "sizes that span less than a factor of eight begin even");
}

#[test]
fn dark_is_dark_in_the_page_and_in_its_charts() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, page) = replay(folder.path());
    let light = look(&browser, &[Look::at(&page)], &[]);
    let dark = look(&browser, &[Look::at(&page)], &["--force-dark-mode"]);
    assert_eq!(
        (&light[0]["paper"], &dark[0]["paper"]),
        (&"rgb(255, 255, 255)".into(), &"rgb(20, 24, 29)".into())
    );
    let line = |seen: &Value| seen["charts"][0]["series"][0]["stroke"].clone();
    assert_ne!(line(&light[0]), line(&dark[0]));
}

#[test]
fn a_page_has_the_run_in_it_and_the_same_bytes_again() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, page) = replay(folder.path());
    let html = std::fs::read_to_string(&page).unwrap();
    let start = html.find(r#"id="report">"#).unwrap() + r#"id="report">"#.len();
    let json = &html[start..start + html[start..].find("</script>").unwrap()];
    assert_eq!(serde_json::from_str::<Value>(json).unwrap(), rows);
    assert!(html.contains(rows["config"].as_str().unwrap()));
    assert!(html.contains("<code>tantalum replay") && html.contains("<noscript>"));
    assert!(html.len() < 200_000, "{} bytes", html.len());
    let (_, again) = replay(folder.path());
    assert_eq!(std::fs::read_to_string(again).unwrap(), html);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing half written stays: {left:?}");
}

#[test]
fn names_that_end_a_script_break_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "a<!--<script>\"'&b";
    let trace = folder.path().join(format!("{hostile}.csv.zst"));
    std::fs::copy(sample("tpcc-pg-logical-6000.csv.zst"), &trace).unwrap();
    let page = folder.path().join("page.html");
    let (trace, to) = (trace.to_str().unwrap(), page.to_str().unwrap());
    good(&["replay", trace, "--policy", "lru,opt", "--size", "100,200", "--report", to]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(!html.contains(hostile), "it is escaped wherever it stands");
    let Some(browser) = browser() else { return };
    let seen = &look(&browser, &[Look::at(&page)], &[])[0];
    assert!(seen["text"].as_str().unwrap().contains(hostile), "and read as it is");
    assert_eq!(
        (seen["charts"].as_array().unwrap().len(), &seen["errors"]),
        (3, &serde_json::json!([]))
    );
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_run() {
    let args =
        ["replay", "zipf:pages=100,requests=1000,theta=0.9", "--policy", "lru", "--size", "10"];
    let line = refused(&[&args[..], &["--report", "/nowhere/page.html"]].concat());
    assert!(line.contains("/nowhere/page.html"), "{line}");
    refused(&[&args[..], &["--report", "/"]].concat());
    let link = tempfile::tempdir().unwrap();
    let link = link.path().join("link.html");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    refused(&[&args[..], &["--report", link.to_str().unwrap()]].concat());
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("p.html");
    let run = tantalum(&[&args[..], &["--report", page.to_str().unwrap()]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("p.html: written"), "{}", run.err);
}
