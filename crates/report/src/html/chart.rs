//! Makes a chart from points, or a number if a chart would add nothing.
use crate::table::{Column, Style, show};
use crate::value::Value;
use serde::Serialize;

/// The quantity of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Label of the axis, with the unit if the values do not show it.
    pub label: String,
    /// Format of the values.
    pub style: Style,
}

impl Measure {
    /// A measure.
    pub fn new(label: impl Into<String>, style: Style) -> Measure {
        Measure { label: label.into(), style }
    }
}

impl From<&Column> for Measure {
    fn from(column: &Column) -> Self {
        Measure::new(column.heading, column.style)
    }
}

/// One value of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The series of the point: points of one series are one line, or bars of one colour.
    pub series: String,
    /// Position on the x axis: a number, or words.
    pub x: Value,
    /// The measured value.
    pub y: f64,
    /// The value to compare with, such as a paper's.
    pub paper: Option<f64>,
}

/// The drawing of a set of points.
#[derive(Clone, PartialEq, Debug)]
pub enum Drawn {
    /// A chart.
    Chart(Chart),
    /// Too few points for a chart.
    Number(Number),
}

/// A number shown on its own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Number {
    /// Name of the number.
    pub label: String,
    /// The number, formatted for people.
    pub shown: String,
    /// Its subject, or a value to compare with; may be empty.
    pub note: String,
}

impl Number {
    /// A number with its note.
    pub fn new(
        label: impl Into<String>,
        shown: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        Number { label: label.into(), shown: shown.into(), note: note.into() }
    }
}

/// A chart in the form that the page's script reads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    title: String,
    form: Form,
    x: Axis,
    y: Axis,
    /// Names of the positions on the x axis, if these are not numbers.
    labels: Vec<String>,
    /// The positions, ascending; each series has a value, or null, at each of them.
    places: Vec<f64>,
    series: Vec<Series>,
}

/// The form in which values are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    /// Points joined by lines.
    Lines,
    /// Separate points.
    Points,
    /// Bars side by side.
    Bars,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Axis {
    label: String,
    style: &'static str,
    /// Whether the axis is logarithmic at first.
    log: bool,
    /// Whether the axis can be logarithmic: all values are above zero.
    can_be_log: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Series {
    name: String,
    /// Index of its colour; the series to compare with has the same colour.
    colour: usize,
    /// Values stated by others, such as a paper, not measured here.
    is_paper: bool,
    /// The line on which both axes are equal.
    is_diagonal: bool,
    values: Vec<Option<f64>>,
}

/// Most series that bars can show side by side; more series are joined points.
const BAR_SERIES_MAX: usize = 6;
/// Ratio of the largest to the smallest x from which the axis is logarithmic at first: sizes that double.
const LOG_ACROSS: f64 = 8.0;
/// The same for the y axis.
const LOG_UP: f64 = 100.0;

/// Draws `points`, which may be in any order.
///
/// If all points are at one position of a numeric axis, there is a bar per series. If all values are equal, or there is
/// only one, the result is a number. An axis is logarithmic only if all its values are above zero.
pub fn draw(title: &str, x: &Measure, y: &Measure, mut points: Vec<Point>) -> Option<Drawn> {
    points.retain(|point| point.y.is_finite() && !point.x.is_null());
    let first = points.first()?.clone();
    if points.iter().all(|point| point.y == first.y && point.paper.is_none_or(|it| it == first.y)) {
        return Some(Drawn::Number(lone(title, x, y, &points)));
    }
    if points.iter().all(|point| point.x == first.x) && distinct_series(&points).len() == 1 {
        return Some(Drawn::Number(lone(title, x, y, &points)));
    }
    Some(Drawn::Chart(chart(title, x, y, points)))
}

/// A chart of points whose axes have the same quantity, with the line on which both are equal.
pub fn scatter(title: &str, x: &Measure, y: &Measure, points: &[Point]) -> Option<Chart> {
    let mut places: Vec<f64> = points.iter().filter_map(|point| number(&point.x)).collect();
    places.sort_by(f64::total_cmp);
    let names = distinct_series(points);
    let mut series: Vec<Series> = names
        .iter()
        .enumerate()
        .map(|(colour, name)| Series::new(name, colour, vec![None; places.len()]))
        .collect();
    let mut taken = vec![false; places.len()];
    for point in points {
        let Some(across) = number(&point.x) else { continue };
        // Several points may have the same x: each has an entry of its own.
        let free = |at: &usize| places[*at] == across && !taken[*at];
        let (Some(at), Some(of)) =
            ((0..places.len()).find(free), names.iter().position(|name| *name == point.series))
        else {
            continue;
        };
        taken[at] = true;
        series[of].values[at] = Some(point.y);
    }
    let diagonal = places.iter().map(|place| Some(*place)).collect();
    let diagonal = Series { is_diagonal: true, ..Series::new("equal", names.len(), diagonal) };
    let all = || places.iter().copied().chain(points.iter().map(|point| point.y));
    let (across, up) = (Axis::new(x, all, LOG_UP), Axis::new(y, all, LOG_UP));
    (places.len() > 1).then_some(Chart {
        title: title.to_owned(),
        form: Form::Points,
        x: across,
        y: up,
        labels: Vec::new(),
        series: std::iter::once(diagonal).chain(series).collect(),
        places,
    })
}

/// The number for points that all have the same value.
fn lone(title: &str, x: &Measure, y: &Measure, points: &[Point]) -> Number {
    let first = &points[0];
    let shown = |value: f64| show(&as_value(value, y.style), y.style);
    let mut notes = Vec::new();
    match points {
        [_] => {
            let words = [first.series.clone(), place_in_words(&first.x, x)];
            notes.extend(words.into_iter().filter(|words| !words.is_empty()));
        }
        _ => notes.push(format!("in all {} cases", points.len())),
    }
    notes.extend(first.paper.map(|paper| format!("paper: {}", shown(paper))));
    let label = if title.is_empty() { y.label.clone() } else { title.to_owned() };
    Number { label, shown: shown(first.y), note: notes.join("; ") }
}

fn place_in_words(place: &Value, x: &Measure) -> String {
    match place {
        Value::Text(text) => text.clone(),
        number => format!("{} {}", show(number, x.style), x.label),
    }
}

fn as_value(value: f64, style: Style) -> Value {
    match style {
        Style::Count if value >= 0.0 && value.fract() == 0.0 => Value::Count(value as u64),
        _ => Value::Real(value),
    }
}

fn chart(title: &str, x: &Measure, y: &Measure, mut points: Vec<Point>) -> Chart {
    let place = points[0].x.clone();
    let at_one_place = points.iter().all(|point| point.x == place);
    let mut across = x.clone();
    if at_one_place {
        // Put the series side by side.
        for point in &mut points {
            point.x = std::mem::take(&mut point.series).into();
        }
        across.label = place_in_words(&place, x);
    }
    let numeric = points.iter().all(|point| number(&point.x).is_some());
    let (labels, places) = if numeric { (Vec::new(), rising(&points)) } else { named(&points) };
    let place_of = |point: &Point| match number(&point.x) {
        Some(across) if numeric => places.iter().position(|place| *place == across),
        _ => labels.iter().position(|label| *label == point.x.plain()),
    };
    let mut series = Vec::new();
    for (colour, name) in distinct_series(&points).iter().enumerate() {
        let mut values = vec![None; places.len()];
        let mut paper = vec![None; places.len()];
        for point in points.iter().filter(|point| point.series == *name) {
            if let Some(at) = place_of(point) {
                (values[at], paper[at]) = (Some(point.y), point.paper);
            }
        }
        let name = if name.is_empty() { y.label.as_str() } else { name };
        series.push(Series::new(name, colour, values));
        if paper.iter().any(Option::is_some) {
            let name = format!("{name}, paper");
            series.push(Series { is_paper: true, ..Series::new(&name, colour, paper) });
        }
    }
    let form = match numeric {
        false if series.len() <= BAR_SERIES_MAX => Form::Bars,
        _ => Form::Lines,
    };
    let all = || points.iter().flat_map(|point| [Some(point.y), point.paper]).flatten();
    Chart {
        title: title.to_owned(),
        form,
        x: Axis::new(&across, || places.iter().copied(), LOG_ACROSS).on(numeric),
        y: Axis::new(y, all, LOG_UP),
        labels,
        places,
        series,
    }
}

impl Series {
    fn new(name: &str, colour: usize, values: Vec<Option<f64>>) -> Series {
        Series { name: name.to_owned(), colour, is_paper: false, is_diagonal: false, values }
    }
}

impl Axis {
    fn new<I: Iterator<Item = f64>>(of: &Measure, values: impl Fn() -> I, log_from: f64) -> Axis {
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let can_be_log = low > 0.0 && high > low;
        let log = can_be_log && high / low >= log_from;
        Axis { label: of.label.clone(), style: style_name(of.style), log, can_be_log }
    }

    /// An axis of names has no logarithmic form.
    fn on(self, numeric: bool) -> Axis {
        Axis { log: self.log && numeric, can_be_log: self.can_be_log && numeric, ..self }
    }
}

/// The name of a style in the page's script.
fn style_name(style: Style) -> &'static str {
    match style {
        Style::Percent => "share",
        Style::DurationNs => "ns",
        Style::Seconds => "seconds",
        Style::Bytes => "bytes",
        Style::Count => "count",
        Style::Text | Style::Decimals(_) | Style::Short | Style::Figures => "figures",
    }
}

/// The number in a cell, if it has one.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Real(real) if real.is_finite() => Some(*real),
        _ => None,
    }
}

fn rising(points: &[Point]) -> Vec<f64> {
    let mut places: Vec<f64> = points.iter().filter_map(|point| number(&point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn named(points: &[Point]) -> (Vec<String>, Vec<f64>) {
    let labels = distinct(points.iter().map(|point| point.x.plain()));
    let places = (0..labels.len()).map(|at| at as f64).collect();
    (labels, places)
}

fn distinct_series(points: &[Point]) -> Vec<String> {
    distinct(points.iter().map(|point| point.series.clone()))
}

/// The distinct texts, in the order of their first occurrence.
pub(super) fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
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

    fn point(series: &str, x: impl Into<Value>, y: f64) -> Point {
        Point { series: series.into(), x: x.into(), y, paper: None }
    }

    fn drawn(points: Vec<Point>) -> Drawn {
        let x = Measure::new("pages", Style::Count);
        draw("Misses", &x, &Measure::new("misses", Style::Count), points).unwrap()
    }

    fn charted(points: Vec<Point>) -> Chart {
        match drawn(points) {
            Drawn::Chart(chart) => chart,
            Drawn::Number(number) => panic!("{number:?}"),
        }
    }

    #[test]
    fn series_have_a_value_or_none_at_each_place() {
        let chart =
            charted(vec![point("b", 20.0, 1.0), point("a", 10.0, 2.0), point("b", 10.0, 3.0)]);
        assert_eq!((chart.places, chart.form), (vec![10.0, 20.0], Form::Lines));
        let series: Vec<_> = chart.series.into_iter().map(|it| (it.name, it.values)).collect();
        let expected =
            [("b".to_owned(), vec![Some(3.0), Some(1.0)]), ("a".to_owned(), vec![Some(2.0), None])];
        assert_eq!(series, expected);
    }

    #[test]
    fn one_value_is_a_number_and_so_is_the_same_one_everywhere() {
        let Drawn::Number(number) = drawn(vec![point("a", 1000u64, 1234.0)]) else { panic!() };
        assert_eq!((&*number.label, &*number.shown), ("Misses", "1,234"));
        assert_eq!(number.note, "a; 1,000 pages");
        let zeros = (1..5u64).map(|pages| point("a", pages, 0.0)).collect();
        let Drawn::Number(number) = drawn(zeros) else { panic!() };
        assert_eq!((&*number.shown, &*number.note), ("0", "in all 4 cases"));
        let nothing = draw(
            "",
            &Measure::new("", Style::Count),
            &Measure::new("", Style::Count),
            vec![point("a", 1u64, f64::NAN)],
        );
        assert_eq!(nothing, None);
    }

    #[test]
    fn at_one_place_the_series_stand_beside_each_other() {
        let chart = charted(vec![point("a", 100u64, 1.0), point("b", 100u64, 2.0)]);
        assert_eq!(
            (chart.form, &chart.labels[..]),
            (Form::Bars, &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!((chart.series.len(), &*chart.x.label), (1, "100 pages"));
        assert_eq!(chart.series[0].values, [Some(1.0), Some(2.0)]);
    }

    #[test]
    fn an_axis_is_logarithmic_only_where_everything_is_above_zero() {
        let up = |ys: &[f64]| {
            let points = ys.iter().enumerate().map(|(at, y)| point("a", at as u64, *y));
            let Chart { x, y, .. } = charted(points.collect());
            assert!(!x.log && !x.can_be_log, "a place is zero");
            (y.log, y.can_be_log)
        };
        assert_eq!(up(&[1.0, 1000.0]), (true, true));
        assert_eq!(up(&[1.0, 2.0]), (false, true));
        assert_eq!(up(&[0.0, 1000.0]), (false, false));
        assert_eq!(up(&[-1.0, 1000.0]), (false, false));
    }

    #[test]
    fn what_a_paper_says_is_a_series_of_the_same_colour() {
        let with = |x: u64, y, paper| Point { paper, ..point("a", x, y) };
        let chart =
            charted(vec![with(1, 5.0, Some(6.0)), with(2, 7.0, None), point("b", 1u64, 1.0)]);
        let told: Vec<_> =
            chart.series.iter().map(|it| (&*it.name, it.colour, it.is_paper)).collect();
        assert_eq!(told, [("a", 0, false), ("a, paper", 0, true), ("b", 1, false)]);
        assert_eq!(chart.series[1].values, [Some(6.0), None]);
    }

    #[test]
    fn a_scatter_has_its_diagonal_and_every_point() {
        let points = [point("a", 5.0, 6.0), point("b", 5.0, 4.0), point("a", 1.0, 1.0)];
        let measure = Measure::new("IOPS", Style::Figures);
        let chart = scatter("", &measure, &measure, &points).unwrap();
        assert_eq!(chart.places, [1.0, 5.0, 5.0]);
        assert!(chart.series[0].is_diagonal);
        assert_eq!(chart.series[0].values, [Some(1.0), Some(5.0), Some(5.0)]);
        assert_eq!(chart.series[1].values, [Some(1.0), Some(6.0), None]);
        assert_eq!(chart.series[2].values, [None, None, Some(4.0)]);
    }
}
