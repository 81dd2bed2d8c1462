//! Sizes as text: `64MiB`, `4k`, `10%`.
use crate::{Error, ErrorKind, Result};

/// A size as a user writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Bytes: `64MiB`, `1GB`, `512B`.
    Bytes(u64),
    /// A bare count, by default of pages: `4096`, `4k`, `2m`, `1g`.
    Count(u64),
    /// A share of a total that the context defines, as a fraction: `10%` is 0.1.
    Share(f64),
}

impl Size {
    /// Parses `text`; the error lists the accepted forms.
    pub fn parse(text: &str) -> Result<Size> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let value: f64 = number.parse().map_err(|_| bad(text))?;
        let scaled = |factor: u64| -> Result<u64> {
            let scaled = value * factor as f64;
            if scaled >= u64::MAX as f64 {
                return Err(refused(format!("size {text:?} is too large")));
            }
            if scaled.fract() != 0.0 {
                return Err(refused(format!("size {text:?} is not a whole number")));
            }
            Ok(scaled as u64)
        };
        let bytes = |factor: u64| -> Result<Size> {
            let scaled = (value * factor as f64).round();
            if scaled >= u64::MAX as f64 {
                return Err(refused(format!("size {text:?} is too large")));
            }
            Ok(Size::Bytes(scaled as u64))
        };
        Ok(match unit {
            "" => Size::Count(scaled(1)?),
            "k" | "K" => Size::Count(scaled(1 << 10)?),
            "m" | "M" => Size::Count(scaled(1 << 20)?),
            "g" | "G" => Size::Count(scaled(1 << 30)?),
            "t" | "T" => Size::Count(scaled(1 << 40)?),
            "%" if value <= 100.0 => Size::Share(value / 100.0),
            "%" => return Err(refused(format!("size {text:?} is a share of more than 100%"))),
            "B" => Size::Bytes(scaled(1)?),
            // Large units may be fractional (1.1GiB); round to whole bytes.
            "KiB" => bytes(1 << 10)?,
            "MiB" => bytes(1 << 20)?,
            "GiB" => bytes(1 << 30)?,
            "TiB" => bytes(1 << 40)?,
            "kB" | "KB" => bytes(1_000)?,
            "MB" => bytes(1_000_000)?,
            "GB" => bytes(1_000_000_000)?,
            "TB" => bytes(1_000_000_000_000)?,
            _ => return Err(bad(text)),
        })
    }

    /// Parses `text` as bytes; a bare count or a share is refused.
    pub fn parse_bytes(text: &str) -> Result<u64> {
        match Size::parse(text)? {
            Size::Bytes(bytes) => Ok(bytes),
            _ => Err(refused(format!("size {text:?} needs a unit of bytes{}", units_for(text)))),
        }
    }

    /// The size in pages of `page_bytes`; a share is relative to `whole_pages`.
    pub fn pages(self, page_bytes: u64, whole_pages: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes.div_ceil(page_bytes),
            Size::Count(count) => count,
            Size::Share(share) => (whole_pages as f64 * share).round() as u64,
        }
    }
}

/// `bytes` in readable units: `64.0 MiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// The units that a count may be meant to have: `1g` may be 1GiB or 1GB.
fn units_for(text: &str) -> String {
    let letter = text.trim().chars().last().filter(char::is_ascii_alphabetic);
    letter.map_or(", such as MiB or GB".to_owned(), |letter| {
        let (number, letter) = (text.trim().trim_end_matches(letter), letter.to_ascii_uppercase());
        format!(": {number}{letter}iB or {number}{letter}B")
    })
}

fn bad(text: &str) -> Error {
    refused(format!(
        "size {text:?} is not a number with a unit: 4096, 4k, 64MiB, 1GB or 10% (k, m, g and t count in powers of 1024; \
         KiB to TiB and kB to TB are bytes)"
    ))
}

fn refused(context: String) -> Error {
    Error::new(ErrorKind::InvalidInput, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_large_unit_are_whole_bytes_and_parts_of_a_page_are_refused() {
        let bytes = |text| Size::parse_bytes(text).unwrap();
        assert_eq!([bytes("500MB"), bytes("0.5KiB")], [500_000_000, 512]);
        assert_eq!([bytes("1.1GiB"), bytes("4.35GB")], [1_181_116_006, 4_350_000_000]);
        for text in ["1.5", "1.5B", "1.1k", "99999999TiB", "99999999t"] {
            assert!(Size::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_count_has_the_suffixes_of_a_refusal_and_is_no_size_in_bytes() {
        for (text, count) in [("3k", 3 << 10), ("3M", 3 << 20), ("1.5g", 3 << 29), ("2t", 2 << 40)]
        {
            assert_eq!(Size::parse(text).unwrap(), Size::Count(count), "{text}");
        }
        let bytes = |text| Size::parse_bytes(text).unwrap_err().to_string();
        assert!(
            bytes("1g").ends_with("\"1g\" needs a unit of bytes: 1GiB or 1GB"),
            "{}",
            bytes("1g")
        );
        assert!(bytes("512").ends_with("such as MiB or GB"), "{}", bytes("512"));
        let told = Size::parse("1e6").unwrap_err().to_string();
        assert!(
            told.contains("\"1e6\" is not a number") && told.contains("k, m, g and t"),
            "{told}"
        );
    }
}
