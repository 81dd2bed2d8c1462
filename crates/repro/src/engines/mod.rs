//! What a database gains by what its device offers: three storage engines on five devices under a load. No paper has this table.
//!
//! ```text
//! cell       engines, devices, and the form that an engine takes on a device
//! load       what they may be put under          clients    a load with what it knows of an engine's content
//! sizes      how large everything is
//! store      an engine over any device, as loads see it          rows       an engine of rows, whichever
//! counted    what an engine gives its device to write
//! flash      the chips, which are the same for all, with five firmwares
//! tiered     a quarter of them before a disk          partition  a part of that disk
//! served     an engine under its load: throughput, latencies, what is written
//! measure    one cell: a load, then power cuts in the middle of it
//! live       the same live, on files of this machine
//! table      what the cells came to, as rows          shapes     what one should expect of them
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

/// That under the load which is taken where none is asked for. It alone has shapes.
pub(super) const EXPERIMENT: Experiment = experiment::<0>(shapes::SHAPES, shapes::NOT_MET_SMALL);

/// The experiment under a load.
pub fn under(load: Load) -> &'static Experiment {
    let at = Load::ALL.iter().position(|of| *of == load);
    &EXPERIMENTS[at.unwrap_or_else(|| unreachable!("{load:?} is one of all loads"))]
}

/// That under the load at `AT` among [`Load::ALL`].
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
