//! Write amplification of cleaning policies under uniform random writes, compared with closed
//! forms.
//!
//! The utilisation is the number of pages over the number of slots that take part when a victim is
//! chosen. The checkpoint's zone, the reserve, the host's newly opened zone and half of cleaning's
//! open zone do not take part. Host and cleaning fill separate zones; under uniform writes that
//! makes no difference, as the age of a page says nothing about its next write.
mod measure;
pub mod models;
mod shapes;

pub use measure::{Measured, Steady, measure};
pub(super) use shapes::{NOT_MET_SMALL, SHAPES};

use tantalum_base::Result;
use tantalum_policy::CleaningSpec;

use super::{Row, Scale};
use models::Draws;

/// The published forms, as the `figure` of a row names them.
pub const GREEDY: &str = "Desnoyers 2012, greedy";
/// FIFO cleaning, there called LRU.
pub const FIFO: &str = "Desnoyers 2012, LRU";
/// Victims drawn from all zones.
pub const D_CHOICES: &str = "Van Houdt 2013, d-choices";
/// The same fixed point with victims drawn only from zones that hold garbage.
pub const D_CHOICES_GARBAGE: &str = "after Van Houdt 2013, zones with garbage";

/// Number of pages, as a share of the slots that take part.
const UTILISATIONS: [f64; 3] = [0.7, 0.8, 0.9];

/// Measures greedy, FIFO and d-choices cleaning at several utilisations. `paper` is the closed form
/// at the utilisation of the measured device.
pub fn cleaning(
    scale: Scale,
    seed: u64,
    progress: &mut dyn FnMut(&str),
    rows: &mut Vec<Row>,
) -> Result<()> {
    let (zones, overwrites) = match scale {
        Scale::Small => (1024, 2),
        Scale::Full | Scale::Paper => (4096, 4),
    };
    let zone_pages = 32;
    for utilisation in UTILISATIONS {
        let mut policies = vec!["greedy", "fifo", "d_choices:d=4"];
        if scale != Scale::Small {
            policies.extend(["d_choices:d=1", "d_choices:d=2", "d_choices:d=10"]);
        }
        for text in policies {
            let cleaning = CleaningSpec::parse(text)?;
            let steady = Steady { cleaning, zones, zone_pages, utilisation, overwrites, seed };
            let measured = measure(&steady)?;
            let used = measured.utilisation;
            let mut row = |figure, model: Option<f64>| {
                let case = format!("{text}, {zone_pages} pages a zone, utilisation {used:.4}");
                let measured = measured.write_amplification;
                progress(&format!(
                    "{figure}: {case}: {:.3} and {measured:.3}",
                    model.unwrap_or(0.0)
                ));
                let what = ("write amplification", "ratio");
                let row = Row::new(figure, case, what, model, measured);
                rows.push(row.at("", text, ("utilisation", used)));
            };
            match cleaning {
                CleaningSpec::Fifo => row(FIFO, Some(models::fifo(used))),
                CleaningSpec::DChoices { choices, .. } => {
                    let model = |draws| models::d_choices(used, zone_pages, choices, draws);
                    row(D_CHOICES, model(Draws::All));
                    row(D_CHOICES_GARBAGE, model(Draws::WithGarbage));
                }
                _ => row(GREEDY, Some(models::greedy(used, zone_pages))),
            }
        }
    }
    Ok(())
}
