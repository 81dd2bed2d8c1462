//! What every experiment returns.
use tantalum_base::{Error, ErrorKind, Result};

/// One number of a figure or table: the paper's and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Figure or table of the paper, as it is called there (`"Table 1"`).
    pub figure: &'static str,
    /// Which device, setting and point on the axis (`"durassd, cache on, fsync every 4"`).
    pub case: String,
    /// What is counted (`"random write"`).
    pub metric: &'static str,
    /// Its unit (`"IOPS"`, `"pages"`, `"%"`).
    pub unit: &'static str,
    /// What the paper says; `None` where it gives only a picture.
    pub paper: Option<f64>,
    /// What was measured here.
    pub measured: f64,
    /// The measured number was used to set a parameter of the device, so that its agreement
    /// shows nothing.
    pub calibrated: bool,
}

impl Row {
    /// What was measured, beside the paper's number; not calibrated.
    pub fn new(
        figure: &'static str,
        case: impl Into<String>,
        (metric, unit): (&'static str, &'static str),
        paper: Option<f64>,
        measured: f64,
    ) -> Row {
        Row { figure, case: case.into(), metric, unit, paper, measured, calibrated: false }
    }

    /// Measured over paper; `None` where the paper has no number.
    pub fn ratio(&self) -> Option<f64> {
        self.paper.filter(|paper| *paper != 0.0).map(|paper| self.measured / paper)
    }
}

/// How long an experiment may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// For tests: seconds in a debug build, on small devices; the shape holds, the noise is larger.
    Small,
    /// What `tantalum repro` prints: at most a few minutes in a release build.
    Full,
    /// As many requests as in the paper, where `full` has fewer; else as `full`.
    Paper,
}

impl Scale {
    /// Parses `--scale`; a refusal lists the names.
    pub fn parse(text: &str) -> Result<Scale> {
        let scales = [Scale::Small, Scale::Full, Scale::Paper];
        scales.into_iter().find(|scale| scale.name() == text).ok_or_else(|| {
            let names = scales.map(Scale::name).join(", ");
            Error::new(
                ErrorKind::InvalidInput,
                format!("{text:?} is not a scale; accepted: {names}"),
            )
        })
    }

    /// The word that names it.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Small => "small",
            Scale::Full => "full",
            Scale::Paper => "paper",
        }
    }
}
