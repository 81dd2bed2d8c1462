//! Readings in Prometheus's text exposition format, version 0.0.4.
use std::fmt::{Display, Write};

use super::{BOUNDS_NS, HistogramReading, Metric, MetricKind, Reading, Readings, Sample};

/// The media type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text for `readings`: for each metric its help text, its type, then one line per number.
pub fn exposition(readings: &Readings) -> String {
    let mut text = String::with_capacity(32 << 10);
    for metric in readings.metrics() {
        append(&mut text, format_args!("# HELP {} {}\n", metric.name, escaped(metric.help, false)));
        append(&mut text, format_args!("# TYPE {} {}\n", metric.name, type_name(metric.kind)));
        metric.samples.iter().for_each(|sample| append_sample(&mut text, metric, sample));
    }
    text
}

fn append(text: &mut String, what: impl Display) {
    // A write to a string cannot fail.
    let _ = write!(text, "{what}");
}

fn type_name(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    }
}

fn append_sample(text: &mut String, metric: &Metric, sample: &Sample) {
    match &sample.reading {
        Reading::Count(count) => append_line(text, metric.name, "", sample, None, count),
        Reading::Real(real) => append_line(text, metric.name, "", sample, None, Real(*real)),
        Reading::Histogram(histogram) => append_histogram(text, metric.name, sample, histogram),
    }
}

fn append_histogram(text: &mut String, name: &str, sample: &Sample, histogram: &HistogramReading) {
    let bounds = BOUNDS_NS.into_iter().map(|bound_ns| bound_ns as f64 / 1e9);
    let bounds = bounds.chain(std::iter::once(f64::INFINITY));
    let mut so_far = 0;
    for (bound_seconds, count) in bounds.zip(&histogram.counts) {
        so_far += count;
        append_line(text, name, "_bucket", sample, Some(bound_seconds), so_far);
    }
    let seconds = Real(histogram.sum_ns as f64 / 1e9);
    append_line(text, name, "_sum", sample, None, seconds);
    append_line(text, name, "_count", sample, None, so_far);
}

fn append_line(
    text: &mut String,
    name: &str,
    suffix: &str,
    sample: &Sample,
    bound: Option<f64>,
    value: impl Display,
) {
    append(text, format_args!("{name}{suffix}"));
    let mut before = '{';
    for (label, value) in &sample.labels {
        append(text, format_args!("{before}{label}=\"{}\"", escaped(value, true)));
        before = ',';
    }
    if let Some(bound) = bound {
        append(text, format_args!("{before}le=\"{}\"", Real(bound)));
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    append(text, format_args!(" {value}\n"));
}

/// A number as this format prints it.
struct Real(f64);

impl Display for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            real => write!(f, "{real}"),
        }
    }
}

/// `text` escaped into one line; with `quotes`, for the value of a label, quotes are escaped as well.
fn escaped(text: &str, quotes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if quotes => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Histogram;

    #[test]
    fn readings_are_written_as_the_format_says() {
        let mut readings = Readings::default();
        readings.counter("a_total", "Says \"a\"\\\nb", 3);
        readings.gauge("ratio", "A share", 0.25);
        let metric = readings.metric(MetricKind::Gauge, "info", "Names");
        metric.with(&[("path", "C:\\x \"y\"\n"), ("kind", "z")], 1u64);
        readings.gauge("none", "No number", f64::NAN);
        let expected = "# HELP a_total Says \"a\"\\\\\\nb\n\
                        # TYPE a_total counter\n\
                        a_total 3\n\
                        # HELP ratio A share\n\
                        # TYPE ratio gauge\n\
                        ratio 0.25\n\
                        # HELP info Names\n\
                        # TYPE info gauge\n\
                        info{path=\"C:\\\\x \\\"y\\\"\\n\",kind=\"z\"} 1\n\
                        # HELP none No number\n\
                        # TYPE none gauge\n\
                        none NaN\n";
        assert_eq!(exposition(&readings), expected);
    }

    #[test]
    fn buckets_of_a_histogram_count_all_below_them() {
        let histogram = Histogram::default();
        for duration_ns in [9_000, 12_000, 12_000, 20_000_000_000] {
            histogram.record(duration_ns);
        }
        let mut readings = Readings::default();
        let metric = readings.metric(MetricKind::Histogram, "h_seconds", "H");
        metric.with(&[("of", "x")], histogram.read());
        let text = exposition(&readings);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 38 + 2);
        assert_eq!(lines[2], "h_seconds_bucket{of=\"x\",le=\"0.00001\"} 1");
        assert_eq!(lines[3], "h_seconds_bucket{of=\"x\",le=\"0.000015\"} 3");
        assert_eq!(lines[38], "h_seconds_bucket{of=\"x\",le=\"10\"} 3");
        assert_eq!(lines[39], "h_seconds_bucket{of=\"x\",le=\"+Inf\"} 4");
        assert_eq!(lines[40], "h_seconds_sum{of=\"x\"} 20.000033");
        assert_eq!(lines[41], "h_seconds_count{of=\"x\"} 4");
    }
}
