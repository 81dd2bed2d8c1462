//! Pages as shown in a browser.
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Run in the page: collects the visible content, as text for the surrounding page.
const PROBE: &str = r##"
<script>
{
  const errors = window.failures || [];
  const box = node => node.getBoundingClientRect();
  const charts = typeof drawings === "undefined" ? [] : drawings.map(drawing => {
    const { plot, chart, figure } = drawing;
    const ticks = axis => plot.axes[axis]._values.filter(value => value !== null).map(String);
    const canvas = figure.querySelector("canvas");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return {
      title: figure.querySelector("figcaption").textContent, form: chart.form,
      series: chart.series.map((series, at) => ({ ...series, stroke: String(plot.series[at + 1]._stroke || plot.series[at + 1].stroke(plot, at + 1)) })),
      places: chart.places, labels: chart.labels, x: chart.x, y: chart.y,
      legend: [...figure.querySelectorAll(".u-legend .u-series:not(.of-paper) .u-label")].map(label => label.textContent),
      ticks: [ticks(0), ticks(1)], low: plot.scales.y.min, isLog: [plot.scales.x.distr === 3, plot.scales.y.distr === 3],
      ways: [...figure.querySelectorAll(".ways button:not([hidden])")].map(way => [way.textContent, way.disabled]),
      isDrawn: pixels.some(value => value !== 0), right: box(canvas).right, hint: figure.querySelector(".hint").textContent,
    };
  });
  document.querySelectorAll("details").forEach(details => details.open = true);
  const tables = [...document.querySelectorAll("table:not(.u-legend)")].map(table => ({
    right: box(table.rows[0].cells[table.rows[0].cells.length - 1]).right, columns: table.rows[0].cells.length,
    rows: table.rows.length - 1, scrolls: table.parentElement.scrollWidth > table.parentElement.clientWidth,
  }));
  const seen = {
    width: innerWidth, client: document.documentElement.clientWidth, scrolled: document.documentElement.scrollWidth, charts, tables, errors,
    verdict: box(document.getElementById("verdict") || document.body).top, says: (document.getElementById("verdict") || {}).textContent,
    first: document.body.querySelector("h1").nextElementSibling.id,
    numbers: [...document.querySelectorAll(".numbers > div")].map(number => number.textContent),
    meters: [...document.querySelectorAll(".meter")].map(meter => box(meter.querySelector(".bar span")).width),
    text: document.body.innerText, paper: getComputedStyle(document.body).backgroundColor,
    loaded: performance.getEntriesByType("resource").length,
    links: [...document.querySelectorAll("[src], [href]")].map(node => node.outerHTML),
  };
  seen.done = typeof act === "undefined" ? null : act();
  parent.postMessage({ page: PAGE, seen: JSON.stringify(seen) }, "*");
}
</script>
"##;

/// Run before the page's own scripts.
const CATCH: &str = "<script>window.failures = []; addEventListener('error', event => failures.push(event.message));</script>";

/// The surrounding page of frames.
const AROUND: &str = r##"<!DOCTYPE html><body style="margin: 0"><pre id="probe"></pre><script>
const seen = {};
addEventListener("message", event => {
  seen[event.data.page] = JSON.parse(event.data.seen);
  document.getElementById("probe").textContent = JSON.stringify(seen);
});
</script>"##;

/// The browser; if there is none, prints a line and returns `None`.
pub fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        tantalum_testing::skip("chromium");
    }
    found
}

/// A page, and the way in which it is viewed.
pub struct Look<'a> {
    pub page: &'a Path,
    /// Text after the file's name, such as `#sort=misses`.
    pub address: &'a str,
    pub width: u32,
    /// A script that defines `act`, which performs an action and returns its result: `done`.
    pub script: &'a str,
}

impl<'a> Look<'a> {
    /// The page at a width of 1,280 pixels.
    pub fn at(page: &'a Path) -> Look<'a> {
        Look { page, address: "", width: 1280, script: "" }
    }
}

/// The views of all pages, from one run of the browser.
pub fn look(browser: &Path, looks: &[Look], options: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut around = AROUND.to_owned();
    for (at, look) in looks.iter().enumerate() {
        let html = std::fs::read_to_string(look.page).unwrap();
        let probe = PROBE.replace("PAGE", &at.to_string());
        let probe = format!("<script>{}</script>{probe}</body>", look.script);
        let (html, end) = html.rsplit_once("</body>").expect("a page has an end");
        let html = html.replacen("<head>", &format!("<head>{CATCH}"), 1);
        let probed = folder.path().join(format!("{at}.html"));
        std::fs::write(&probed, format!("{html}{probe}{end}")).unwrap();
        around += &format!(
            r#"<iframe src="{at}.html{}" style="border: 0" width="{}" height="3000"></iframe>"#,
            look.address, look.width
        );
    }
    let page = folder.path().join("around.html");
    std::fs::write(&page, around).unwrap();
    let profile = folder.path().join("profile");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--window-size=1300,1600", "--virtual-time-budget=30000"])
        .arg("--dump-dom")
        .args(options)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let page = String::from_utf8(output.stdout).unwrap();
    let (_, text) = page.split_once(r#"<pre id="probe">"#).expect("the page around is there");
    let (text, _) = text.split_once("</pre>").unwrap();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let seen: Value = serde_json::from_str(&text).unwrap_or_else(|_| {
        panic!("no page was seen: {}", String::from_utf8_lossy(&output.stderr))
    });
    let seen = (0..looks.len()).map(|at| seen[at.to_string()].clone());
    let seen: Vec<Value> = seen.collect();
    for (look, seen) in looks.iter().zip(&seen) {
        assert!(seen.is_object(), "{} was not seen", look.page.display());
        assert_eq!(seen["width"], look.width, "{}", look.page.display());
    }
    seen
}
