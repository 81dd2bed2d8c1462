//! What a database gains by what its device offers: three storage engines on five devices under one load. No paper has this table.
//!
//! ```text
//! cell       engines, devices, and the form that an engine takes on a device
//! sizes      how large everything is
//! store      an engine over any device, as the load sees it
//! counted    what an engine gives its device to write
//! flash      the chips, which are the same for all, with five firmwares
//! tiered     a quarter of them before a disk          partition  a part of that disk
//! served     an engine under its load: throughput, latencies, what is written
//! measure    one cell: a load, then power cuts in the middle of it
//! live       the same live, on files of this machine
//! table      what the cells came to, as rows          shapes     what one should expect of them
//! ```
mod cell;
mod counted;
mod flash;
pub mod live;
mod measure;
mod partition;
mod served;
mod shapes;
mod sizes;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod tiered;

use tantalum_base::Result;
use tantalum_replay::side_by_side::{cores, side_by_side};
use tantalum_replay::work::Work;
use tantalum_runtime::supervision;

use super::{Progress, Row, Scale};
use cell::Cell;
use measure::measure;
pub(super) use shapes::{NOT_MET_SMALL, SHAPES};
use sizes::Sizes;

/// Measures every cell, on all cores.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    progress("three engines on five devices");
    let (cells, sizes) = (Cell::all(), Sizes::of(scale));
    let run = |cell: &Cell| measure(*cell, &sizes, seed);
    let outcomes = side_by_side(&cells, cores(), &Work::default(), run)?;
    for (cell, outcome) in cells.iter().zip(&outcomes) {
        rows.extend(outcome.iter().flat_map(|outcome| table::rows(cell, outcome)));
    }
    supervision::check_stop()
}
