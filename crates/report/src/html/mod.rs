//! A report as one self-contained HTML page: verdict, charts, tables, and the command and configuration of the run.
//!
//! ```text
//! Plot     the columns of a table to draw  ->  Chart, or a Number if a chart would add nothing
//! Grid     a table that fits the page: common columns above, the rest turned or split if too wide
//! Meter    a whole and its parts, as one bar
//! page.html, page.css      the template, and its style for light and dark
//! charts.js, tables.js     drawing charts and sorting tables
//! vendor/uplot                   the chart library
//! ```
mod chart;
mod grid;
mod meter;
mod plot;

pub use chart::{Chart, Drawn, Measure, Number, Point, draw, scatter};
pub use grid::Grid;
pub use meter::Meter;
pub use plot::Plot;

use crate::report::Report;
use crate::table::Table;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use tantalum_base::{Error, ErrorKind, Result};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const TABLES_SCRIPT: &str = include_str!("tables.js");
const CHARTS_SCRIPT: &str = include_str!("charts.js");
const LIBRARY: &str = include_str!("vendor/uplot/uPlot.iife.min.js");
const LIBRARY_LICENCE: &str = include_str!("vendor/uplot/LICENSE");
const LIBRARY_STYLE: &str = include_str!("vendor/uplot/uPlot.min.css");

/// Tables with more rows are folded up under the charts of their section.
const OPEN_ROWS_MAX: usize = 24;

/// The reader's view of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// As expected.
    Good,
    /// A problem was found.
    Bad,
}

/// The content of a page around the rows of the report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Heading of the page.
    pub title: String,
    /// The result of the run in a sentence, at the top of the page.
    pub verdict: String,
    /// Whether the verdict is good or bad.
    pub tone: Tone,
    /// The command that produces the page again.
    pub command: String,
    /// Text below the verdict, one paragraph each.
    pub paragraphs: Vec<String>,
    /// Numbers shown on their own.
    pub numbers: Vec<Number>,
    /// Wholes and their parts.
    pub meters: Vec<Meter>,
    /// Charts of the report's table.
    pub plots: Vec<Plot>,
    /// Sections of the page, which replace the charts and the table of the report.
    pub sections: Vec<Section>,
}

/// A section of a page: charts, and the table with their data.
#[derive(Clone, PartialEq, Debug)]
pub struct Section {
    /// Its heading; may be empty.
    pub heading: String,
    /// Text before the charts, one paragraph each.
    pub paragraphs: Vec<String>,
    /// Charts and numbers.
    pub drawn: Vec<Drawn>,
    /// The rows.
    pub table: Table,
}

/// A section in the form that the template reads.
#[derive(Serialize)]
struct Laid<'a> {
    heading: &'a str,
    paragraphs: &'a [String],
    numbers: Vec<&'a Number>,
    /// Indices of its charts among those of the page, and the charts.
    charts: Vec<(usize, &'a Chart)>,
    grid: Grid,
    is_open: bool,
}

impl Page {
    /// The page around `report`, as HTML.
    ///
    /// # Errors
    /// `InvalidInput` if the data cannot be written as JSON.
    pub fn render(&self, report: &Report) -> Result<String> {
        let failed = |error| Error::with_source(ErrorKind::InvalidInput, "the HTML page", error);
        let whole;
        let sections = if self.sections.is_empty() {
            whole = [self.whole(&report.table)];
            &whole[..]
        } else {
            &self.sections
        };
        let charts: Vec<&Chart> = sections.iter().flat_map(Section::charts).collect();
        let mut before = 0;
        let laid = sections.iter().map(|section| {
            let own: Vec<(usize, &Chart)> = (before..).zip(section.charts()).collect();
            before += own.len();
            Laid {
                heading: &section.heading,
                paragraphs: &section.paragraphs,
                numbers: section.numbers(),
                is_open: own.is_empty() || section.table.rows().len() <= OPEN_ROWS_MAX,
                charts: own,
                grid: Grid::of(&section.table),
            }
        });
        let laid: Vec<Laid> = laid.collect();
        let mut facts: Vec<(&str, String)> = vec![("seed", report.seed.to_string())];
        facts.push(("configuration", report.config.clone()));
        facts.extend(report.fields.iter().map(|(key, value)| (*key, value.plain())));
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.add_template("page.html", TEMPLATE).map_err(failed)?;
        let template = environment.get_template("page.html").map_err(failed)?;
        let page = context! {
            title => self.title,
            verdict => self.verdict,
            tone => self.tone,
            command => self.command,
            paragraphs => self.paragraphs,
            numbers => self.numbers,
            meters => self.meters,
            sections => laid,
            facts => facts,
            has_charts => !charts.is_empty(),
            style => STYLE,
            library => LIBRARY,
            library_licence => LIBRARY_LICENCE,
            library_style => LIBRARY_STYLE,
            charts_script => CHARTS_SCRIPT,
            tables_script => TABLES_SCRIPT,
            charts => json(&charts)?,
            report => json(report)?,
        };
        template.render(page).map_err(failed)
    }

    /// The whole report as one section.
    fn whole(&self, table: &Table) -> Section {
        let drawn = self.plots.iter().flat_map(|plot| plot.draw(table)).collect();
        Section { drawn, ..Section::new("", table.clone()) }
    }
}

impl Section {
    /// A section with a table only.
    pub fn new(heading: impl Into<String>, table: Table) -> Section {
        Section { heading: heading.into(), paragraphs: Vec::new(), drawn: Vec::new(), table }
    }

    fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.drawn.iter().filter_map(|drawn| match drawn {
            Drawn::Chart(chart) => Some(chart),
            Drawn::Number(_) => None,
        })
    }

    fn numbers(&self) -> Vec<&Number> {
        let numbers = self.drawn.iter().filter_map(|drawn| match drawn {
            Drawn::Number(number) => Some(number),
            Drawn::Chart(_) => None,
        });
        numbers.collect()
    }
}

/// JSON for a script element; no tag in the JSON can end the element early.
fn json(value: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string(value)
        .map_err(|error| Error::with_source(ErrorKind::InvalidInput, "cannot write JSON", error))?;
    Ok(json.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Style, Table};

    const HOSTILE: &str = "</script><q>&\"<!--";

    fn table() -> Table {
        let mut table = Table::new(&[
            Column::new("name", "name", Style::Text),
            Column::new("pages", "pages", Style::Count),
            Column::new("hits", "hits", Style::Count),
        ]);
        table.push(vec![HOSTILE.into(), 1u64.into(), 1u64.into()]);
        table.push(vec!["</style>".into(), 2u64.into(), 2u64.into()]);
        table
    }

    #[test]
    fn words_cannot_leave_their_place() {
        let page = Page {
            title: "<q>".into(),
            verdict: "<q>".into(),
            command: "a > b".into(),
            numbers: vec![Number::new("<q>", "<q>", "<q>")],
            meters: vec![Meter::new("<q>", vec![("<q>", 3.0, "<q>".into())])],
            plots: vec![Plot::new("<q>", "pages", &["hits"], &["name"])],
            ..Page::default()
        };
        let html = page.render(&Report::new(7, "0123456789abcdef".into(), table())).unwrap();
        assert!(!html.contains("<q>"));
        assert!(html.contains("&lt;&#x2f;script&gt;&lt;q&gt;&amp;&quot;"), "{html}");
        // Once in the charts, and once in the report.
        assert_eq!(html.matches("\\u003c/script>\\u003cq>&\\\"\\u003c!--").count(), 2);
    }

    #[test]
    fn a_page_is_small_and_loads_nothing() {
        let page =
            Page { plots: vec![Plot::new("Hits", "pages", &["hits"], &[])], ..Page::default() };
        let html = page.render(&Report::new(7, "0123456789abcdef".into(), table())).unwrap();
        assert!(html.len() < 100_000, "{} bytes", html.len());
        for loads in [" src=", " href=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!html.contains(loads), "{loads}");
        }
        let bare = Page::default().render(&Report::new(7, "0".into(), table())).unwrap();
        assert!(!bare.contains("uPlot") && bare.len() < 20_000, "no charts, no library");
    }

    /// There are as many colours as policies, in both themes: no two series share one.
    #[test]
    fn colours_of_charts_do_not_repeat() {
        let script = include_str!("charts.js");
        let count =
            script.split_once("const COLOURS = ").and_then(|(_, rest)| rest.split_once(';'));
        let count: usize = count.expect("it says how many").0.parse().unwrap();
        assert!(count >= 28);
        let (light, dark) = include_str!("page.css").split_once("@media").unwrap();
        for theme in [light, dark] {
            let colour = |at: usize| {
                let (_, rest) = theme.split_once(&format!("--c{at}: #")).expect("each is there");
                u32::from_str_radix(&rest[..6], 16).unwrap()
            };
            let mut all: Vec<u32> = (0..count).map(colour).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }
}
