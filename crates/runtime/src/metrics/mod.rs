//! Numbers that can be watched from outside. Each has a name and a meaning, and labels if one name stands for several
//! numbers.
//!
//! Each part that counts something reports it into [`Readings`], in its own `metrics`, with name and meaning next to
//! the number. A device does so in [`LifeCycle::metrics`](crate::LifeCycle::metrics), which wrappers forward like
//! everything else. The code has no central list; `docs/metrics.md` lists all metrics, and a test compares.
mod exposition;
mod histogram;

pub use exposition::{CONTENT_TYPE, exposition};
pub use histogram::{BOUNDS_NS, Histogram, HistogramReading};

/// The behaviour of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from 0 when the device was opened. Its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of observations by size. Its name ends in its unit.
    Histogram,
}

/// The value of a metric at one time.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A whole number.
    Count(u64),
    /// Any number.
    Real(f64),
    /// A histogram.
    Histogram(HistogramReading),
}

impl From<u64> for Reading {
    fn from(count: u64) -> Self {
        Reading::Count(count)
    }
}

impl From<u32> for Reading {
    fn from(count: u32) -> Self {
        Reading::Count(count.into())
    }
}

impl From<bool> for Reading {
    fn from(flag: bool) -> Self {
        Reading::Count(flag.into())
    }
}

impl From<f64> for Reading {
    fn from(real: f64) -> Self {
        Reading::Real(real)
    }
}

impl From<HistogramReading> for Reading {
    fn from(histogram: HistogramReading) -> Self {
        Reading::Histogram(histogram)
    }
}

/// One number of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Distinguishes it from the other numbers of the metric: name and value of each label.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub reading: Reading,
}

/// A metric with all its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, which never changes after release: `tantalum_`, owner, quantity, unit.
    pub name: &'static str,
    /// Its meaning, as a sentence without the full stop.
    pub help: &'static str,
    /// Its behaviour.
    pub kind: MetricKind,
    /// One sample, or one per set of labels.
    pub samples: Vec<Sample>,
}

impl Metric {
    /// Adds the number with these labels.
    pub fn with(
        &mut self,
        labels: &[(&'static str, &str)],
        reading: impl Into<Reading>,
    ) -> &mut Self {
        let labels = labels.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        let known = |sample: &Sample| sample.labels == labels;
        // A wrong report must not end a server, only the test that reads all metrics.
        debug_assert!(!self.samples.iter().any(known), "{} is told twice", self.name);
        self.samples.push(Sample { labels, reading: reading.into() });
        self
    }
}

/// All metrics reported at one time, in order of their reports.
#[derive(Clone, Debug, Default)]
pub struct Readings(Vec<Metric>);

impl Readings {
    /// Reports a counter.
    pub fn counter(&mut self, name: &'static str, help: &'static str, count: u64) {
        self.metric(MetricKind::Counter, name, help).with(&[], count);
    }

    /// Reports a gauge.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, reading: impl Into<Reading>) {
        self.metric(MetricKind::Gauge, name, help).with(&[], reading);
    }

    /// The metric with this name, to which labelled numbers can be added.
    ///
    /// # Panics
    /// In debug builds, if it was reported with another meaning, or if the name of a counter does not show that it is
    /// one.
    pub fn metric(
        &mut self,
        kind: MetricKind,
        name: &'static str,
        help: &'static str,
    ) -> &mut Metric {
        debug_assert_eq!(
            name.ends_with("_total"),
            kind == MetricKind::Counter,
            "{name} is a {kind:?}"
        );
        let at = self.0.iter().position(|metric| metric.name == name).unwrap_or_else(|| {
            self.0.push(Metric { name, help, kind, samples: Vec::new() });
            self.0.len() - 1
        });
        let metric = &mut self.0[at];
        debug_assert_eq!((metric.help, metric.kind), (help, kind), "{name} means two things");
        metric
    }

    /// Adds all of `others`, none of which may be reported here already.
    pub fn extend(&mut self, others: Readings) {
        let names = |metric: &Metric| self.0.iter().any(|known| known.name == metric.name);
        debug_assert!(!others.0.iter().any(names), "a metric is told twice");
        self.0.extend(others.0);
    }

    /// The metrics.
    pub fn metrics(&self) -> &[Metric] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_name_stay_together() {
        let mut readings = Readings::default();
        readings.metric(MetricKind::Counter, "a_total", "A").with(&[("of", "x")], 1u64);
        readings.gauge("b", "B", 2u64);
        readings.metric(MetricKind::Counter, "a_total", "A").with(&[("of", "y")], 3u64);
        let names: Vec<_> =
            readings.metrics().iter().map(|it| (it.name, it.samples.len())).collect();
        assert_eq!(names, [("a_total", 2), ("b", 1)]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a_total is told twice")]
    fn a_number_that_is_told_twice_is_a_mistake() {
        let mut readings = Readings::default();
        readings.counter("a_total", "A", 1);
        readings.counter("a_total", "A", 2);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "means two things")]
    fn a_name_has_one_meaning() {
        let mut readings = Readings::default();
        readings.counter("a_total", "A", 1);
        readings.counter("a_total", "B", 2);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a_pages is a Counter")]
    fn a_counter_is_named_as_one() {
        Readings::default().counter("a_pages", "A", 1);
    }
}
