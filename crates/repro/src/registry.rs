//! The experiments by name.
use tantalum_base::{Error, ErrorKind, Result};

use super::{
    Row, Scale, Shape, cleaning, devices, dissertation, durassd, engines, personalities, share,
    tiers, txcache,
};

/// Is told what is about to be measured.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// All of a paper's figures and tables that are measured again.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What `tantalum repro` calls it.
    pub name: &'static str,
    /// The paper, and which of its figures and tables.
    pub title: &'static str,
    /// Measures, and adds each row when it is whole. The rows are a pure function of scale and seed; where runs are
    /// asked to end it is `Interrupted`, and there are those that were measured by then.
    pub run: fn(Scale, u64, Progress, &mut Vec<Row>) -> Result<()>,
    /// What the paper says or draws of its figures that is no number, checked on the rows.
    pub shapes: &'static [Shape],
}

/// One entry a paper, and those that compare parts of the engine.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "durassd",
        title: "Durable Write Cache in Flash Memory SSD (DuraSSD): figures 5 and 6, tables 1 to 5",
        run: durassd::run,
        shapes: durassd::SHAPES,
    },
    Experiment {
        name: "share",
        title: "SHARE Interface in Flash Storage: figures 5 to 8, tables 1 and 2",
        run: share::run,
        shapes: share::SHAPES,
    },
    Experiment {
        name: "txcache",
        title: "Transactional Cache in SSDs (TxCache): figures 4 to 7, table III",
        run: txcache::run,
        shapes: txcache::SHAPES,
    },
    Experiment {
        name: "cfdc",
        title: "Flash-aware buffer management (CFDC), dissertation chapter 3: figures 3.5 to 3.8",
        run: dissertation::cfdc,
        shapes: dissertation::CFDC,
    },
    Experiment {
        name: "energy",
        title: "Energy efficiency and performance, dissertation chapter 4: figures 4.2 to 4.4",
        run: dissertation::energy,
        shapes: dissertation::ENERGY,
    },
    Experiment {
        name: "casa",
        title: "Cost-aware buffer management (CASA, SAWC), dissertation chapter 5: figures 5.2 to 5.8",
        run: dissertation::casa,
        shapes: dissertation::CASA,
    },
    Experiment {
        name: "write-cache",
        title: "Improving Database Performance Using a Flash-Based Write Cache: figures 6 to 8",
        run: tiers::write_cache,
        shapes: &[],
    },
    Experiment {
        name: "tiers",
        title: "Three tiers against two of the same cost, dissertation chapter 6: figures 6.1 to 6.5",
        run: tiers::architecture,
        shapes: &[],
    },
    Experiment {
        name: "nfa",
        title: "Native flash in the middle tier, dissertation chapter 7: figures 7.5 to 7.9",
        run: tiers::native,
        shapes: &[],
    },
    Experiment {
        name: "cleaning",
        title: "Cleaning policies under uniform writes, beside closed forms (Desnoyers; Van Houdt)",
        run: cleaning::cleaning,
        shapes: &[],
    },
    Experiment {
        name: "devices",
        title: "The dissertation's SSDs and disks beside their data sheets",
        run: devices::devices,
        shapes: &[],
    },
    Experiment {
        name: "layers",
        title: "Translation layers side by side: page map, DFTL, FAST, BAST, block map",
        run: personalities::personalities,
        shapes: &[],
    },
    Experiment {
        name: "engines",
        title: "Three storage engines on a plain SSD, DuraSSD, SHARE, transactions and flash before a disk",
        run: engines::run,
        shapes: engines::SHAPES,
    },
];

impl Experiment {
    /// The experiment called `name`, or every one of them for `all`.
    ///
    /// # Errors
    /// `InvalidInput`, which lists the names.
    pub fn by_name(name: &str) -> Result<&'static [Experiment]> {
        if name == "all" {
            return Ok(EXPERIMENTS);
        }
        let found = EXPERIMENTS.iter().find(|experiment| experiment.name == name);
        found.map(std::slice::from_ref).ok_or_else(|| {
            let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
            let context =
                format!("{name:?} is not an experiment; accepted: {}, all", names.join(", "));
            Error::new(ErrorKind::InvalidInput, context)
        })
    }
}
