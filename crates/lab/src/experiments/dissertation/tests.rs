use super::super::{Row, Scale};
use super::*;

fn measured(rows: &[Row], case: &str, metric: &str) -> f64 {
    let found = rows.iter().find(|row| row.case == case && row.metric == metric);
    found.unwrap_or_else(|| panic!("no row {case}, {metric}")).measured
}
