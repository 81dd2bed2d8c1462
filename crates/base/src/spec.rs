//! Names with parameters, as text: `zipf:pages=1m,theta=0.9`, `clock:bits=2`.
//!
//! The caller reads each parameter with its range and default, then calls [`Spec::finish`]. A parameter that was not
//! read is an error, which lists the accepted ones.
use crate::nearest::nearest;
use crate::size::{Size, human_bytes};
use crate::{Error, ErrorKind, PAGE_BYTES, Result};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// If given as a parameter, the error lists the accepted parameters.
const HELP: &str = "help";

/// How a whole number is written, for a refusal.
const COUNT_FORM: &str =
    "write a whole number: 1000000, or with k, m, g or t, which count in powers of 1024";

/// A name and its parameters that have not been read yet.
#[derive(Clone, Debug)]
pub struct Spec<'a> {
    text: &'a str,
    name: &'a str,
    params: Vec<(&'a str, &'a str)>,
    /// The parameters read so far, for error messages: key, and range and default in words.
    accepted: Vec<(&'static str, String)>,
}

impl<'a> Spec<'a> {
    /// Splits `text` (`name` or `name:key=value,key=value`).
    pub fn parse(text: &'a str) -> Result<Spec<'a>> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut params: Vec<(&str, &str)> = Vec::new();
        for part in rest.split(',').filter(|part| !part.trim().is_empty()) {
            let (key, value) = match part.split_once('=') {
                Some(pair) => pair,
                // No parameter has this name, so `finish` fails and lists the accepted ones.
                None if part.trim() == HELP => (HELP, ""),
                None => return Err(bad(format!("{text:?}: {part:?} is not key=value"))),
            };
            let (key, value) = (key.trim(), value.trim());
            if params.iter().any(|(seen, _)| is_same(seen, key)) {
                return Err(bad(format!("{text:?}: {key:?} is given twice")));
            }
            params.push((key, value));
        }
        Ok(Spec { text, name: name.trim(), params, accepted: Vec::new() })
    }

    /// `text` with its name spelled as in `names`: `S3-FIFO:small=0.2` becomes `s3_fifo:small=0.2`. A name that is
    /// not in `names` stays unchanged and is refused later.
    pub fn spelled<'t>(text: &'t str, names: &[&str]) -> Cow<'t, str> {
        let (given, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        match names.iter().find(|name| is_same(name, given.trim())) {
            Some(name) if *name != given => Cow::Owned(format!("{name}{rest}")),
            _ => Cow::Borrowed(text),
        }
    }

    /// Splits a list at commas or spaces: `lru,clock:bits=2,d=3` has two items. A `key=value` part after a name with
    /// parameters belongs to that name. A value may contain a colon (`cost=1:4`).
    pub fn list(text: &str) -> Vec<String> {
        let is_parameter =
            |part: &str| part.split_once('=').is_some_and(|(key, _)| !key.contains(':'));
        let mut texts: Vec<String> = Vec::new();
        for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
            match texts.last_mut() {
                Some(last) if last.contains(':') && is_parameter(part) => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => texts.push(part.to_owned()),
            }
        }
        texts
    }

    /// The name before the colon.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Reads a whole number in `range`. The suffixes `k`, `m`, `g` and `t` are powers of 1024.
    pub fn count(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64> {
        let words = format!("{} to {}, default {default}", range.start(), range.end());
        let Some(value) = self.take(key, words) else { return Ok(default) };
        match count_of(value) {
            Some(count) if range.contains(&count) => Ok(count),
            Some(_) => Err(self.refuse(key, value)),
            None => Err(bad(format!("{}; {COUNT_FORM}", self.refused(key, value)))),
        }
    }

    /// Reads the capacity of a device in pages, in `range`. It is given either as `pages`, a count, or as `capacity`,
    /// in bytes with a unit, rounded down to whole pages.
    pub fn capacity_pages(&mut self, range: RangeInclusive<u64>, default: u64) -> Result<u64> {
        let words = format!("{} to {}, default {default}", range.start(), range.end());
        let pages = self.take("pages", words);
        let capacity = self.take("capacity", "bytes with a unit, instead of pages".to_owned());
        let (key, value, count) = match (pages, capacity) {
            (None, None) => return Ok(default),
            (Some(pages), None) => ("pages", pages, count_of(pages)),
            (None, Some(capacity)) => {
                let bytes = Size::parse_bytes(capacity).map_err(|error| error.wrap(self.text))?;
                ("capacity", capacity, Some(bytes / PAGE_BYTES as u64))
            }
            (Some(_), Some(_)) => {
                let text = self.text;
                return Err(bad(format!("{text:?}: either \"pages\" or \"capacity\", not both")));
            }
        };
        if let Some(count) = count.filter(|count| range.contains(count)) {
            return Ok(count);
        }
        let (least, most) = (*range.start(), *range.end());
        let bytes = |pages: u64| human_bytes(pages.saturating_mul(PAGE_BYTES as u64));
        let form = if count.is_none() { format!("; {COUNT_FORM}") } else { String::new() };
        Err(bad(format!(
            "{:?}: {key}={value} is not accepted; pages is {least} to {most}, capacity is {} to {}{form}",
            self.text,
            bytes(least),
            bytes(most)
        )))
    }

    /// Reads a number in `range`.
    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
        default: f64,
    ) -> Result<f64> {
        let words = format!("{} to {}, default {default}", range.start(), range.end());
        let Some(value) = self.take(key, words) else { return Ok(default) };
        match value.parse::<f64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.refuse(key, value)),
        }
    }

    /// Reads one of `words`; the first is the default.
    pub fn word(&mut self, key: &'static str, words: &[&'static str]) -> Result<&'static str> {
        let list = format!("{}, default {}", words.join(" or "), words[0]);
        let Some(value) = self.take(key, list) else { return Ok(words[0]) };
        // An exact match wins, because two words may differ only in case.
        let exact = words.iter().find(|word| **word == value);
        match exact.or_else(|| words.iter().find(|word| is_same(word, value))) {
            Some(word) => Ok(word),
            None => Err(self.refuse(key, value)),
        }
    }

    /// Reads a text that `words` describe; `None` if it is not given. The caller validates it and reports errors with
    /// [`Spec::refuse`].
    pub fn text(&mut self, key: &'static str, words: &str) -> Option<&'a str> {
        self.take(key, words.to_owned())
    }

    /// The parameters read so far, each with its range and default in words.
    pub fn accepted(&self) -> &[(&'static str, String)] {
        &self.accepted
    }

    /// Fails if a parameter was not read.
    pub fn finish(self) -> Result<()> {
        let Some((key, _)) = self.params.first() else { return Ok(()) };
        let accepted: Vec<String> =
            self.accepted.iter().map(|(key, words)| format!("{key} ({words})")).collect();
        let asked_for_help = self.params.iter().any(|(key, _)| *key == HELP);
        Err(bad(if asked_for_help && accepted.is_empty() {
            format!("{} takes no parameters", self.name)
        } else if asked_for_help {
            format!("{} takes: {}", self.name, accepted.join("; "))
        } else if accepted.is_empty() {
            format!("{:?}: {} takes no parameters, not {key:?}", self.text, self.name)
        } else {
            format!(
                "{:?}: {} has no parameter {key:?}; accepted: {}",
                self.text,
                self.name,
                accepted.join("; ")
            )
        }))
    }

    /// The error for a name that is not in `names`.
    pub fn unknown_name(&self, what: &str, names: &[&str]) -> Error {
        unknown_name(self.name, &format!("a {what}"), names)
    }

    fn take(&mut self, key: &'static str, words: String) -> Option<&'a str> {
        self.accepted.push((key, words));
        let at = self.params.iter().position(|(given, _)| is_same(given, key))?;
        Some(self.params.remove(at).1)
    }

    /// The error for a `value` that `key` does not accept.
    pub fn refuse(&self, key: &str, value: &str) -> Error {
        bad(self.refused(key, value))
    }

    fn refused(&self, key: &str, value: &str) -> String {
        let words = self.accepted.iter().rev().find(|(asked, _)| *asked == key);
        let words = words.map_or("", |(_, words)| words);
        format!("{:?}: {key}={value} is not accepted; {key} is {words}", self.text)
    }
}

/// The error for a name that is not in `names`; `what` it should be has its article (`an experiment`).
pub fn unknown_name(given: &str, what: &str, names: &[&str]) -> Error {
    let meant = nearest(given, names);
    let meant = meant.map_or(String::new(), |name| format!(" (did you mean {name:?}?)"));
    bad(format!("{given:?} is not {what}{meant}; accepted: {}", names.join(", ")))
}

/// Whether two spellings mean the same name. Case, `-` and `_` are ignored.
pub fn is_same(one: &str, other: &str) -> bool {
    fn plain(text: &str) -> impl Iterator<Item = u8> {
        let bytes = text.bytes().filter(|byte| !matches!(byte, b'-' | b'_'));
        bytes.map(|byte| byte.to_ascii_lowercase())
    }
    plain(one).eq(plain(other))
}

/// Parses a whole number. Plain digits are tried first, because [`Size`] goes through a float, which would round a
/// large seed.
fn count_of(value: &str) -> Option<u64> {
    value.parse().ok().or_else(|| match Size::parse(value) {
        Ok(Size::Count(count)) => Some(count),
        _ => None,
    })
}

fn bad(context: String) -> Error {
    Error::new(ErrorKind::InvalidInput, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_with_their_units_and_defaults() {
        let mut spec = Spec::parse("zipf:pages=1m, theta=0.5,order=sorted").unwrap();
        assert_eq!(spec.name(), "zipf");
        assert_eq!(spec.count("pages", 1..=1 << 40, 7).unwrap(), 1 << 20);
        assert_eq!(spec.number("theta", 0.0..=2.0, 1.0).unwrap(), 0.5);
        assert_eq!(spec.word("order", &["scattered", "sorted"]).unwrap(), "sorted");
        assert_eq!(spec.count("seed", 0..=u64::MAX, 3).unwrap(), 3);
        spec.finish().unwrap();

        let text = format!("uniform:seed={}", u64::MAX);
        let mut spec = Spec::parse(&text).unwrap();
        assert_eq!(spec.count("seed", 0..=u64::MAX, 3).unwrap(), u64::MAX);
    }

    #[test]
    fn a_capacity_is_pages_or_bytes() {
        let pages = |text| {
            let mut spec = Spec::parse(text).unwrap();
            let pages = spec.capacity_pages(2..=1 << 20, 7)?;
            spec.finish().map(|()| pages)
        };
        assert_eq!(pages("disk").unwrap(), 7);
        assert_eq!(pages("disk:pages=2k").unwrap(), 2048);
        assert_eq!(pages("disk:capacity=16385B").unwrap(), 4);
        for (text, said) in [
            ("disk:capacity=4", "unit of bytes"),
            ("disk:capacity=4KiB", "2 to 1048576"),
            ("disk:capacity=8GiB", "2 to 1048576"),
            ("disk:pages=1", "pages=1"),
            ("disk:capacity=1MiB,pages=256", "not both"),
            ("disk:colour=1", "capacity (bytes with a unit"),
        ] {
            let error = pages(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
            assert!(error.to_string().contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn names_keys_and_words_may_have_hyphens_and_any_case() {
        let names = ["s3_fifo", "ssd-a", "2q"];
        assert_eq!(Spec::spelled("S3-Fifo:small=0.2", &names), "s3_fifo:small=0.2");
        assert_eq!(Spec::spelled("SSD_A", &names), "ssd-a");
        assert_eq!(Spec::spelled("2Q:", &names), "2q:");
        assert_eq!(Spec::spelled("s3fifo:small=0.2", &names), "s3_fifo:small=0.2");
        assert_eq!(Spec::spelled("s4fifo:small=0.2", &names), "s4fifo:small=0.2");
        let mut spec = Spec::parse("lru_k:History-Length=2,order=SORTED,action=c").unwrap();
        assert_eq!(spec.count("history_length", 0..=9, 1).unwrap(), 2);
        assert_eq!(spec.word("order", &["scattered", "sorted"]).unwrap(), "sorted");
        assert_eq!(spec.word("action", &["Q", "C"]).unwrap(), "C");
        spec.finish().unwrap();
        assert!(Spec::parse("a:b-c=1,B_C=2").unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn refusals_say_what_is_accepted() {
        let mut spec = Spec::parse("zipf:theta=9").unwrap();
        let error = spec.number("theta", 0.0..=2.0, 1.0).unwrap_err().to_string();
        assert!(error.contains("theta=9") && error.contains("0 to 2"), "{error}");

        // A number that is too large has the right form.
        for (text, form) in [("zipf:requests=1e6", true), ("zipf:requests=6", false)] {
            let mut spec = Spec::parse(text).unwrap();
            let error = spec.count("requests", 0..=5, 1).unwrap_err().to_string();
            assert!(error.contains("is not accepted; requests is 0 to 5"), "{error}");
            assert_eq!(error.contains("k, m, g or t"), form, "{error}");
        }
        let mut spec = Spec::parse("disk:pages=1e6").unwrap();
        let error = spec.capacity_pages(2..=1 << 20, 7).unwrap_err().to_string();
        assert!(error.contains("k, m, g or t"), "{error}");

        let mut spec = Spec::parse("clock:bit=1").unwrap();
        spec.count("bits", 1..=7, 1).unwrap();
        let error = spec.finish().unwrap_err().to_string();
        assert!(error.contains("\"bit\"") && error.contains("bits (1 to 7"), "{error}");

        let mut spec = Spec::parse("casa:cost=4").unwrap();
        let value = spec.text("cost", "read:write").unwrap();
        let error = spec.refuse("cost", value).to_string();
        assert!(error.contains("cost=4 is not accepted; cost is read:write"), "{error}");
        assert_eq!(spec.text("base", "a policy"), None);

        let mut spec = Spec::parse("clock:help").unwrap();
        spec.count("bits", 1..=7, 1).unwrap();
        let error = spec.finish().unwrap_err().to_string();
        assert!(error.contains("clock takes: bits (1 to 7, default 1)"), "{error}");

        assert!(Spec::parse("lru:fast").is_err());
        assert!(Spec::parse("lru:a=1,a=2").is_err());
        let error = Spec::parse("lur").unwrap().unknown_name("policy", &["lru", "opt"]);
        assert!(error.to_string().contains("(did you mean \"lru\"?); accepted: lru, opt"));
        let error = Spec::parse("lru:help").unwrap().finish().unwrap_err().to_string();
        assert_eq!(error, "lru takes no parameters");
    }
}
