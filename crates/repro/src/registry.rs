//! The experiments by name.
use tantalum_base::Result;
use tantalum_base::spec::{is_same, unknown_name};

use super::{
    Row, Scale, Shape, cleaning, devices, dissertation, durassd, engines, personalities, share,
    tiers, txcache,
};

/// Called with the case that is about to be measured.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// All reproduced figures and tables of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name in `tantalum repro`.
    pub name: &'static str,
    /// The paper, and the figures and tables.
    pub title: &'static str,
    /// Measures, and adds each row once it is complete. The rows are a pure function of scale and seed. If runs are requested to end
    /// it returns `Interrupted`, and the rows measured by then are there.
    pub run: fn(Scale, u64, Progress, &mut Vec<Row>) -> Result<()>,
    /// Statements and drawings of the paper about its figures that are not numbers, checked on the rows.
    pub shapes: &'static [Shape],
    /// The claims of those shapes that do not hold at the small scale with seed 1, or are not measured there
    /// ([`surprises`](super::surprises)).
    pub not_met_small: &'static [&'static str],
    /// Approximate processor seconds of the full scale; for `tiers` and `cleaning` an estimate. The longest experiments start first,
    /// and nothing else depends on it.
    pub full_seconds: u32,
}

/// The name of all experiments together.
const ALL: &str = "all";

/// One entry per paper, and entries that compare parts of the engine.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "durassd",
        title: "Durable Write Cache in Flash Memory SSD (DuraSSD): figures 5 and 6, tables 1 to 5",
        run: durassd::run,
        shapes: durassd::SHAPES,
        not_met_small: durassd::NOT_MET_SMALL,
        full_seconds: 74,
    },
    Experiment {
        name: "share",
        title: "SHARE Interface in Flash Storage: figures 5 to 8, tables 1 and 2, full-page writes",
        run: share::run,
        shapes: share::SHAPES,
        not_met_small: share::NOT_MET_SMALL,
        full_seconds: 124,
    },
    Experiment {
        name: "txcache",
        title: "Transactional Cache in SSDs (TxCache): figures 4 to 7, table III",
        run: txcache::run,
        shapes: txcache::SHAPES,
        not_met_small: txcache::NOT_MET_SMALL,
        full_seconds: 69,
    },
    Experiment {
        name: "cfdc",
        title: "Flash-aware buffer management (CFDC), dissertation chapter 3: figures 3.5 to 3.8",
        run: dissertation::cfdc,
        shapes: dissertation::CFDC,
        not_met_small: dissertation::CFDC_NOT_MET,
        full_seconds: 147,
    },
    Experiment {
        name: "energy",
        title: "Energy efficiency and performance, dissertation chapter 4: figures 4.2 to 4.4",
        run: dissertation::energy,
        shapes: dissertation::ENERGY,
        not_met_small: dissertation::ENERGY_NOT_MET,
        full_seconds: 150,
    },
    Experiment {
        name: "casa",
        title: "Cost-aware buffer management (CASA, SAWC), dissertation chapter 5: figures 5.2 to 5.8",
        run: dissertation::casa,
        shapes: dissertation::CASA,
        not_met_small: dissertation::CASA_NOT_MET,
        full_seconds: 84,
    },
    Experiment {
        name: "write-cache",
        title: "Improving Database Performance Using a Flash-Based Write Cache: figures 6 to 8",
        run: tiers::write_cache,
        shapes: tiers::WRITE_CACHE,
        not_met_small: tiers::WRITE_CACHE_NOT_MET,
        full_seconds: 2,
    },
    Experiment {
        name: "tiers",
        title: "Three tiers against two of the same cost, dissertation chapter 6: figures 6.1 to 6.5",
        run: tiers::architecture,
        shapes: tiers::ARCHITECTURE,
        not_met_small: tiers::ARCHITECTURE_NOT_MET,
        full_seconds: 300,
    },
    Experiment {
        name: "nfa",
        title: "Native flash in the middle tier, dissertation chapter 7: figures 7.5 to 7.9",
        run: tiers::native,
        shapes: tiers::NATIVE,
        not_met_small: tiers::NATIVE_NOT_MET,
        full_seconds: 7,
    },
    Experiment {
        name: "cleaning",
        title: "Cleaning policies under uniform writes, beside closed forms (Desnoyers; Van Houdt)",
        run: cleaning::cleaning,
        shapes: cleaning::SHAPES,
        not_met_small: cleaning::NOT_MET_SMALL,
        full_seconds: 60,
    },
    Experiment {
        name: "devices",
        title: "The dissertation's SSDs and disks beside their data sheets",
        run: devices::devices,
        shapes: devices::SHAPES,
        not_met_small: &[],
        full_seconds: 30,
    },
    Experiment {
        name: "layers",
        title: "Translation layers side by side: page map, DFTL, FAST, BAST, block map",
        run: personalities::personalities,
        shapes: personalities::SHAPES,
        not_met_small: &[],
        full_seconds: 6,
    },
    engines::EXPERIMENT,
];

impl Experiment {
    /// The experiment called `name`, or every one of them for `all`.
    ///
    /// # Errors
    /// `InvalidInput`, which lists the names.
    pub fn by_name(name: &str) -> Result<&'static [Experiment]> {
        if is_same(name, ALL) {
            return Ok(EXPERIMENTS);
        }
        let found = EXPERIMENTS.iter().find(|experiment| is_same(experiment.name, name));
        found.map(std::slice::from_ref).ok_or_else(|| {
            let names = EXPERIMENTS.iter().map(|experiment| experiment.name);
            let names: Vec<&str> = names.chain([ALL]).collect();
            unknown_name(name, "an experiment", &names)
        })
    }
}
