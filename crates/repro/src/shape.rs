//! What a paper says or draws of its figures that is no number: who is ahead of whom, what rises with what. Each is a sentence
//! and a relation among rows, so that it is checked on whatever scale was measured, by `tantalum repro` as by the tests.
use std::fmt;

use super::Row;

/// One thing that a paper says of its figures.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Figure or table of the paper, as rows call it.
    pub figure: &'static str,
    /// What is said, as a sentence without a full stop; one of its kind among an experiment's.
    pub claim: &'static str,
    /// What each of the measured numbers must keep to for that.
    pub expected: Relation,
    /// The numbers, from the rows; `None` where there are no rows of these, as at a smaller scale or after an interruption.
    pub measure: fn(&Rows<'_>) -> Option<Vec<f64>>,
}

/// What numbers must keep to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// All of them are larger.
    Above(f64),
    /// All of them are smaller.
    Below(f64),
    /// All of them are between the two, or one of these.
    Within(f64, f64),
    /// Each is larger than the one before.
    Rising,
    /// Each is smaller than the one before.
    Falling,
}

impl Relation {
    /// Whether `numbers`, of which there is at least one, keep to it.
    pub fn holds(self, numbers: &[f64]) -> bool {
        let pairs = || numbers.windows(2);
        !numbers.is_empty()
            && match self {
                Relation::Above(least) => numbers.iter().all(|number| *number > least),
                Relation::Below(most) => numbers.iter().all(|number| *number < most),
                Relation::Within(least, most) => {
                    numbers.iter().all(|number| (least..=most).contains(number))
                }
                Relation::Rising => pairs().all(|pair| pair[0] < pair[1]),
                Relation::Falling => pairs().all(|pair| pair[0] > pair[1]),
            }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Relation::Above(least) => write!(f, "above {least}"),
            Relation::Below(most) => write!(f, "below {most}"),
            Relation::Within(least, most) => write!(f, "{least} to {most}"),
            Relation::Rising => f.write_str("rising"),
            Relation::Falling => f.write_str("falling"),
        }
    }
}

impl Shape {
    /// The numbers, and whether they keep to what is said; `None` where they were not measured.
    pub fn check(&self, rows: &[Row]) -> Option<(Vec<f64>, bool)> {
        let numbers = (self.measure)(&Rows(rows))?;
        let holds = self.expected.holds(&numbers);
        Some((numbers, holds))
    }
}

/// Rows by their names.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(pub &'a [Row]);

impl Rows<'_> {
    /// The number of one case of a figure; the first where several metrics are of that case.
    pub fn of(&self, figure: &str, case: &str) -> Option<f64> {
        let found = self.0.iter().find(|row| row.figure == figure && row.case == case);
        found.map(|row| row.measured)
    }

    /// The number of one metric of a case.
    pub fn metric(&self, figure: &str, case: &str, metric: &str) -> Option<f64> {
        let is_it = |row: &&Row| row.figure == figure && row.case == case && row.metric == metric;
        self.0.iter().find(is_it).map(|row| row.measured)
    }

    /// The numbers of `figure` whose row is as `is_one` says, in their order; `None` where there is none.
    pub fn all(&self, figure: &str, is_one: impl Fn(&Row) -> bool) -> Option<Vec<f64>> {
        let of = self.0.iter().filter(|row| row.figure == figure && is_one(row));
        let numbers: Vec<f64> = of.map(|row| row.measured).collect();
        (!numbers.is_empty()).then_some(numbers)
    }

    /// One number over another of the same figure.
    pub fn over(&self, figure: &str, case: &str, other: &str) -> Option<f64> {
        Some(self.of(figure, case)? / self.of(figure, other)?)
    }
}

/// Checks `shapes` on the rows of a small scale: each holds, but for those whose claim is among `but`, which then must not
/// hold, or are not measured there.
#[cfg(test)]
pub(crate) fn assert_shapes(shapes: &[Shape], rows: &[Row], but: &[&str]) {
    for claim in but {
        assert!(shapes.iter().any(|shape| shape.claim == *claim), "no shape says: {claim}");
    }
    let mut wrong = Vec::new();
    for shape in shapes {
        let checked = shape.check(rows);
        let holds = checked.as_ref().is_some_and(|(_, holds)| *holds);
        if holds == but.contains(&shape.claim) {
            let Shape { figure, claim, expected, .. } = shape;
            wrong.push(format!("{figure}: {claim} ({expected}): {checked:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EXPERIMENTS, Summary};

    #[test]
    fn relations_hold_for_all_numbers_or_not_at_all() {
        assert!(
            Relation::Above(1.0).holds(&[1.1, 2.0]) && !Relation::Above(1.0).holds(&[2.0, 1.0])
        );
        assert!(Relation::Below(1.0).holds(&[0.5]) && !Relation::Below(1.0).holds(&[0.5, 1.0]));
        assert!(Relation::Within(1.0, 2.0).holds(&[1.0, 2.0]));
        assert!(!Relation::Within(1.0, 2.0).holds(&[1.0, 2.1]));
        assert!(Relation::Rising.holds(&[1.0, 2.0, 3.0]) && !Relation::Rising.holds(&[1.0, 1.0]));
        assert!(Relation::Falling.holds(&[3.0, 2.0]) && !Relation::Falling.holds(&[3.0, 2.0, 2.5]));
        assert!(!Relation::Above(0.0).holds(&[]) && !Relation::Above(0.0).holds(&[f64::NAN]));
    }

    fn row(case: &str, paper: Option<f64>, measured: f64) -> Row {
        Row::new("Figure 1", case, ("rate", "IOPS"), paper, measured)
    }

    /// What is stated and free counts, what is calibrated is counted apart, a bound and a picture are no number.
    #[test]
    fn a_summary_counts_what_says_something() {
        let mut rows = vec![
            row("half", Some(2.0), 1.0),
            row("double", Some(1.0), 2.0),
            row("less than half", Some(2.0), 0.99),
            row("another sign", Some(-2.0), 2.0),
            row("a picture", None, 5.0),
            row("a bound", Some(1.0), 1.0).bound(),
        ];
        rows.push(Row { calibrated: true, ..row("set", Some(1.0), 1.0) });
        let shapes = [
            Shape {
                figure: "Figure 1",
                claim: "double is ahead of half",
                expected: Relation::Above(1.0),
                measure: |rows| Some(vec![rows.over("Figure 1", "double", "half")?]),
            },
            Shape {
                figure: "Figure 1",
                claim: "it falls",
                expected: Relation::Falling,
                measure: |rows| rows.all("Figure 1", |row| row.paper.is_some()),
            },
            Shape {
                figure: "Figure 2",
                claim: "what nobody measured",
                expected: Relation::Rising,
                measure: |rows| Some(vec![rows.of("Figure 2", "half")?]),
            },
        ];
        let summary = Summary::of(&rows, &shapes);
        let expected = Summary { figures: 4, within: 2, calibrated: 1, shapes: 2, hold: 1 };
        assert_eq!(summary, expected);
        let text = "4 figures, 2 within half to double, 1 of 2 shapes hold";
        assert_eq!(summary.to_string(), text);
        assert_shapes(&shapes, &rows, &["it falls", "what nobody measured"]);
    }

    #[test]
    fn no_two_shapes_of_an_experiment_say_the_same() {
        for experiment in EXPERIMENTS {
            let mut claims: Vec<&str> = experiment.shapes.iter().map(|shape| shape.claim).collect();
            claims.sort_unstable();
            assert!(claims.is_sorted_by(|a, b| a < b), "{}: {claims:#?}", experiment.name);
        }
    }
}
