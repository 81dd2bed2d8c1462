//! Charts of a table's columns.
use super::axis::{Axis, Spread, Tick};
use crate::table::{Column, Style, Table, show};
use crate::value::Value;
use serde::Serialize;

/// Which columns to draw, named by their keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// What the chart shows.
    pub title: &'static str,
    /// Column of the horizontal axis.
    pub x: &'static str,
    /// Column of the vertical axis, drawn from zero.
    pub y: &'static str,
    /// Columns that tell series apart.
    pub series: &'static [&'static str],
    /// Columns of which each combination of values gets a chart of its own.
    pub panels: &'static [&'static str],
    /// How the horizontal axis is spread.
    pub x_spread: Spread,
    /// How the vertical axis is spread.
    pub y_spread: Spread,
    /// Whether points of a series are joined.
    pub lines: bool,
}

/// A chart, ready to be written as SVG.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    title: String,
    x_heading: &'static str,
    y_heading: &'static str,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Series {
    name: String,
    lines: bool,
    points: Vec<Point>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Point {
    x: f64,
    y: f64,
    left: f64,
    top: f64,
    tip: String,
}

/// The drawing, in its own units; the page's template draws frame and labels around it.
pub const LEFT: f64 = 64.0;
/// Right edge.
pub const RIGHT: f64 = 620.0;
/// Upper edge.
pub const TOP: f64 = 12.0;
/// Lower edge.
pub const BOTTOM: f64 = 300.0;

/// A row's place among the series of a chart, and its point.
struct PlottedRow {
    panel: String,
    series: String,
    x: f64,
    y: f64,
}

impl Plot {
    /// The charts of `table`: one a panel, in the order of the rows, without what has no value or
    /// no place. None where a column is not there or nothing is to be drawn.
    pub fn charts(&self, table: &Table) -> Vec<Chart> {
        let columns = table.columns();
        let index = |key: &str| columns.iter().position(|column| column.key == key);
        let (Some(x), Some(y)) = (index(self.x), index(self.y)) else { return Vec::new() };
        let words = |row: &[Value], keys: &[&str]| {
            let cells = keys.iter().filter_map(|key| index(key));
            let words: Vec<String> = cells.map(|at| row[at].plain()).collect();
            words.join(" ")
        };
        let entries = table.rows().iter().filter_map(|row| {
            Some(PlottedRow {
                panel: words(row, self.panels),
                series: words(row, self.series),
                x: number(&row[x])?,
                y: number(&row[y])?,
            })
        });
        let entries: Vec<PlottedRow> = entries.collect();
        let panels = distinct(entries.iter().map(|entry| entry.panel.as_str()));
        let panels = panels.into_iter().filter_map(|panel| {
            let shown: Vec<&PlottedRow> =
                entries.iter().filter(|entry| entry.panel == panel).collect();
            self.chart(panel, &shown, &columns[x], &columns[y])
        });
        panels.collect()
    }

    fn chart(&self, panel: &str, entries: &[&PlottedRow], x: &Column, y: &Column) -> Option<Chart> {
        let across = Axis::new(self.x_spread, entries.iter().map(|entry| entry.x), LEFT, RIGHT)?;
        let up = Axis::new(self.y_spread, entries.iter().map(|entry| entry.y), BOTTOM, TOP)?;
        let names = distinct(entries.iter().map(|entry| entry.series.as_str()));
        let series = names.into_iter().map(|name| {
            let mut points: Vec<Point> = entries
                .iter()
                .filter(|entry| entry.series == name && across.has(entry.x) && up.has(entry.y))
                .map(|entry| Point {
                    x: entry.x,
                    y: entry.y,
                    left: across.place(entry.x),
                    top: up.place(entry.y),
                    tip: format!("{name}: {}, {}", told(entry.x, x), told(entry.y, y)),
                })
                .collect();
            if self.lines {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
            Series { name: name.to_owned(), lines: self.lines, points }
        });
        let title = match panel {
            "" => self.title.to_owned(),
            panel => format!("{}, {panel}", self.title),
        };
        Some(Chart {
            title,
            x_heading: x.heading,
            y_heading: y.heading,
            x_ticks: across.ticks(x.style),
            y_ticks: up.ticks(y.style),
            series: series.collect(),
        })
    }
}

/// A value with its heading, for people who point at it.
fn told(value: f64, column: &Column) -> String {
    let value = match column.style {
        Style::Count if value >= 0.0 => Value::Count(value as u64),
        _ => Value::Real(value),
    };
    format!("{} {}", show(&value, column.style), column.heading)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Real(real) if real.is_finite() => Some(*real),
        _ => None,
    }
}

/// The different ones, in the order in which they first come.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_and_series_hold_the_rows() {
        let mut table = Table::new(&[
            Column::new("trace", "trace", Style::Text),
            Column::new("policy", "policy", Style::Text),
            Column::new("pages", "cache pages", Style::Count),
            Column::new("hit_ratio", "hits", Style::Percent),
        ]);
        for (trace, policy, pages, hits) in [
            ("a", "lru", 2000u64, 0.5.into()),
            ("a", "lru", 1000, 0.25.into()),
            ("a", "opt", 1000, 0.75.into()),
            ("b", "lru", 1000, Value::Null),
            ("c", "lru", 1000, 1.0.into()),
        ] {
            table.push(vec![trace.into(), policy.into(), pages.into(), hits]);
        }
        let plot = Plot {
            title: "Hits",
            x: "pages",
            y: "hit_ratio",
            series: &["policy"],
            panels: &["trace"],
            x_spread: Spread::Log,
            y_spread: Spread::FromZero,
            lines: true,
        };
        let charts = plot.charts(&table);
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["Hits, a", "Hits, c"]);
        let lru = &charts[0].series[0];
        let points: Vec<(f64, f64)> = lru.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!((lru.name.as_str(), points), ("lru", vec![(1000.0, 0.25), (2000.0, 0.5)]));
        assert_eq!(lru.points[0].left, LEFT);
        assert_eq!(lru.points[1].left, RIGHT);
        assert_eq!(lru.points[0].tip, "lru: 1,000 cache pages, 25.00 % hits");
        assert_eq!(charts[0].series[1].name, "opt");
        assert!(Plot { y: "seconds", ..plot }.charts(&table).is_empty());
    }
}
