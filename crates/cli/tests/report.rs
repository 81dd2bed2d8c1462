//! `--report`: the page as a browser shows it holds the rows, sorts and needs no network.
mod support;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{good, refused, sample, tantalum};

/// Run in the page: what a reader sees and does, as text in an element that is dumped.
const PROBE: &str = r##"
<script>
const charts = [...document.querySelectorAll("figure.chart")].map(figure => {
  const drawing = figure.querySelector("svg").getBoundingClientRect();
  const series = [...figure.querySelectorAll("g.series")].map(group => ({
    name: group.dataset.series,
    joined: group.querySelectorAll("polyline").length,
    colour: getComputedStyle(group).color,
    points: [...group.querySelectorAll("[data-x]")].map(point => {
      const at = point.querySelector(".point").getBoundingClientRect();
      return {
        x: +point.dataset.x, y: +point.dataset.y, tip: point.querySelector("title").textContent,
        left: (at.left + at.width / 2 - drawing.left) / drawing.width * 640,
        top: (at.top + at.height / 2 - drawing.top) / drawing.height * 340,
      };
    }),
  }));
  return { title: figure.querySelector("figcaption").textContent, series };
});
const cells = key => {
  const at = [...document.querySelectorAll("th")].findIndex(head => head.dataset.key === key);
  return [...document.querySelectorAll("tbody tr")].map(row => row.cells[at].dataset.value);
};
const head = document.querySelector("th[data-key=misses] button");
const sorted_by_address = cells("hit_ratio");
head.click();
const ascending = cells("misses");
head.click();
const descending = cells("misses");
const legend = document.querySelector(".legend button");
legend.click();
const hidden = [...document.querySelectorAll("figure.chart")][0].querySelectorAll(".hidden").length;
const probe = document.createElement("pre");
probe.id = "probe";
probe.textContent = JSON.stringify({ charts, sorted_by_address, ascending, descending, hidden,
  address: location.hash, paper: getComputedStyle(document.body).backgroundColor,
  loaded: performance.getEntriesByType("resource").length });
document.body.append(probe);
</script>
"##;

fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        println!("skipped: no chromium");
    }
    found
}

/// The page with the probe in it, opened at `address`; what the probe saw.
fn look(browser: &Path, page: &Path, address: &str, options: &[&str]) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let probed = page.with_extension("probed.html");
    std::fs::write(&probed, html.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    let profile = page.with_extension("profile");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--window-size=1200,1600", "--dump-dom"])
        .args(options)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}{address}", probed.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let page = String::from_utf8(output.stdout).unwrap();
    let start = page
        .find(r#"<pre id="probe">"#)
        .unwrap_or_else(|| panic!("no probe: {page}{}", String::from_utf8_lossy(&output.stderr)));
    let text = &page[start + r#"<pre id="probe">"#.len()..];
    let text = &text[..text.find("</pre>").unwrap()];
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

/// Runs a replay with a page; its rows, and where the page is.
fn replay(folder: &Path) -> (Value, PathBuf) {
    let page = folder.join("page.html");
    let trace = sample("tpcc-pg-logical-6000.csv.zst");
    let args = ["replay", &trace, "--policy", "lru,clock:bits=2,opt", "--size", "100,200,400,10%"];
    let report = ["--report", page.to_str().unwrap(), "--format", "json"];
    let out = good(&[&args[..], &report[..]].concat());
    (serde_json::from_str(&out).unwrap(), page)
}

/// One even scale for all points of a chart, whose lower end is zero where `from_zero`.
fn up_is_even(points: &[&Value], from_zero: bool) {
    let number = |point: &Value, key: &str| point[key].as_f64().unwrap();
    let by_y = |a: &&&Value, b: &&&Value| number(a, "y").total_cmp(&number(b, "y"));
    let (low, high) = (points.iter().min_by(by_y).unwrap(), points.iter().max_by(by_y).unwrap());
    let per_unit =
        (number(low, "top") - number(high, "top")) / (number(high, "y") - number(low, "y"));
    assert!(per_unit > 0.0);
    for point in points {
        let top = number(low, "top") - per_unit * (number(point, "y") - number(low, "y"));
        assert!((number(point, "top") - top).abs() < 1.5, "{point}: {top}");
    }
    let zero = number(low, "top") + per_unit * number(low, "y");
    assert_eq!((zero - 300.0).abs() < 3.0, from_zero, "zero is drawn at {zero}");
}

/// The points of one series, sorted by x, as the rows have them.
fn expected(rows: &Value, policy: &str, y: &str) -> Vec<(f64, f64)> {
    let rows = rows["rows"].as_array().unwrap().iter().filter(|row| row["policy"] == policy);
    let mut points: Vec<(f64, f64)> =
        rows.map(|row| (row["cache_pages"].as_f64().unwrap(), row[y].as_f64().unwrap())).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

#[test]
fn the_charts_hold_the_rows_where_the_browser_draws_them() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (rows, page) = replay(folder.path());
    let seen = look(&browser, &page, "", &[]);
    let charts = seen["charts"].as_array().unwrap();
    let titles: Vec<&str> = charts.iter().map(|chart| chart["title"].as_str().unwrap()).collect();
    let name = "tpcc-pg-logical-6000";
    // Nothing was timed, so there is no chart of times.
    let whats = ["Hit ratio", "Pages fetched", "Pages written back"];
    assert_eq!(titles, whats.map(|what| format!("{what}, {name}")));
    for (chart, y) in charts.iter().zip(["hit_ratio", "physical_reads", "physical_writes"]) {
        let series = chart["series"].as_array().unwrap();
        assert_eq!(series.len(), 3);
        let mut colours = Vec::new();
        let all: Vec<&Value> =
            series.iter().flat_map(|series| series["points"].as_array().unwrap()).collect();
        for (series, policy) in series.iter().zip(["lru", "clock:bits=2", "opt"]) {
            assert_eq!((&series["name"], &series["joined"]), (&policy.into(), &1.into()));
            colours.push(series["colour"].clone());
            let points = series["points"].as_array().unwrap();
            let number = |point: &Value, key: &str| point[key].as_f64().unwrap();
            let held: Vec<(f64, f64)> =
                points.iter().map(|point| (number(point, "x"), number(point, "y"))).collect();
            assert_eq!(held, expected(&rows, policy, y), "{policy} {y}");
            for point in points {
                // Both ends of the axis across are ends of the drawing, and it is logarithmic.
                let share =
                    (number(point, "x") / 100.0).ln() / (held.last().unwrap().0 / 100.0).ln();
                let left = 64.0 + share * (620.0 - 64.0);
                assert!((number(point, "left") - left).abs() < 1.0, "{point}");
                assert!((12.0..=300.0).contains(&number(point, "top")), "{point}");
            }
        }
        up_is_even(&all, y != "hit_ratio");
        colours.dedup();
        assert_eq!(colours.len(), 3, "each policy has a colour of its own");
    }
    assert_eq!(seen["loaded"], 0, "the page fetches nothing");
    assert_eq!(seen["hidden"], 1, "the legend hides a series");

    let numbers = |key: &str| -> Vec<f64> {
        let cells = seen[key].as_array().unwrap().iter();
        cells.map(|cell| cell.as_str().unwrap().parse().unwrap()).collect()
    };
    let (up, mut down) = (numbers("ascending"), numbers("descending"));
    assert_eq!(up.len(), 12);
    assert!(up.is_sorted() && up.first() < up.last(), "{up:?}");
    down.reverse();
    assert_eq!(up, down);
    assert_eq!(seen["address"], "#sort=-misses");
}

#[test]
fn an_address_keeps_the_order_and_dark_is_dark() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, page) = replay(folder.path());
    let seen = look(&browser, &page, "#sort=-hit_ratio", &["--force-dark-mode"]);
    let cells: Vec<f64> = seen["sorted_by_address"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell.as_str().unwrap().parse().unwrap())
        .collect();
    assert!(cells.iter().rev().is_sorted() && cells.first() > cells.last(), "{cells:?}");
    let light = look(&browser, &page, "", &[]);
    assert_eq!(light["paper"], "rgb(255, 255, 255)");
    assert_eq!(seen["paper"], "rgb(20, 24, 29)");
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
    assert!(html.contains("<code>tantalum replay"));
    let (_, again) = replay(folder.path());
    assert_eq!(std::fs::read_to_string(again).unwrap(), html);
    // Every command that measures has one.
    let other = folder.path().join("other.html");
    good(&[
        "trace",
        "stat",
        &sample("tpcc-pg-logical-6000.csv.zst"),
        "--report",
        other.to_str().unwrap(),
    ]);
    assert!(std::fs::read_to_string(other).unwrap().contains("distinct_pages"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing half written stays: {left:?}");
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
