//! A trace as a user names it: a file, the text of a generator, or parts of several traces one after the other.
//!
//! ```text
//! tpcc.csv.zst                                         a file
//! zipf:pages=1m,requests=10m                           a generator
//! concat:tpcc.csv.zst@50%+tpch.csv.zst@1m..3m          parts of traces
//! ```
//! A part is a trace and, after an @, the requests to take: `50%` and `1m` count from its beginning, `50%..` extends to
//! its end, `25%..75%` lies between.
use crate::generate::{self, Generator};
use std::path::{Path, PathBuf};
use tantalum_base::size::Size;
use tantalum_base::spec::is_same;
use tantalum_base::{Error, ErrorKind, Result, Spec};

/// The name of traces made of parts.
pub const CONCAT: &str = "concat";

/// A trace as the user names it.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A file; `-` is the standard input.
    File(PathBuf),
    /// The text of a generator.
    Generator(String),
    /// Parts of traces, one after the other.
    Concat(Vec<Part>),
}

/// A part of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The whole trace: a file or a generator.
    pub trace: Expression,
    /// The beginning of the part.
    pub from: Bound,
    /// The end of the part.
    pub to: Bound,
}

/// A position in a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// This number of requests after its beginning.
    Requests(u64),
    /// This share of its requests after its beginning, 0 to 1.
    Share(f64),
}

impl Bound {
    /// The position in a trace of `whole` requests; it may lie beyond its end.
    pub fn requests(self, whole: u64) -> u64 {
        match self {
            Bound::Requests(requests) => requests,
            Bound::Share(share) => (whole as f64 * share).round() as u64,
        }
    }

    fn parse(text: &str) -> Option<Bound> {
        match Size::parse(text) {
            Ok(Size::Count(requests)) => Some(Bound::Requests(requests)),
            Ok(Size::Share(share)) => Some(Bound::Share(share)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Requests(requests) => write!(f, "{requests}"),
            // Without the noise of binary fractions.
            Bound::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6),
        }
    }
}

impl Expression {
    /// Parses `path`. If a file of this name exists, the result is that file.
    ///
    /// # Errors
    /// `InvalidInput` for invalid parts.
    pub fn parse(path: &Path) -> Result<Expression> {
        let file = || Expression::File(path.to_owned());
        let Some(text) = path.to_str().filter(|_| !path.exists()) else { return Ok(file()) };
        let text = &*Spec::spelled(text, generate::NAMES);
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if is_same(name, CONCAT) {
            let parts = rest.split('+').map(Part::parse).collect::<Result<Vec<Part>>>();
            return Ok(Expression::Concat(parts.map_err(|error| error.wrap(text))?));
        }
        let is_generator = generate::NAMES.contains(&name);
        Ok(if is_generator { Expression::Generator(text.to_owned()) } else { file() })
    }

    /// The name of the trace in rows: the file's name without its endings, or that of the generator.
    pub fn name(&self) -> String {
        match self {
            Expression::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let mut stem = name.as_ref();
                for end in [".zst", ".gz", ".csv", ".lis"] {
                    stem = stem.strip_suffix(end).unwrap_or(stem);
                }
                stem.to_owned()
            }
            Expression::Generator(text) => {
                text.split_once(':').map_or(text.as_str(), |(name, _)| name).to_owned()
            }
            Expression::Concat(_) => CONCAT.to_owned(),
        }
    }

    /// The text of a trace that is not only a file, with all its parameters; `None` for a file.
    pub fn workload(&self) -> Option<String> {
        match self {
            Expression::File(_) => None,
            Expression::Generator(text) => Some(text.clone()),
            Expression::Concat(parts) => {
                let parts: Vec<String> = parts.iter().map(Part::workload).collect();
                Some(format!("{CONCAT}:{}", parts.join("+")))
            }
        }
    }

    /// The trace as a part of a configuration hash: a file's folder does not matter.
    pub fn config(&self) -> String {
        match self {
            Expression::File(_) => self.name(),
            Expression::Generator(text) => text.clone(),
            Expression::Concat(parts) => {
                let part =
                    |part: &Part| format!("{}@{:?}..{:?}", part.trace.config(), part.from, part.to);
                let parts: Vec<String> = parts.iter().map(part).collect();
                format!("{CONCAT}:{}", parts.join("+"))
            }
        }
    }

    /// The seed of a generated trace, or of the first one among the parts; 0 if nothing is random.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid text of a generator.
    pub fn seed(&self) -> Result<u64> {
        match self {
            Expression::File(_) => Ok(0),
            Expression::Generator(text) => Generator::parse(text).map(|made| made.seed()),
            Expression::Concat(parts) => {
                let made = parts.iter().find(|part| matches!(part.trace, Expression::Generator(_)));
                made.map_or(Ok(0), |part| part.trace.seed())
            }
        }
    }

    /// The number of reads and writes of a generated trace; `None` if it is known only when the trace has been read.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid text of a generator.
    pub fn requests(&self) -> Result<Option<u64>> {
        match self {
            Expression::Generator(text) => Generator::parse(text).map(|made| made.requests()),
            Expression::File(_) | Expression::Concat(_) => Ok(None),
        }
    }

    /// The files it reads.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Expression::File(path) => vec![path],
            Expression::Generator(_) => Vec::new(),
            Expression::Concat(parts) => parts.iter().flat_map(|part| part.trace.files()).collect(),
        }
    }
}

impl Part {
    /// Whether it is the trace from its beginning to its end.
    pub fn is_whole(&self) -> bool {
        (self.from, self.to) == (Bound::Requests(0), Bound::Share(1.0))
    }

    fn workload(&self) -> String {
        let trace = self.trace.workload().unwrap_or_else(|| self.trace.name());
        let range = format!("@{}..{}", self.from, self.to);
        if self.is_whole() { trace } else { trace + &range }
    }

    fn parse(text: &str) -> Result<Part> {
        let refused = |why: &str| {
            Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the part {text:?} {why}; parts are TRACE or TRACE@RANGE between +, ranges \
                     such as 50%, 25%..75%, 1m, 1000.. (in requests)"
                ),
            )
        };
        let (trace, range) = text.rsplit_once('@').unwrap_or((text, "0.."));
        let (from, to) = range.split_once("..").unwrap_or(("0", range));
        let from = if from.is_empty() { "0" } else { from };
        let to = if to.is_empty() { "100%" } else { to };
        let bounds = Bound::parse(from).zip(Bound::parse(to));
        let (from, to) = bounds.ok_or_else(|| refused("has no range"))?;
        let trace = match Expression::parse(Path::new(trace))? {
            Expression::File(path) if path.as_os_str().is_empty() => {
                return Err(refused("names no trace"));
            }
            Expression::File(path) if path == Path::new("-") => {
                return Err(refused("is the standard input, which cannot be read twice"));
            }
            Expression::Concat(_) => return Err(refused("is made of parts itself")),
            trace => trace,
        };
        Ok(Part { trace, from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_shares_or_requests() {
        let part = |text: &str| Part::parse(text).map(|part| (part.from, part.to));
        let (requests, share) = (Bound::Requests, Bound::Share);
        assert_eq!(part("a.csv").unwrap(), (requests(0), share(1.0)));
        assert_eq!(part("a.csv@50%").unwrap(), (requests(0), share(0.5)));
        assert_eq!(part("a.csv@50%..").unwrap(), (share(0.5), share(1.0)));
        assert_eq!(part("a@1k..75%").unwrap(), (requests(1024), share(0.75)));
        assert_eq!(part("zipf:pages=10@..7").unwrap(), (requests(0), requests(7)));
        for bad in ["a@x", "a@1..2..3", "", "@1", "-", "a@5MiB", "concat:a"] {
            let shown = part(bad).unwrap_err().to_string();
            assert!(shown.contains("TRACE@RANGE"), "{bad}: {shown}");
        }
        assert_eq!(share(0.5).requests(11), 6);
        assert_eq!(requests(50).requests(11), 50);
        assert_eq!((requests(7).to_string(), share(0.07).to_string()), ("7".into(), "7%".into()));
    }

    #[test]
    fn an_expression_is_told_from_its_text() {
        let parse = |text: &str| Expression::parse(Path::new(text)).unwrap();
        assert_eq!(parse("none/t.csv.zst").name(), "t");
        assert_eq!(parse("none/t.csv.zst").config(), "t");
        assert_eq!(parse("scan:pages=5").name(), "scan");
        assert_eq!(parse("Self-Similar:pages=5"), parse("self_similar:pages=5"));
        let both = parse("concat:none/t.csv@1+zipf:seed=9+scan:seed=3");
        assert_eq!((both.name(), both.seed().unwrap()), ("concat".to_owned(), 9));
        assert_eq!(both.files(), [Path::new("none/t.csv")]);
        assert_eq!(both.workload().unwrap(), "concat:t@0..1+zipf:seed=9+scan:seed=3");
        assert_eq!(parse("Self-Similar:h=0.1").workload().unwrap(), "self_similar:h=0.1");
        assert_eq!(parse("none/t.csv.zst").workload(), None);
        for (text, requests) in [
            ("zipf:pages=1t,requests=1t", Some(1 << 40)),
            ("cfdc_scans:reads=1,updates=2,scans=4,scan_pages=10", Some(43)),
            ("tpcc", None),
            ("none/t.csv", None),
        ] {
            assert_eq!(parse(text).requests().unwrap(), requests, "{text}");
        }
        assert_eq!(parse("concat:other/t.csv@1+zipf:seed=9+scan:seed=3").config(), both.config());
    }
}
