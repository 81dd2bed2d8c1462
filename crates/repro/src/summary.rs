//! How many of a paper's numbers and shapes are met.
use std::fmt;
use std::ops::AddAssign;

use super::{Row, Shape};

/// Range of ours over the paper's in which a number counts as met.
const HALF_TO_DOUBLE: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Numbers and shapes, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Numbers that the paper states and that were not used to set a parameter
    /// ([`Row::is_comparable`]).
    pub figures: usize,
    /// Those of them for which ours is between half and double.
    pub within: usize,
    /// Numbers that the paper states and that were used to set a parameter; not in `figures`.
    pub calibrated: usize,
    /// Shapes whose numbers were measured.
    pub shapes: usize,
    /// Those of them that hold.
    pub hold: usize,
}

impl Summary {
    /// Counts an experiment's rows and shapes.
    pub fn of(rows: &[Row], shapes: &[Shape]) -> Summary {
        let ratios = || rows.iter().filter(|row| row.is_comparable()).filter_map(Row::ratio);
        let checked: Vec<bool> =
            shapes.iter().filter_map(|shape| Some(shape.check(rows)?.1)).collect();
        Summary {
            figures: ratios().count(),
            within: ratios().filter(|ratio| HALF_TO_DOUBLE.contains(ratio)).count(),
            calibrated: rows.iter().filter(|row| row.calibrated && row.paper.is_some()).count(),
            shapes: checked.len(),
            hold: checked.iter().filter(|holds| **holds).count(),
        }
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, more: Summary) {
        self.figures += more.figures;
        self.within += more.within;
        self.calibrated += more.calibrated;
        self.shapes += more.shapes;
        self.hold += more.hold;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { figures, within, shapes, hold, .. } = self;
        write!(
            f,
            "{figures} figures, {within} within half to double, {hold} of {shapes} shapes hold"
        )
    }
}
