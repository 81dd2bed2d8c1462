//! The result of every experiment.
use tantalum_base::Result;
use tantalum_base::spec::unknown_name;

/// One number of a figure or table: the paper's and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Figure or table, by its name in the paper (`"Table 1"`).
    pub figure: &'static str,
    /// Device, setting and point on the axis (`"durassd, cache on, fsync every 4"`).
    pub case: String,
    /// The metric (`"random write"`).
    pub metric: &'static str,
    /// Its unit (`"IOPS"`, `"pages"`, `"%"`).
    pub unit: &'static str,
    /// The paper's number; `None` if it has only a drawing.
    pub paper: Option<f64>,
    /// The number measured here.
    pub measured: f64,
    /// Whether the measured number was used to set a parameter of the device, so that its agreement shows nothing.
    pub calibrated: bool,
    /// Whether the paper's number is a bound and not a measurement ("less than one percent"): how near ours is to it says
    /// nothing. Whether ours satisfies it is a [`Shape`](crate::Shape).
    pub bound: bool,
    /// The place of the number in the figure; `None` if it has none.
    pub place: Option<Place>,
}

/// The place of a number in its figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// One of several drawings of one kind, such as one per trace; may be empty.
    pub panel: String,
    /// One line, or the bars of one colour, such as a policy; may be empty.
    pub series: String,
    /// The label of the x axis, with its unit.
    pub axis: &'static str,
    /// The place along it.
    pub x: X,
}

/// A place along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum X {
    /// A number on a continuous axis.
    Number(f64),
    /// One of several categories.
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
    /// A measured number beside the paper's; not calibrated.
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

    /// The same if the paper states a bound.
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

    /// The same in another drawing of the figure; no change if it has no place.
    pub fn in_panel(self, panel: &str) -> Row {
        let place = self.place.map(|place| Place { panel: panel.to_owned(), ..place });
        Row { place, ..self }
    }

    /// Whether agreement with the paper is meaningful: the paper states the number, it is not a bound, and it was not used to
    /// set a parameter.
    pub fn is_comparable(&self) -> bool {
        self.ratio().is_some() && !self.calibrated && !self.bound
    }

    /// Measured over paper; `None` if the paper has no number.
    pub fn ratio(&self) -> Option<f64> {
        self.paper.filter(|paper| *paper != 0.0).map(|paper| self.measured / paper)
    }
}

/// The size of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// For tests: seconds in a debug build, on small devices, with more noise; some shapes do not hold there
    /// ([`Experiment::not_met_small`](super::Experiment::not_met_small)).
    Small,
    /// The default of `tantalum repro`: at most a few minutes in a release build.
    Full,
    /// As many requests as in the paper, if `full` has fewer; otherwise as `full`.
    Paper,
}

impl Scale {
    /// Parses `--scale`; a refusal lists the names.
    pub fn parse(text: &str) -> Result<Scale> {
        let scales = [Scale::Small, Scale::Full, Scale::Paper];
        scales
            .into_iter()
            .find(|scale| scale.name() == text)
            .ok_or_else(|| unknown_name(text, "a scale", &scales.map(Scale::name)))
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
