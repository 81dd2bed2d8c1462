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
    /// The paper's number is not one that was measured but a bound on it ("less than one percent"): how near ours is to it
    /// says nothing. Whether ours keeps to it is a [`Shape`](crate::Shape).
    pub bound: bool,
    /// Where the number stands in the figure; `None` where it stands for itself.
    pub place: Option<Place>,
}

/// Where a number stands in the figure that it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Which of several drawings of one kind, such as one a trace; may be empty.
    pub panel: String,
    /// What is one line, or of one colour, such as a policy; may be empty.
    pub series: String,
    /// What the axis across is of, with its unit.
    pub axis: &'static str,
    /// Where along it.
    pub x: X,
}

/// A place along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum X {
    /// On a line of numbers.
    Number(f64),
    /// One of several things beside each other.
    Words(String),
}

impl From<u32> for X {
    fn from(number: u32) -> X {
        X::Number(f64::from(number))
    }
}

impl From<f64> for X {
    fn from(number: f64) -> X {
        X::Number(number)
    }
}

impl From<&str> for X {
    fn from(words: &str) -> X {
        X::Words(words.to_owned())
    }
}

impl From<String> for X {
    fn from(words: String) -> X {
        X::Words(words)
    }
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
        let (case, calibrated, bound) = (case.into(), false, false);
        Row { figure, case, metric, unit, paper, measured, calibrated, bound, place: None }
    }

    /// The same, of which the paper states a bound.
    pub fn bound(self) -> Row {
        Row { bound: true, ..self }
    }

    /// The same, with its place in the figure.
    pub fn at(
        self,
        panel: impl Into<String>,
        series: impl Into<String>,
        (axis, x): (&'static str, impl Into<X>),
    ) -> Row {
        let (panel, series, x) = (panel.into(), series.into(), x.into());
        Row { place: Some(Place { panel, series, axis, x }), ..self }
    }

    /// The same in another drawing of the figure; nothing where it has no place.
    pub fn in_panel(self, panel: &str) -> Row {
        let place = self.place.map(|place| Place { panel: panel.to_owned(), ..place });
        Row { place, ..self }
    }

    /// Whether agreement with the paper says something: it states the number, which is no bound, and no parameter was set by it.
    pub fn is_comparable(&self) -> bool {
        self.ratio().is_some() && !self.calibrated && !self.bound
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
