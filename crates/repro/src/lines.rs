//! Lines of a figure and their comparison, for [`Shape`](super::Shape)s.
use super::Rows;

/// A drawing: figure, and metric.
pub(super) type Drawing<'a> = (&'a str, &'a str);

/// The numbers of one series of a drawing, along it; in one `panel` if it is given.
pub(super) fn line(
    rows: &Rows<'_>,
    drawing: Drawing<'_>,
    panel: Option<&str>,
    series: &str,
) -> Option<Vec<f64>> {
    let (figure, metric) = drawing;
    rows.all(figure, |row| {
        let is_there = |place: &super::Place| {
            place.series == series && panel.is_none_or(|panel| place.panel == panel)
        };
        row.metric == metric && row.place.as_ref().is_some_and(is_there)
    })
}

/// One series over another, at each place along the drawing.
pub(super) fn over(
    rows: &Rows<'_>,
    drawing: Drawing<'_>,
    series: &str,
    other: &str,
) -> Option<Vec<f64>> {
    let (ours, theirs) = (line(rows, drawing, None, series)?, line(rows, drawing, None, other)?);
    let same = ours.len() == theirs.len();
    same.then(|| ours.iter().zip(theirs).map(|(our, their)| our / their).collect())
}

/// Each of `others` over each of `ours`.
pub(super) fn all_over(
    rows: &Rows<'_>,
    drawing: Drawing<'_>,
    others: &[&str],
    ours: &[&str],
) -> Option<Vec<f64>> {
    let mut numbers = Vec::new();
    for other in others {
        for our in ours {
            numbers.extend(over(rows, drawing, other, our)?);
        }
    }
    Some(numbers)
}

/// The minimum of several series, at each place along the drawing.
pub(super) fn least(
    rows: &Rows<'_>,
    drawing: Drawing<'_>,
    panel: Option<&str>,
    series: &[&str],
) -> Option<Vec<f64>> {
    let mut least = line(rows, drawing, panel, series.first()?)?;
    for other in series {
        let other = line(rows, drawing, panel, other)?;
        least.iter_mut().zip(other).for_each(|(least, other)| *least = least.min(other));
    }
    Some(least)
}

/// Each number over the previous one.
pub(super) fn steps(numbers: &[f64]) -> Vec<f64> {
    numbers.windows(2).map(|pair| pair[1] / pair[0]).collect()
}
