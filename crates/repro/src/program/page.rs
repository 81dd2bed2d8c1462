//! The page of `tantalum repro`: each figure drawn as in the paper, with the paper's numbers beside the
//! measured ones.
use tantalum_report::html::{Drawn, Measure, Number, Point, draw, scatter};
use tantalum_report::{Column, Page, Section, Style, Table, Value, number};
use tantalum_repro::{Place, Row, X};

/// Minimum number of a paper's numbers in one unit for a drawing of ours against these.
const SCATTER_MIN: usize = 8;

/// The page of all rows: it begins with `paragraphs`, and has the `sections` of their figures.
pub fn page(
    title: String,
    paragraphs: Vec<String>,
    rows: &[Row],
    mut sections: Vec<Section>,
) -> Page {
    let against = against_paper(rows);
    if !against.drawn.is_empty() {
        sections.push(against);
    }
    let page = Page { title, verdict: verdict(rows), paragraphs, sections, ..Page::default() };
    Page { numbers: numbers(rows), ..page }
}

fn comparable(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.is_comparable())
}

fn within(rows: &[Row], share: f64) -> usize {
    let near = |row: &&Row| row.ratio().is_some_and(|ratio| (ratio - 1.0).abs() <= share);
    comparable(rows).filter(near).count()
}

fn verdict(rows: &[Row]) -> String {
    let stated = comparable(rows).count();
    let all = number::thousands(rows.len() as u64);
    if stated == 0 {
        return format!("{all} numbers measured; the source states none of them as a number");
    }
    format!(
        "of {stated} that the source states as numbers, {} are met within 10 %, {} within 25 %",
        within(rows, 0.1),
        within(rows, 0.25),
    )
}

fn numbers(rows: &[Row]) -> Vec<Number> {
    let calibrated = rows.iter().filter(|row| row.calibrated).count();
    let mut numbers =
        vec![Number::new("Numbers measured", number::thousands(rows.len() as u64), "")];
    if calibrated > 0 {
        let note = "set a parameter, so that agreement shows nothing";
        numbers.push(Number::new("Numbers calibrated", calibrated.to_string(), note));
    }
    numbers
}

/// One section per figure, in the order of the rows; `title` is that of the experiment if there are several.
pub fn sections(title: Option<&str>, rows: &[Row]) -> Vec<Section> {
    let mut figures: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !row.figure.is_empty()) {
        if !figures.contains(&row.figure) {
            figures.push(row.figure);
        }
    }
    let section = |figure: &&str| {
        let of: Vec<&Row> = rows.iter().filter(|row| row.figure == *figure).collect();
        let heading = title.map_or_else(|| sentence(figure), |title| format!("{figure}: {title}"));
        Section { drawn: drawings(&of), ..Section::new(heading, table(&of)) }
    };
    figures.iter().map(section).collect()
}

/// A drawing for each metric and panel; a row without a place becomes a number.
fn drawings(rows: &[&Row]) -> Vec<Drawn> {
    let mut kinds: Vec<(&str, &str, &str, &str)> = Vec::new();
    let mut drawn = Vec::new();
    for row in rows {
        match &row.place {
            Some(place) => {
                let kind = (row.metric, row.unit, place.panel.as_str(), place.axis);
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            None => drawn.push(Drawn::Number(lone(row))),
        }
    }
    let charts = kinds.iter().filter_map(|kind| {
        let (metric, unit, panel, axis) = *kind;
        let placed = rows.iter().filter_map(|row| Some((*row, row.place.as_ref()?)));
        let of = placed
            .filter(|(row, place)| (row.metric, row.unit, &*place.panel, place.axis) == *kind);
        let points: Vec<Point> = of.map(|(row, place)| point(row, place)).collect();
        let title = match panel {
            "" => sentence(metric),
            panel => format!("{}, {panel}", sentence(metric)),
        };
        let whole = |point: &Point| matches!(&point.x, Value::Real(x) if x.fract() == 0.0);
        let style = if points.iter().all(whole) { Style::Count } else { Style::Figures };
        let up = Measure::new(unit, Style::Figures);
        draw(&title, &Measure::new(axis, style), &up, points)
    });
    drawn.extend(charts);
    drawn
}

fn point(row: &Row, place: &Place) -> Point {
    let (series, x) = (place.series.clone(), value_of(&place.x));
    Point { series, x, y: row.measured, paper: row.paper }
}

/// `value` rounded to this many significant digits.
pub fn rounded(value: f64, digits: i32) -> Value {
    let scale = 10f64.powi(digits - 1 - value.abs().max(1e-9).log10().floor() as i32);
    Value::rounded(value, scale)
}

/// A place along an axis as a cell.
pub fn value_of(x: &X) -> Value {
    match x {
        X::Number(number) => Value::Real(*number),
        X::Words(words) => words.as_str().into(),
    }
}

fn lone(row: &Row) -> Number {
    let shown = |value: f64| format!("{} {}", number::figures(value), row.unit);
    let paper = row.paper.map(|paper| format!("; paper: {}", shown(paper)));
    let note = format!("{}{}", row.case, paper.unwrap_or_default());
    Number::new(sentence(row.metric), shown(row.measured), note)
}

/// The rows of a figure.
fn table(rows: &[&Row]) -> Table {
    let mut table = Table::new(&[
        Column::new("case", "case", Style::Text),
        Column::new("metric", "metric", Style::Text),
        Column::new("unit", "unit", Style::Text),
        Column::new("paper", "paper", Style::Figures),
        Column::new("measured", "measured", Style::Figures),
        Column::new("ratio", "measured/paper", Style::Decimals(3)),
        Column::new("calibrated", "calibrated", Style::Text),
    ]);
    for row in rows {
        let calibrated = if row.calibrated { "yes".into() } else { Value::Null };
        table.push(vec![
            row.case.as_str().into(),
            row.metric.into(),
            row.unit.into(),
            row.paper.into(),
            row.measured.into(),
            row.ratio().into(),
            calibrated,
        ]);
    }
    table
}

/// Our numbers over the paper's, if it states many numbers of one unit.
fn against_paper(rows: &[Row]) -> Section {
    let mut units: Vec<&str> = Vec::new();
    for row in comparable(rows) {
        if !units.contains(&row.unit) {
            units.push(row.unit);
        }
    }
    let drawn = units.iter().filter_map(|unit| {
        let of = comparable(rows).filter(|row| row.unit == *unit);
        let points: Vec<Point> = of
            .map(|row| Point {
                series: row.figure.to_owned(),
                x: row.paper.into(),
                y: row.measured,
                paper: None,
            })
            .collect();
        let axis = |who: &str| Measure::new(format!("{who}, {unit}"), Style::Figures);
        let enough = points.len() >= SCATTER_MIN;
        enough.then(|| scatter(unit, &axis("paper"), &axis("measured"), &points)).flatten()
    });
    Section {
        paragraphs: vec![
            "Each point is a number that the paper states: its own value across, ours up. On the dashed diagonal \
             the two are equal."
                .to_owned(),
        ],
        drawn: drawn.map(Drawn::Chart).collect(),
        ..Section::new("Ours against the paper", Table::new(&[]))
    }
}

/// The words with a capital first letter.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
