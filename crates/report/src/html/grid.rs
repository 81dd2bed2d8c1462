//! Tables that fit a page: values common to all rows are shown above the table. A table that is still too wide is
//! turned or split.
use crate::table::{Column, Style, Table, show};
use crate::value::Value;
use serde::Serialize;

/// A table in the form that the page shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Grid {
    /// Heading and value of the columns whose value is the same in all rows; for a single row, these are all columns.
    common: Vec<(&'static str, String)>,
    /// The other columns, split so that each sheet is at most as wide as the page.
    sheets: Vec<Sheet>,
    /// Number of rows of each sheet.
    rows: usize,
}

/// Some of the columns of all rows.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Sheet {
    headings: Vec<Heading>,
    rows: Vec<Vec<Cell>>,
    /// One line per column, one column per row of the table; it cannot be sorted.
    is_turned: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Heading {
    key: &'static str,
    text: String,
    is_text: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Cell {
    /// The value to sort by.
    value: String,
    shown: String,
    is_text: bool,
    /// The text is broken into lines.
    is_long: bool,
}

/// Width of a page of 1,280 pixels without its margins, and the width of text; the test of the pages in a browser shows
/// that the text fits.
const PAGE_PX: usize = 1_170;
const CHARACTER_PX: usize = 8;
const PADDING_PX: usize = 18;
/// Length from which text is broken into lines, in characters.
const WORDS_CHARACTERS_MAX: usize = 44;
/// Most rows that can stand side by side if their columns cannot.
const TURNED_ROWS_MAX: usize = 6;
/// Columns that identify rows although they are numbers.
const SIZES: [&str; 2] = ["cache_pages", "tier_pages"];

impl Grid {
    /// Lays `table` out.
    pub fn of(table: &Table) -> Grid {
        let (columns, rows) = (table.columns(), table.rows());
        let Some(first) = rows.first() else { return Grid::default() };
        let cell = |row: &[Value], at: usize| show(&row[at], columns[at].style);
        let all = 0..columns.len();
        let (common, varying): (Vec<usize>, Vec<usize>) =
            all.partition(|at| rows.iter().all(|row| row[*at] == first[*at]));
        let known = common.into_iter().filter(|at| !first[*at].is_null());
        let common = known.map(|at| (columns[at].heading, cell(first, at))).collect();
        let sheets = if varying.is_empty() { Vec::new() } else { sheets(table, varying) };
        Grid { common, sheets, rows: rows.len() }
    }
}

fn sheets(table: &Table, varying: Vec<usize>) -> Vec<Sheet> {
    let columns = table.columns();
    let widths: Vec<usize> = (0..columns.len()).map(|at| width_px(table, at)).collect();
    let width = |some: &[usize]| some.iter().map(|at| widths[*at]).sum::<usize>();
    if width(&varying) <= PAGE_PX {
        return vec![upright(table, &varying)];
    }
    if table.rows().len() <= TURNED_ROWS_MAX {
        return vec![turned(table, &varying)];
    }
    let is_name =
        |at: &usize| columns[*at].style == Style::Text || SIZES.contains(&columns[*at].key);
    let (names, rest): (Vec<usize>, Vec<usize>) = varying.into_iter().partition(is_name);
    let mut parts = vec![names.clone()];
    for at in rest {
        let part = parts.last_mut().filter(|part| width(part) + widths[at] <= PAGE_PX);
        match part {
            Some(part) => part.push(at),
            None => parts.push(names.iter().copied().chain([at]).collect()),
        }
    }
    parts.iter().map(|part| upright(table, part)).collect()
}

/// The width of a column: that of its widest cell, or of the longest word of its heading.
fn width_px(table: &Table, at: usize) -> usize {
    let Column { heading, style, .. } = &table.columns()[at];
    let longest = table.rows().iter().map(|row| show(&row[at], *style).chars().count()).max();
    let longest = longest.unwrap_or(0).min(WORDS_CHARACTERS_MAX);
    // A sortable heading has an arrow at its end.
    let word = heading.split(' ').map(|word| word.chars().count() + 2).max().unwrap_or(0);
    longest.max(word) * CHARACTER_PX + PADDING_PX
}

fn heading(column: &Column) -> Heading {
    Heading {
        key: column.key,
        text: column.heading.to_owned(),
        is_text: column.style == Style::Text,
    }
}

fn cell(row: &[Value], at: usize, columns: &[Column]) -> Cell {
    let shown = show(&row[at], columns[at].style);
    Cell { is_text: columns[at].style == Style::Text, ..Cell::new(row[at].plain(), shown) }
}

impl Cell {
    fn new(value: String, shown: String) -> Cell {
        let is_long = shown.chars().count() > WORDS_CHARACTERS_MAX;
        Cell { value, shown, is_text: true, is_long }
    }
}

fn upright(table: &Table, part: &[usize]) -> Sheet {
    let columns = table.columns();
    let row = |row: &Vec<Value>| part.iter().map(|at| cell(row, *at, columns)).collect();
    Sheet {
        headings: part.iter().map(|at| heading(&columns[*at])).collect(),
        rows: table.rows().iter().map(row).collect(),
        is_turned: false,
    }
}

/// A turned sheet: the first column has the headings, and each row of the table becomes a column.
fn turned(table: &Table, part: &[usize]) -> Sheet {
    let columns = table.columns();
    let line = |at: &usize| {
        let heading = Cell::new(columns[*at].key.to_owned(), columns[*at].heading.to_owned());
        let cells = table.rows().iter().map(|row| cell(row, *at, columns));
        std::iter::once(heading).chain(cells).collect::<Vec<Cell>>()
    };
    let (top, rest) = part.split_first().expect("something varies");
    let top = line(top);
    let headings =
        top.into_iter().map(|cell| Heading { key: "", text: cell.shown, is_text: cell.is_text });
    Sheet { headings: headings.collect(), rows: rest.iter().map(line).collect(), is_turned: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::new("trace", "trace", Style::Text),
        Column::new("policy", "policy", Style::Text),
        Column::new("pages", "pages", Style::Count),
    ];

    fn table(rows: &[[&str; 2]]) -> Table {
        let mut table = Table::new(&COLUMNS);
        for (pages, [trace, policy]) in (1000u64..).zip(rows) {
            table.push(vec![(*trace).into(), (*policy).into(), pages.into()]);
        }
        table
    }

    fn wide(rows: u64) -> Table {
        let mut columns = vec![COLUMNS[1].clone()];
        columns.resize(21, Column::new("n", "a number of so many", Style::Count));
        let mut table = Table::new(&columns);
        for row in 0..rows {
            let mut cells = vec![Value::from(format!("policy {row}"))];
            cells.extend((0..20).map(|at| Value::from(row + (at << 30))));
            table.push(cells);
        }
        table
    }

    #[test]
    fn what_all_rows_have_stands_above_them() {
        let grid = Grid::of(&table(&[["t", "lru"], ["t", "opt"]]));
        assert_eq!(grid.common, [("trace", "t".to_owned())]);
        let [sheet] = &grid.sheets[..] else { panic!("{grid:?}") };
        let keys: Vec<_> = sheet.headings.iter().map(|heading| heading.key).collect();
        assert_eq!((keys, sheet.is_turned), (vec!["policy", "pages"], false));
        assert_eq!((&*sheet.rows[1][1].value, &*sheet.rows[1][1].shown), ("1001", "1,001"));
        let one = Grid::of(&table(&[["t", "lru"]]));
        assert!(one.common.len() == 3 && one.sheets.is_empty(), "a row has no table");
        assert_eq!(Grid::of(&table(&[])), Grid::default());
    }

    #[test]
    fn a_few_rows_too_wide_are_turned() {
        let grid = Grid::of(&wide(3));
        let [sheet] = &grid.sheets[..] else { panic!("{grid:?}") };
        assert!(sheet.is_turned && sheet.rows.len() == 20);
        let top: Vec<_> = sheet.headings.iter().map(|heading| &*heading.text).collect();
        assert_eq!(top, ["policy", "policy 0", "policy 1", "policy 2"]);
        assert_eq!(
            sheet.rows[0][1..].iter().map(|cell| &*cell.shown).collect::<Vec<_>>(),
            ["0", "1", "2"]
        );
    }

    #[test]
    fn many_rows_too_wide_are_taken_apart_and_keep_their_names() {
        let table = wide(30);
        let grid = Grid::of(&table);
        assert!(grid.sheets.len() > 1);
        let numbers: usize = grid.sheets.iter().map(|sheet| sheet.headings.len() - 1).sum();
        assert_eq!(numbers, 20, "each once");
        for sheet in &grid.sheets {
            assert!(sheet.headings[0].key == "policy" && sheet.rows.len() == 30);
        }
    }
}
