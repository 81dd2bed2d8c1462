//! Charts of a table's columns.
use super::chart::{Drawn, Measure, Point, distinct, draw, number};
use crate::table::Table;
use crate::value::Value;

/// The columns to draw, named by their keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// Title of the chart.
    pub title: &'static str,
    /// Column of the horizontal axis.
    pub x: &'static str,
    /// Columns of the vertical axis. Several are series of one chart.
    pub y: &'static [&'static str],
    /// Columns that distinguish the series.
    pub series: &'static [&'static str],
    /// Each combination of values of these columns gets a separate chart.
    pub panels: &'static [&'static str],
}

impl Plot {
    /// A chart of a column against another, without panels.
    pub const fn new(
        title: &'static str,
        x: &'static str,
        y: &'static [&'static str],
        series: &'static [&'static str],
    ) -> Plot {
        Plot { title, x, y, series, panels: &[] }
    }

    /// The drawings of `table`: one per panel, in the order of the rows. Cells without a value are skipped. Empty if a
    /// column is missing or there is nothing to draw.
    pub fn draw(&self, table: &Table) -> Vec<Drawn> {
        let columns = table.columns();
        let index = |key: &str| table.index(key);
        let Some(x) = index(self.x) else { return Vec::new() };
        let ys: Vec<usize> = self.y.iter().filter_map(|key| index(key)).collect();
        let Some(first) = ys.first() else { return Vec::new() };
        // A value common to all rows distinguishes nothing.
        let varies = |at: &usize| table.rows().iter().any(|row| row[*at] != table.rows()[0][*at]);
        let at: Vec<usize> =
            self.series.iter().filter_map(|key| index(key)).filter(varies).collect();
        let panels: Vec<usize> = self.panels.iter().filter_map(|key| index(key)).collect();
        let panel_of = |row: &[Value]| words(row, &panels);
        let all = distinct(table.rows().iter().map(|row| panel_of(row)));
        let drawn = all.iter().filter_map(|panel| {
            let mut points = Vec::new();
            for row in table.rows().iter().filter(|row| panel_of(row) == *panel) {
                for &up in &ys {
                    let Some(y) = number(&row[up]) else { continue };
                    let mut names = vec![words(row, &at)];
                    names.extend((ys.len() > 1).then(|| columns[up].heading.to_owned()));
                    names.retain(|name| !name.is_empty());
                    let series = names.join(", ");
                    points.push(Point { series, x: row[x].clone(), y, paper: None });
                }
            }
            let mut up = Measure::from(&columns[*first]);
            if ys.len() > 1 {
                // The name of each series says what it is.
                up.label.clear();
            }
            let title = match panel.as_str() {
                _ if all.len() == 1 => self.title.to_owned(),
                panel => format!("{}, {panel}", self.title),
            };
            draw(&title, &Measure::from(&columns[x]), &up, points)
        });
        drawn.collect()
    }
}

fn words(row: &[Value], cells: &[usize]) -> String {
    let words: Vec<String> = cells.iter().map(|at| row[*at].plain()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Style};

    fn table() -> Table {
        let mut table = Table::new(&[
            Column::new("trace", "trace", Style::Text),
            Column::new("policy", "policy", Style::Text),
            Column::new("pages", "cache pages", Style::Count),
            Column::new("hit_ratio", "hits", Style::Percent),
            Column::new("miss_ratio", "misses", Style::Percent),
        ]);
        for (trace, policy, pages, hits) in [
            ("a", "lru", 2000u64, 0.5.into()),
            ("a", "lru", 1000, 0.25.into()),
            ("a", "opt", 1000, 0.75.into()),
            ("b", "lru", 1000, Value::Null),
            ("c", "lru", 1000, 1.0.into()),
        ] {
            table.push(vec![trace.into(), policy.into(), pages.into(), hits, 0.125.into()]);
        }
        table
    }

    #[test]
    fn panels_and_series_hold_the_rows() {
        let plot =
            Plot { panels: &["trace"], ..Plot::new("Hits", "pages", &["hit_ratio"], &["policy"]) };
        let drawn = plot.draw(&table());
        assert_eq!(drawn.len(), 2, "nothing is known of b");
        let Drawn::Chart(chart) = &drawn[0] else { panic!("{drawn:?}") };
        let json = serde_json::to_value(chart).unwrap();
        assert_eq!(
            (&json["title"], &json["x"]["label"]),
            (&"Hits, a".into(), &"cache pages".into())
        );
        assert_eq!(json["places"], serde_json::json!([1000.0, 2000.0]));
        assert_eq!(json["series"][0]["name"], "lru");
        assert_eq!(json["series"][0]["values"], serde_json::json!([0.25, 0.5]));
        assert_eq!(json["series"][1]["values"], serde_json::json!([0.75, null]));
        assert!(matches!(&drawn[1], Drawn::Number(number) if number.shown == "100.00 %"));
        assert!(Plot { y: &["seconds"], ..plot }.draw(&table()).is_empty());
    }

    #[test]
    fn several_columns_are_series_of_one_chart() {
        let drawn =
            Plot::new("Shares", "pages", &["hit_ratio", "miss_ratio"], &["policy"]).draw(&table());
        let Drawn::Chart(chart) = &drawn[0] else { panic!("{drawn:?}") };
        let json = serde_json::to_value(chart).unwrap();
        let names: Vec<_> =
            json["series"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["lru, hits", "lru, misses", "opt, hits", "opt, misses"]);
    }
}
