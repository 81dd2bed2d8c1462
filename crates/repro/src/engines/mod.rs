//! The benefit of device features for a database: three storage engines on five devices under a load. No paper has this table.
//!
//! ```text
//! cell       engines, devices, and the form that an engine takes on a device
//! load       the loads                             clients    a load with its knowledge of an engine's content
//! sizes      all sizes
//! store      an engine over any device, for loads  rows       either engine of rows
//! counted    the pages that an engine writes to its device
//! flash      the chips, which are the same for all, with five firmwares
//! tiered     a quarter of the chips before a disk  partition  a part of that disk
//! served     an engine under its load: throughput, latencies, writes
//! measure    one cell: a load, then power cuts in the middle of it
//! live       the same live, on files of this machine
//! table      the results of the cells, as rows     shapes     the expected relations between them
//! ```
mod cell;
mod clients;
mod counted;
mod flash;
pub mod live;
mod load;
mod measure;
mod partition;
mod rows;
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

use super::{Experiment, Progress, Row, Scale, Shape};
use cell::Cell;
pub use load::Load;
use measure::measure;
use sizes::Sizes;

/// The experiment under each load, in the order of [`Load::ALL`].
static EXPERIMENTS: [Experiment; Load::ALL.len()] = [
    EXPERIMENT,
    experiment::<1>(&[], &[]),
    experiment::<2>(&[], &[]),
    experiment::<3>(&[], &[]),
    experiment::<4>(&[], &[]),
    experiment::<5>(&[], &[]),
    experiment::<6>(&[], &[]),
    experiment::<7>(&[], &[]),
    experiment::<8>(&[], &[]),
];

/// The experiment under the default load. Only this one has shapes.
pub(super) const EXPERIMENT: Experiment = experiment::<0>(shapes::SHAPES, shapes::NOT_MET_SMALL);

/// The experiment under a load.
pub fn under(load: Load) -> &'static Experiment {
    let at = Load::ALL.iter().position(|of| *of == load);
    &EXPERIMENTS[at.unwrap_or_else(|| unreachable!("{load:?} is one of all loads"))]
}

/// The experiment under the load at index `AT` of [`Load::ALL`].
const fn experiment<const AT: usize>(
    shapes: &'static [Shape],
    not_met_small: &'static [&'static str],
) -> Experiment {
    Experiment {
        name: "engines",
        title: Load::ALL[AT].title(),
        run: |scale, seed, progress, rows| run(Load::ALL[AT], (scale, seed), progress, rows),
        shapes,
        not_met_small,
        full_seconds: 200,
    }
}

/// Measures every cell under a load, on all cores.
fn run(
    load: Load,
    (scale, seed): (Scale, u64),
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    progress("engines on five devices");
    let (cells, sizes) = (Cell::all(load), Sizes::of(scale));
    let run = |cell: &Cell| measure(*cell, load, &sizes, seed);
    let outcomes = side_by_side(&cells, cores(), &Work::default(), run)?;
    for (cell, outcome) in cells.iter().zip(&outcomes) {
        rows.extend(outcome.iter().flat_map(|outcome| table::rows(cell, load, outcome)));
    }
    supervision::check_stop()
}
