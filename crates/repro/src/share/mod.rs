//! "SHARE Interface in Flash Storage for Relational and NoSQL Databases".
//!
//! ```text
//! link_bench  one run: an engine with a double write on an OpenSSD, LinkBench's clients over its rows
//! one_log     a count of the cleaning of the board's firmware, for a test of the board's model
//! figures     the results of the runs, beside figures 5 and 6 and table 1
//! couchbase   figures 7 and 8 and table 2
//! postgres    the cost of full-page writes (section 5.3.1)
//! shapes      statements of the paper about them, besides the numbers
//! ```
mod couchbase;
mod figures;
mod link_bench;
#[cfg(test)]
mod one_log;
mod postgres;
mod shapes;

use tantalum_base::Result;

use super::{Progress, Row, Scale};
pub(super) use shapes::{NOT_MET_SMALL, SHAPES};

/// Measures every reproduced figure of the paper.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    figures::run(scale, seed, progress, rows)?;
    couchbase::run(scale, seed, progress, rows)?;
    postgres::run(scale, seed, progress, rows)
}
