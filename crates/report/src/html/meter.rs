//! A whole and its parts.
use serde::Serialize;

/// A whole and its parts, drawn as one bar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Meter {
    label: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Part {
    name: String,
    /// Percentage of the whole, with two decimals.
    percent: f64,
    shown: String,
}

impl Meter {
    /// A whole called `label`. Each of `parts` has a name, an amount, and the amount as text. Parts of amount 0 are
    /// omitted.
    pub fn new(label: impl Into<String>, parts: Vec<(&str, f64, String)>) -> Meter {
        let whole: f64 = parts.iter().map(|(_, much, _)| *much).sum();
        let part = |(name, much, shown): (&str, f64, String)| Part {
            name: name.to_owned(),
            percent: (much / whole * 10_000.0).round() / 100.0,
            shown,
        };
        let some = parts.into_iter().filter(|(_, much, _)| *much > 0.0);
        Meter { label: label.into(), parts: some.map(part).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_to_the_whole_and_nothing_is_left_out() {
        let parts =
            vec![("used", 3.0, "3".into()), ("lost", 0.0, "0".into()), ("free", 1.0, "1".into())];
        let meter = Meter::new("space", parts);
        let told: Vec<(&str, f64)> =
            meter.parts.iter().map(|part| (&*part.name, part.percent)).collect();
        assert_eq!(told, [("used", 75.0), ("free", 25.0)]);
        assert!(Meter::new("space", vec![("used", 0.0, "0".into())]).parts.is_empty());
    }
}
