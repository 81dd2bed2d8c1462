//! Columns and rows.
use crate::number;
use crate::value::Value;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use tantalum_base::size::human_bytes;
use tantalum_base::{Error, ErrorKind};

/// The format of a column for people; programs always get the plain value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Style {
    /// Words, aligned to the left.
    Text,
    /// `1,234,567`.
    Count,
    /// This many decimals.
    Decimals(u8),
    /// A share from 0 to 1 as `12.34 %`.
    Percent,
    /// Nanoseconds as `3.21 ms`.
    DurationNs,
    /// Seconds as `3.21 ms`.
    Seconds,
    /// Bytes as `64.0 MiB`.
    Bytes,
    /// `174.2 M`.
    Short,
    /// Numbers of any size in one column: `14,484`, `196.5`, `0.125`.
    Figures,
}

/// A column: programs use its key, people see its heading and style.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The field's name in JSON and CSV; never renamed after a release.
    pub key: &'static str,
    /// The heading of the text table.
    pub heading: &'static str,
    /// Format of its values.
    pub style: Style,
}

impl Column {
    /// A column.
    pub const fn new(key: &'static str, heading: &'static str, style: Style) -> Self {
        Column { key, heading, style }
    }

    /// One of its values, formatted for people.
    pub fn show(&self, value: &Value) -> String {
        show(value, self.style)
    }
}

/// Rows under columns.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[Column]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The index of the column with this `key`.
    pub fn index(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// The rows.
    pub fn rows(&self) -> &[Vec<Value>] {
        &self.rows
    }

    /// Appends a row with one value per column; any other number is a mistake of the caller.
    pub fn push(&mut self, row: impl Into<Vec<Value>>) {
        let row = row.into();
        assert_eq!(row.len(), self.columns.len(), "a row has one value a column");
        self.rows.push(row);
    }

    /// Appends a row given as keys and values, in any order; each column must occur exactly once, or it is a mistake of
    /// the caller.
    pub fn push_named<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, Value)>) {
        let mut fields: Vec<Option<(&str, Value)>> = fields.into_iter().map(Some).collect();
        assert_eq!(fields.len(), self.columns.len(), "a row has one value a column");
        let row = self.columns.iter().map(|column| {
            let named = |field: &&mut Option<(&str, Value)>| {
                field.as_ref().is_some_and(|(key, _)| *key == column.key)
            };
            match fields.iter_mut().find(named).and_then(Option::take) {
                Some((_, value)) => value,
                None => panic!("the row has no {}", column.key),
            }
        });
        let row = row.collect();
        self.rows.push(row);
    }

    /// The same table with additional columns, each with the same value in every row.
    pub(crate) fn with(&self, same: &[(&'static str, Value)]) -> Table {
        let mut table = self.clone();
        for (key, value) in same {
            table.columns.push(Column::new(key, key, Style::Text));
            table.rows.iter_mut().for_each(|row| row.push(value.clone()));
        }
        table
    }

    /// The same table without the columns `keys`.
    pub fn without(&self, keys: &[&str]) -> Table {
        let kept = (0..self.columns.len()).filter(|at| !keys.contains(&self.columns[*at].key));
        let kept: Vec<usize> = kept.collect();
        let row = |row: &Vec<Value>| kept.iter().map(|at| row[*at].clone()).collect();
        Table {
            columns: kept.iter().map(|at| self.columns[*at].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// As text: headings, then one line per row, numbers aligned to the right. It has the columns `keys` in this order,
    /// or all columns if `keys` is empty. A column without any value is omitted.
    pub fn to_text(&self, keys: &[&str]) -> String {
        let index = |key: &&str| self.index(key);
        let wanted: Vec<usize> = match keys {
            [] => (0..self.columns.len()).collect(),
            keys => keys.iter().filter_map(index).collect(),
        };
        let has_any = |at: &usize| self.rows.iter().any(|row| !row[*at].is_null());
        let shown: Vec<usize> =
            wanted.into_iter().filter(|at| self.rows.is_empty() || has_any(at)).collect();
        let mut lines: Vec<Vec<String>> =
            vec![shown.iter().map(|&at| self.columns[at].heading.to_owned()).collect()];
        for row in &self.rows {
            let cells = shown.iter().map(|&at| show(&row[at], self.columns[at].style));
            lines.push(cells.collect());
        }
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max();
        let widths: Vec<usize> = (0..shown.len()).map(|at| width(at).unwrap_or(0)).collect();
        if let [headings, row] = &lines[..]
            && widths.iter().map(|width| width + 2).sum::<usize>() > LINE_CHARACTERS_MAX
        {
            return tall(headings, row);
        }
        let mut text = String::new();
        for line in &lines {
            let mut padded = String::new();
            for (at, cell) in line.iter().enumerate() {
                if at > 0 {
                    padded.push_str("  ");
                }
                let blanks = " ".repeat(widths[at] - cell.chars().count());
                let left = self.columns[shown[at]].style == Style::Text;
                let (before, after) = if left { ("", blanks.as_str()) } else { (&*blanks, "") };
                padded.extend([before, cell, after]);
            }
            text.push_str(padded.trim_end());
            text.push('\n');
        }
        text
    }

    /// As CSV: a header of keys, then one line per row with plain values, quoted if necessary.
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        let mut line = |fields: &mut dyn Iterator<Item = String>| {
            for (at, field) in fields.enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&quoted(field));
            }
            text.push('\n');
        };
        line(&mut self.columns.iter().map(|column| column.key.to_owned()));
        for row in &self.rows {
            line(&mut row.iter().map(Value::plain));
        }
        text
    }

    /// As JSON, one object per line: for rows that are printed one after the other.
    ///
    /// # Errors
    /// `InvalidInput`, never for values that a cell can have.
    pub fn to_json_lines(&self) -> tantalum_base::Result<String> {
        let mut text = String::new();
        for row in &self.rows {
            let line = serde_json::to_string(&Fields { columns: &self.columns, row });
            text += &line.map_err(|error| {
                Error::with_source(ErrorKind::InvalidInput, "cannot write JSON", error)
            })?;
            text.push('\n');
        }
        Ok(text)
    }
}

/// A wider single row is printed as one line per column: no terminal is that wide.
const LINE_CHARACTERS_MAX: usize = 160;

/// One row, with a line for each of its columns.
fn tall(headings: &[String], row: &[String]) -> String {
    let width = headings.iter().map(|heading| heading.chars().count()).max().unwrap_or(0);
    let lines =
        headings.iter().zip(row).map(|(heading, cell)| format!("{heading:width$}  {cell}\n"));
    lines.collect()
}

/// As a JSON array of one object per row, with fields in the order of the columns.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut rows = to.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            rows.serialize_element(&Fields { columns: &self.columns, row })?;
        }
        rows.end()
    }
}

struct Fields<'a> {
    columns: &'a [Column],
    row: &'a [Value],
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_map(Some(self.row.len()))?;
        for (column, value) in self.columns.iter().zip(self.row) {
            fields.serialize_entry(column.key, value)?;
        }
        fields.end()
    }
}

/// RFC 4180: quotes a field that contains a comma, a quote or a line end.
fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

/// `value`, formatted for people.
pub(crate) fn show(value: &Value, style: Style) -> String {
    let real = match value {
        _ if value.is_null() => return "-".to_owned(),
        Value::Count(count) => match style {
            Style::Count => return number::thousands(*count),
            Style::Bytes => return human_bytes(*count),
            _ => *count as f64,
        },
        Value::Real(real) => *real,
        _ => return value.plain(),
    };
    match style {
        Style::Text => value.plain(),
        Style::Count => format!("{real:.0}"),
        Style::Decimals(decimals) => format!("{real:.*}", usize::from(decimals)),
        Style::Percent => format!("{:.2} %", real * 100.0),
        Style::DurationNs => number::duration(real),
        Style::Seconds => number::duration(real * 1e9),
        Style::Bytes => human_bytes(real as u64),
        Style::Short => number::short(real),
        Style::Figures => number::figures(real),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[
            Column::new("name", "name", Style::Text),
            Column::new("pages", "pages", Style::Count),
            Column::new("hit_ratio", "hits", Style::Percent),
            Column::new("latency_ns", "latency", Style::DurationNs),
            Column::new("seconds", "time", Style::Seconds),
        ]);
        table.push(vec!["a".into(), 1234u64.into(), 0.5.into(), 1500.0.into(), Value::Null]);
        table.push(vec!["b,\"c\"".into(), 7u64.into(), f64::NAN.into(), 2u64.into(), Value::Null]);
        table
    }

    #[test]
    fn text_is_aligned_and_leaves_empty_columns_out() {
        let expected = "name   pages     hits  latency\n\
                        a      1,234  50.00 %  1.50 us\n\
                        b,\"c\"      7        -     2 ns\n";
        assert_eq!(table().to_text(&[]), expected);
        assert_eq!(Table::new(&table().columns).to_text(&[]).lines().count(), 1);
        assert_eq!(table().to_text(&["pages", "name"]), "pages  name\n1,234  a\n    7  b,\"c\"\n");
    }

    #[test]
    fn a_single_row_too_wide_for_a_terminal_is_a_line_a_column() {
        let wide = "w".repeat(LINE_CHARACTERS_MAX);
        let mut table = Table::new(&table().columns[..3]);
        table.push(vec![wide.as_str().into(), 1234u64.into(), Value::Null]);
        assert_eq!(table.to_text(&[]), format!("name   {wide}\npages  1,234\n"));
        table.push(vec!["b".into(), 7u64.into(), Value::Null]);
        assert_eq!(table.to_text(&[]).lines().count(), 3);
    }

    #[test]
    fn csv_has_bare_values_and_quotes() {
        let expected = "name,pages,hit_ratio,latency_ns,seconds\na,1234,0.5,1500,\n\
                        \"b,\"\"c\"\"\",7,,2,\n";
        assert_eq!(table().to_csv(), expected);
    }

    #[test]
    fn json_keeps_the_order_of_the_columns_and_has_null_for_nothing() {
        let json = serde_json::to_string(&table()).unwrap();
        let expected = "[{\"name\":\"a\",\"pages\":1234,\"hit_ratio\":0.5,\"latency_ns\":1500.0,\
                        \"seconds\":null},{\"name\":\"b,\\\"c\\\"\",\"pages\":7,\
                        \"hit_ratio\":null,\"latency_ns\":2,\"seconds\":null}]";
        assert_eq!(json, expected);
    }

    #[test]
    fn a_list_is_an_array_for_programs_and_has_commas_elsewhere() {
        let mut table = Table::new(&table().columns[..2]);
        let list: Vec<Value> = vec![1.5.into(), f64::NAN.into(), 2u64.into()];
        table.push(vec![Value::List(list), 1234u64.into()]);
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(json, "[{\"name\":[1.5,null,2],\"pages\":1234}]");
        assert_eq!(table.to_csv(), "name,pages\n\"1.5, , 2\",1234\n");
        assert_eq!(table.without(&["name"]).to_csv(), "pages\n1234\n");
    }

    #[test]
    fn json_lines_are_an_object_each() {
        let lines = table().to_json_lines().unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("{\"name\":\"a\",\"pages\":1234,"), "{}", lines[0]);
        assert!(lines[1].ends_with("\"seconds\":null}"), "{}", lines[1]);
    }

    #[test]
    fn named_values_find_their_columns() {
        let mut named = Table::new(&table().columns);
        named.push_named([
            ("seconds", Value::Null),
            ("pages", 1234u64.into()),
            ("name", "a".into()),
            ("latency_ns", 1500.0.into()),
            ("hit_ratio", 0.5.into()),
        ]);
        assert_eq!(named.rows[0], table().rows[0]);
    }

    #[test]
    #[should_panic(expected = "the row has no pages")]
    fn a_named_row_without_a_column_is_refused() {
        let columns = &table().columns[..2];
        Table::new(columns).push_named([("name", "a".into()), ("page", 1u64.into())]);
    }

    #[test]
    #[should_panic(expected = "one value a column")]
    fn a_row_of_another_length_is_refused() {
        table().push(vec![Value::Null]);
    }
}
