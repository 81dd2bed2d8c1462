//! A report as one HTML page that needs nothing else: charts as SVG, the table, what was run.
//!
//! ```text
//! Plot  which columns of the table to draw  ->  Chart  axes, series and points in place
//! page.html  the template: style for light and dark, charts, a table that sorts, the data as JSON
//! ```
mod axis;
mod plot;

pub use axis::{Axis, Spread, Tick};
pub use plot::{Chart, Plot};

use crate::report::Report;
use crate::table::{Style, show};
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use tantalum_base::{Error, ErrorKind, Result};

const TEMPLATE: &str = include_str!("page.html");
/// Colours in the template's style; further series take other dashes.
const COLOURS: usize = 8;

/// What stands around the rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Heading of the page.
    pub title: String,
    /// The command that makes it again.
    pub command: String,
    /// What was run, as name and value.
    pub facts: Vec<(&'static str, String)>,
    /// What to say before the charts, a paragraph each.
    pub paragraphs: Vec<String>,
    /// The charts.
    pub plots: Vec<Plot>,
}

#[derive(Serialize)]
struct Heading {
    key: &'static str,
    text: &'static str,
    is_text: bool,
}

#[derive(Serialize)]
struct Cell {
    /// What it is sorted by.
    value: String,
    shown: String,
}

impl Page {
    /// The page around `report`, as HTML.
    ///
    /// # Errors
    /// `InvalidInput` where the data cannot be written as JSON.
    pub fn render(&self, report: &Report) -> Result<String> {
        let failed = |error| Error::with_source(ErrorKind::InvalidInput, "the HTML page", error);
        let json = serde_json::to_string(report);
        let json = json.map_err(|error| {
            Error::with_source(ErrorKind::InvalidInput, "cannot write JSON", error)
        })?;
        let charts: Vec<Chart> =
            self.plots.iter().flat_map(|plot| plot.charts(&report.table)).collect();
        let headings = report.table.columns().iter().map(|column| Heading {
            key: column.key,
            text: column.heading,
            is_text: column.style == Style::Text,
        });
        let rows = report.table.rows().iter().map(|row| {
            let cells = row.iter().zip(report.table.columns());
            let cells = cells.map(|(value, column)| Cell {
                value: value.plain(),
                shown: show(value, column.style),
            });
            cells.collect::<Vec<Cell>>()
        });
        let mut facts = self.facts.clone();
        facts.extend(report.fields.iter().map(|(key, value)| (*key, value.plain())));
        facts.push(("seed", report.seed.to_string()));
        facts.push(("configuration", report.config.clone()));
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.add_template("page.html", TEMPLATE).map_err(failed)?;
        let template = environment.get_template("page.html").map_err(failed)?;
        let page = context! {
            title => self.title,
            command => self.command,
            paragraphs => self.paragraphs,
            facts => facts,
            charts => charts,
            colours => COLOURS,
            frame => context! {
                left => plot::LEFT, right => plot::RIGHT, top => plot::TOP, bottom => plot::BOTTOM,
            },
            headings => headings.collect::<Vec<Heading>>(),
            rows => rows.collect::<Vec<Vec<Cell>>>(),
            // No tag can end the element early.
            json => json.replace('<', "\\u003c"),
        };
        template.render(page).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Table};

    #[test]
    fn words_cannot_leave_their_place() {
        let mut table = Table::new(&[Column::new("name", "name", Style::Text)]);
        table.push(vec!["</script><b>&\"".into()]);
        let page = Page { title: "<i>".into(), command: "a > b".into(), ..Page::default() };
        let html = page.render(&Report::new(7, "0123456789abcdef".into(), table)).unwrap();
        assert!(!html.contains("<b>") && !html.contains("<i>"));
        assert!(html.contains("&lt;&#x2f;script&gt;&lt;b&gt;&amp;&quot;"), "{html}");
        assert!(html.contains("\\u003c/script>\\u003cb>&\\\""));
        assert!(!html.contains("http://") && !html.contains("https://"));
    }
}
