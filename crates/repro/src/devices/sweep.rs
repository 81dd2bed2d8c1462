//! The MTRON's free parameters, one after the other: compared with its data sheet, and with figure 4.2's gains of buffer policies on
//! it, which were not used to set any of them.
use tantalum_base::Result;

use super::super::dissertation::{Gains, gains_on};
use super::super::{Progress, Row, Scale};
use super::{FIGURES, measure};

const FIGURE: &str = "MTRON, free parameters";
/// Section 4.2.1: CFDC's "maximum performance gain of 22% over CFLRU on SSD1".
const GAIN_MAX: f64 = 22.0;

/// The differences from the profile, which has 16 logs of BAST, 16 pages of a block in each plane, and 4 channels of 2 packages.
const POINTS: [&str; 15] = [
    "logs=16",
    "logs=1",
    "logs=4",
    "logs=64",
    "logs=256",
    "block=8",
    "block=32",
    "packages=1",
    "packages=4",
    "packages=4,block=8,logs=64",
    "channels=2",
    "channels=8",
    // With more logs all random writes of the small scale would fit into them.
    "layer=fast,logs=1",
    "layer=fast,logs=4",
    "layer=block-map",
];

/// Measures every point.
pub(super) fn mtron(
    scale: Scale,
    seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    for point in POINTS {
        progress(&format!("mtron, {point}"));
        for figure in FIGURES.iter().filter(|figure| figure.device == "mtron") {
            let per_second = measure(figure, &format!(",{point}"), scale, seed)?;
            let (unit, measured) = figure.in_its_unit(per_second);
            let what = (figure.metric, unit);
            let row = Row::new(FIGURE, format!("mtron, {point}"), what, figure.published, measured);
            let row = row.at("", "", ("parameters", point));
            // The profile's parameters were set by it, and the other points are meant to differ.
            rows.push(Row { calibrated: figure.calibrated, ..row });
        }
        let gains = gains_on(&format!("mtron:{point}"), scale, seed)?;
        rows.extend(beside_bounds(point, &gains));
    }
    Ok(())
}

/// The paper states only upper bounds of the gains.
fn beside_bounds(point: &str, gains: &Gains) -> [Row; 2] {
    let row = |case: &str, paper, metric, measured| {
        let case = format!("mtron, {point}, {case}");
        let row = Row::new(FIGURE, case, (metric, "%"), Some(paper), measured);
        row.at("", "", ("parameters", point)).bound()
    };
    [
        row("CFDC over CFLRU", GAIN_MAX, "gain, paper: at most", gains.cfdc_over_cflru),
        row("LRU-WSR over LRU", 0.0, "gain, paper: less than", gains.lru_wsr_over_lru),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_do_not_count_as_agreement() {
        let gains = Gains { cfdc_over_cflru: 20.0, lru_wsr_over_lru: 1.0 };
        let rows = beside_bounds(POINTS[0], &gains);
        assert!(rows.iter().all(|row| row.paper.is_some() && !row.is_comparable()));
    }
}
