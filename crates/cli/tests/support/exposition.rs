//! A small reader of Prometheus's text format, independent of the one that `tantalum top` uses. It is strict, so that a
//! text that a scraper would refuse fails a test.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// All metrics of a server.
pub struct Told {
    /// Type by name of a metric; `_bucket`, `_sum` and `_count` of a histogram are one metric.
    pub types: BTreeMap<String, String>,
    /// Number by name and labels, as written.
    pub numbers: BTreeMap<String, f64>,
}

impl Told {
    /// Reads the metrics of the server at `socket`.
    pub fn by(socket: &Path) -> Told {
        let mut stream = UnixStream::connect(socket).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        Told::read(body)
    }

    /// Reads `text`; panics with the line if a rule of the format is broken.
    pub fn read(text: &str) -> Told {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut told = Told { types: BTreeMap::new(), numbers: BTreeMap::new() };
        let mut helped = BTreeSet::new();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, meaning) = help.split_once(' ').expect("a meaning");
                assert!(meaning.len() > 3 && !meaning.ends_with('.'), "{line}");
                assert!(helped.insert(name.to_owned()), "helped twice: {line}");
                current = name.to_owned();
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert_eq!(name, current, "its meaning comes right before: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                told.types.insert(name.to_owned(), kind.to_owned());
            } else {
                told.number(line, &current);
            }
        }
        told.check_histograms();
        told
    }

    fn number(&mut self, line: &str, current: &str) {
        let (name_and_labels, number) = line.rsplit_once(' ').expect("a number");
        let name = name_and_labels.split('{').next().expect("a name");
        assert!(name.starts_with("tantalum_"), "{line}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
        let suffix =
            name.strip_prefix(current).unwrap_or_else(|| panic!("not with its kind: {line}"));
        let histogram = self.types[current] == "histogram";
        let allowed: &[&str] = if histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(allowed.contains(&suffix), "{line}");
        if let Some(labels) = name_and_labels.strip_prefix(name).filter(|labels| !labels.is_empty())
        {
            assert!(labels.starts_with('{') && labels.ends_with("\"}"), "{line}");
        }
        let number: f64 = number.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let twice = self.numbers.insert(name_and_labels.to_owned(), number);
        assert!(twice.is_none(), "told twice: {line}");
    }

    fn check_histograms(&self) {
        for (name, _) in self.types.iter().filter(|(_, kind)| *kind == "histogram") {
            let counts =
                self.numbers.iter().filter(|(key, _)| key.starts_with(&format!("{name}_count")));
            for (key, count) in counts {
                let labels = key.strip_prefix(&format!("{name}_count")).expect("so chosen");
                let labels = labels.trim_matches(['{', '}']);
                let prefix = format!("{name}_bucket{{{labels},le=\"");
                let buckets = self.numbers.iter().filter(|(key, _)| key.starts_with(&prefix));
                let mut buckets: Vec<(f64, f64)> = buckets
                    .map(|(key, count)| {
                        let bound = key[prefix.len()..].trim_end_matches("\"}");
                        (
                            if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() },
                            *count,
                        )
                    })
                    .collect();
                buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
                assert!(
                    buckets.is_sorted_by(|left, right| left.1 <= right.1),
                    "{key}: {buckets:?}"
                );
                assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)), "{key}");
            }
        }
    }

    /// The number with this name and these labels.
    pub fn get(&self, key: &str) -> f64 {
        *self.numbers.get(key).unwrap_or_else(|| panic!("{key} is not told"))
    }

    /// The names of all metrics.
    pub fn names(&self) -> BTreeSet<String> {
        self.types.keys().cloned().collect()
    }
}
