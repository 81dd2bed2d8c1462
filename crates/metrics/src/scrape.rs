//! Parses exposition text into numbers.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, Result};

/// One scrape: numbers by name and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    samples: BTreeMap<String, Vec<Sample>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    labels: Vec<(String, String)>,
    value: f64,
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }
}

/// A bucket of a histogram; it includes all lower buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Upper bound; infinite in the last one.
    pub bound: f64,
    /// Observations up to it.
    pub count: f64,
}

impl Scrape {
    /// Reads the text exposition format.
    ///
    /// # Errors
    /// `Format`, with the line.
    pub fn parse(text: &str) -> Result<Scrape> {
        let mut scrape = Scrape::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, sample) = parse_sample(line).ok_or_else(|| {
                let what = format!("line {} is not a metric: {:.60}", at + 1, line);
                Error::new(ErrorKind::Format, what)
            })?;
            scrape.samples.entry(name).or_default().push(sample);
        }
        Ok(scrape)
    }

    /// The sum of all numbers of this name that have these labels; `None` if there are none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let samples = self.samples.get(name)?.iter().filter(|sample| sample.has(labels));
        samples.map(|sample| sample.value).reduce(|sum, value| sum + value)
    }

    /// The value of a label of the first number of this name.
    pub fn label(&self, name: &str, label: &str) -> Option<&str> {
        self.samples.get(name)?.first()?.label(label)
    }

    /// The buckets of a histogram with these labels, in ascending order; empty if there are none.
    pub fn buckets(&self, name: &str, labels: &[(&str, &str)]) -> Vec<Bucket> {
        let samples = self.samples.get(&format!("{name}_bucket")).map_or(&[][..], Vec::as_slice);
        let bucket = |sample: &Sample| {
            let bound = number(sample.label("le")?)?;
            Some(Bucket { bound, count: sample.value })
        };
        let having = samples.iter().filter(|sample| sample.has(labels));
        let mut buckets: Vec<Bucket> = having.filter_map(bucket).collect();
        buckets.sort_by(|left, right| left.bound.total_cmp(&right.bound));
        buckets
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        text => text.parse().ok(),
    }
}

/// Parses `name{label="value",...} number`, with or without a timestamp behind it.
fn parse_sample(line: &str) -> Option<(String, Sample)> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(behind) = rest.strip_prefix('}') {
                rest = behind;
                break;
            }
            let (label, quoted) = rest.split_once("=\"")?;
            let (value, behind) = unquoted(quoted)?;
            labels.push((label.trim().to_owned(), value));
            rest = behind;
        }
    }
    let value = number(rest.split_whitespace().next()?)?;
    Some((name.to_owned(), Sample { labels, value }))
}

/// The value of a label up to its closing quote, and the text after that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_runtime::metrics::exposition;
    use tantalum_runtime::metrics::{Histogram, MetricKind, Readings};

    #[test]
    fn what_is_written_is_read_again() {
        let histogram = Histogram::default();
        for duration_ns in [9_000, 12_000, 20_000_000_000] {
            histogram.record(duration_ns);
        }
        let mut readings = Readings::default();
        readings.counter("a_total", "A", 7);
        let metric = readings.metric(MetricKind::Counter, "b_total", "B");
        metric.with(&[("of", "x, \"y\"}\\\n"), ("kind", "k")], 1u64).with(&[("of", "z")], 2u64);
        let metric = readings.metric(MetricKind::Histogram, "h_seconds", "H");
        metric.with(&[("of", "x")], histogram.read()).with(&[("of", "y")], histogram.read());
        let scrape = Scrape::parse(&exposition(&readings)).unwrap();
        assert_eq!(scrape.sum("a_total", &[]), Some(7.0));
        assert_eq!(scrape.sum("b_total", &[]), Some(3.0));
        assert_eq!(scrape.sum("b_total", &[("of", "z")]), Some(2.0));
        assert_eq!(scrape.sum("b_total", &[("of", "none")]), None);
        assert_eq!(scrape.sum("c_total", &[]), None);
        assert_eq!(scrape.label("b_total", "of"), Some("x, \"y\"}\\\n"));
        let buckets = scrape.buckets("h_seconds", &[("of", "x")]);
        assert_eq!(buckets.len(), 38);
        assert_eq!(buckets[1], Bucket { bound: 0.000015, count: 2.0 });
        assert_eq!(buckets[37], Bucket { bound: f64::INFINITY, count: 3.0 });
        assert_eq!(scrape.sum("h_seconds_count", &[("of", "y")]), Some(3.0));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for line in ["name", "name{a=\"b} 1", "name{a} 1", "name x"] {
            let told = Scrape::parse(&format!("a 1\n{line}\n")).unwrap_err().to_string();
            assert!(told.contains("line 2") && told.contains(line), "{told}");
        }
        assert_eq!(Scrape::parse("a 1 1395066363000\n").unwrap().sum("a", &[]), Some(1.0));
    }
}
