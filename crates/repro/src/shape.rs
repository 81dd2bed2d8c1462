//! Statements or drawings of a paper about its figures that are not numbers: which is ahead of which, what rises with what.
//! Each is a sentence and a relation among rows, so that `tantalum repro` and the tests check it at any scale.
use std::fmt;

use super::Row;

/// One statement of a paper about its figures.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Figure or table of the paper, by its name in rows.
    pub figure: &'static str,
    /// The statement, as a sentence without a full stop; unique within an experiment.
    pub claim: &'static str,
    /// The relation that each of the measured numbers must satisfy.
    pub expected: Relation,
    /// The numbers, from the rows; `None` if the rows are missing, as at a smaller scale or after an interruption.
    pub measure: fn(&Rows<'_>) -> Option<Vec<f64>>,
}

/// A relation that numbers must satisfy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// All of them are larger.
    Above(f64),
    /// All of them are smaller.
    Below(f64),
    /// All of them are between the two, inclusive.
    Within(f64, f64),
    /// Each is larger than the previous one.
    Rising,
    /// Each is smaller than the previous one.
    Falling,
}

impl Relation {
    /// Whether `numbers`, of which there must be at least one, satisfy it.
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

impl Relation {
    /// Its name, and the bounds that the numbers must be above and below, as far as it has them.
    pub fn parts(self) -> (&'static str, Option<f64>, Option<f64>) {
        match self {
            Relation::Above(least) => ("above", Some(least), None),
            Relation::Below(most) => ("below", None, Some(most)),
            Relation::Within(least, most) => ("within", Some(least), Some(most)),
            Relation::Rising => ("rising", None, None),
            Relation::Falling => ("falling", None, None),
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
    /// The numbers, and whether they satisfy the relation; `None` if they were not measured.
    pub fn check(&self, rows: &[Row]) -> Option<(Vec<f64>, bool)> {
        let numbers = (self.measure)(&Rows(rows))?;
        let holds = self.expected.holds(&numbers);
        Some((numbers, holds))
    }
}

/// Rows, looked up by their names.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(pub &'a [Row]);

impl Rows<'_> {
    /// The number of one case of a figure; the first one if the case has several metrics.
    pub fn of(&self, figure: &str, case: &str) -> Option<f64> {
        let found = self.0.iter().find(|row| row.figure == figure && row.case == case);
        found.map(|row| row.measured)
    }

    /// The number of one metric of a case.
    pub fn metric(&self, figure: &str, case: &str, metric: &str) -> Option<f64> {
        let is_it = |row: &&Row| row.figure == figure && row.case == case && row.metric == metric;
        self.0.iter().find(is_it).map(|row| row.measured)
    }

    /// The numbers of `figure` whose row `is_one` selects, in order; `None` if there are none.
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

/// A shape that differs from the known result.
#[derive(Clone, Debug, PartialEq)]
pub struct Surprise {
    /// Its figure.
    pub figure: &'static str,
    /// Its claim.
    pub claim: &'static str,
    /// The difference, as the end of a sentence.
    pub why: String,
}

/// Those of `shapes` for which `rows` differ from the known results. Each must hold, except those whose claim is in `not_met`.
/// These must not hold, or not be measured, so that the list stays up to date.
pub fn surprises(shapes: &[Shape], rows: &[Row], not_met: &[&str]) -> Vec<Surprise> {
    let surprise = |shape: &Shape| {
        let listed = not_met.contains(&shape.claim);
        let why = match (shape.check(rows), listed) {
            (Some((_, true)), false) | (Some((_, false)) | None, true) => return None,
            (Some((_, true)), true) => {
                "holds, though it is listed as one that does not at this scale".to_owned()
            }
            (Some((numbers, false)), false) => {
                format!("does not hold: expected {}, measured {numbers:.3?}", shape.expected)
            }
            (None, false) => "was not measured".to_owned(),
        };
        Some(Surprise { figure: shape.figure, claim: shape.claim, why })
    };
    shapes.iter().filter_map(surprise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;

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

    /// Stated and free numbers count, calibrated ones are counted separately, a bound or a drawing is not a number.
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
        known_and_unknown(&shapes, &rows);
    }

    /// Listed shapes must not hold, and all others must hold.
    fn known_and_unknown(shapes: &[Shape], rows: &[Row]) {
        let found = |not_met: &[&str]| -> Vec<(&str, String)> {
            let found = surprises(shapes, rows, not_met);
            found.into_iter().map(|surprise| (surprise.claim, surprise.why)).collect()
        };
        assert_eq!(found(&["it falls", "what nobody measured"]), []);
        let [(falls, fell), (nobody, missing)] = &found(&[])[..] else { panic!("two differ") };
        assert_eq!((*falls, *nobody), ("it falls", "what nobody measured"));
        assert!(fell.starts_with("does not hold: expected falling, measured [1.0"), "{fell}");
        assert_eq!(missing, "was not measured");
        let all = ["it falls", "what nobody measured", "double is ahead of half"];
        let [(holds, why)] = &found(&all)[..] else { panic!("one holds") };
        assert_eq!(*holds, "double is ahead of half");
        assert!(why.starts_with("holds, though"), "{why}");
    }
}
