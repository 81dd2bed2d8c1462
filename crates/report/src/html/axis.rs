//! From values to places along an axis, and the values that are written beside it.
use crate::table::{Style, show};
use crate::value::Value;
use serde::Serialize;

/// A value that an axis names.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tick {
    /// Where, in units of the drawing.
    pub at: f64,
    /// What is written there.
    pub label: String,
}

/// How values are spread over an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// Even steps, from zero.
    FromZero,
    /// Even steps between round values around the least and the most.
    Linear,
    /// Even factors. Values of zero and less have no place.
    Log,
}

/// One axis of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    spread: Spread,
    low: f64,
    high: f64,
    // Where `low` and `high` are drawn.
    from: f64,
    to: f64,
}

/// Values that an axis names at most, ends included.
const TICKS_MAX: usize = 9;

impl Axis {
    /// An axis for `values`, drawn from `from` to `to`; `None` where none of them has a place.
    pub fn new(
        spread: Spread,
        values: impl Iterator<Item = f64>,
        from: f64,
        to: f64,
    ) -> Option<Axis> {
        let has_place = |value: &f64| value.is_finite() && (spread != Spread::Log || *value > 0.0);
        let ends = |ends: Option<(f64, f64)>, value: f64| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        };
        let (mut low, mut high) = values.filter(has_place).fold(None, ends)?;
        if spread == Spread::FromZero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if spread != Spread::Log && low < high {
            let step = nice_step(low, high);
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        }
        if low == high {
            (low, high) = if spread == Spread::Log {
                (low / 2.0, high * 2.0)
            } else {
                (low - 1.0, high + 1.0)
            };
        }
        Some(Axis { spread, low, high, from, to })
    }

    /// Whether `value` has a place.
    pub fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.spread != Spread::Log || value > 0.0)
    }

    /// Where `value` is drawn.
    pub fn place(&self, value: f64) -> f64 {
        let share = match self.spread {
            Spread::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Spread::FromZero | Spread::Linear => (value - self.low) / (self.high - self.low),
        };
        let at = self.from + share * (self.to - self.from);
        // A tenth of a unit is less than anybody sees, and the bytes do not depend on the last bit.
        (at * 10.0).round() / 10.0
    }

    /// Round values along the axis, as `style` shows them.
    pub fn ticks(&self, style: Style) -> Vec<Tick> {
        let values = match self.spread {
            Spread::Log => log_values(self.low, self.high),
            Spread::FromZero | Spread::Linear => {
                let step = nice_step(self.low, self.high);
                let first = (self.low / step - 1e-9).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|steps| steps as f64 * step).collect()
            }
        };
        let tick = |value: f64| Tick { at: self.place(value), label: label(value, style) };
        values.into_iter().map(tick).collect()
    }
}

/// A value as an axis names it: short.
fn label(value: f64, style: Style) -> String {
    match style {
        Style::Percent => format!("{} %", trimmed(value * 100.0)),
        Style::DurationNs | Style::Seconds if value == 0.0 => "0".to_owned(),
        Style::DurationNs | Style::Seconds => {
            let text = show(&Value::Real(value), style);
            match text.split_once(' ') {
                Some((number, unit)) if number.contains('.') => {
                    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
                }
                _ => text,
            }
        }
        Style::Bytes => show(&Value::Real(value), style),
        _ if value.abs() >= 10_000.0 => {
            let text = crate::number::short(value);
            text.replace(".0 ", " ")
        }
        _ => trimmed(value),
    }
}

/// Up to three decimals, as many as say something.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// 1, 2 or 5 times a power of ten, so that few enough of it cover the range.
fn nice_step(low: f64, high: f64) -> f64 {
    let rough = (high - low).max(f64::MIN_POSITIVE) / (TICKS_MAX - 3) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| nice * power >= rough * 0.999_999);
    nice.unwrap_or(10.0) * power
}

/// Powers of ten, with twos and fives between them where there is room; powers of two where the
/// range is less than two powers of ten.
fn log_values(low: f64, high: f64) -> Vec<f64> {
    let within = |value: &f64| *value >= low * 0.999_999 && *value <= high * 1.000_001;
    let decades = |steps: &[f64]| {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let values =
            (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        values.filter(within).collect::<Vec<f64>>()
    };
    let doublings = (0..).map(|power| low * 2f64.powi(power)).take_while(|value| *value <= high);
    let mut choices = vec![doublings.collect(), decades(&[1.0, 2.0, 5.0]), decades(&[1.0])];
    if high / low > 64.0 {
        choices.remove(0);
    }
    let fits = |values: &Vec<f64>| (2..=TICKS_MAX).contains(&values.len());
    let sparse = |values: Vec<f64>| {
        let every = values.len().div_ceil(TICKS_MAX).max(1);
        values.into_iter().step_by(every).collect()
    };
    match choices.iter().position(fits) {
        Some(at) => choices.swap_remove(at),
        None => choices.pop().map_or_else(|| vec![low, high], sparse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spread: Spread, values: &[f64], style: Style) -> Vec<String> {
        let axis = Axis::new(spread, values.iter().copied(), 0.0, 100.0).unwrap();
        axis.ticks(style).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn axes_name_round_values() {
        assert_eq!(
            labels(Spread::FromZero, &[0.21, 0.93], Style::Percent),
            ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
        );
        assert_eq!(
            labels(Spread::Log, &[500.0, 16_000.0], Style::Count),
            ["500", "1000", "2000", "4000", "8000", "16 k"]
        );
        assert_eq!(
            labels(Spread::Log, &[1.0, 1e6], Style::Count),
            ["1", "10", "100", "1000", "10 k", "100 k", "1 M"]
        );
        assert_eq!(labels(Spread::FromZero, &[3.0], Style::Seconds)[..2], ["0", "500 ms"]);
        assert!(labels(Spread::Log, &[1.0, 1e30], Style::Count).len() <= TICKS_MAX);
        assert!(Axis::new(Spread::Log, [0.0, f64::NAN].into_iter(), 0.0, 1.0).is_none());
    }

    #[test]
    fn places_follow_the_spread() {
        let even = Axis::new(Spread::FromZero, [10.0, 5.0].into_iter(), 200.0, 0.0).unwrap();
        assert_eq!([0.0, 5.0, 10.0].map(|value| even.place(value)), [200.0, 100.0, 0.0]);
        let log = Axis::new(Spread::Log, [1.0, 100.0].into_iter(), 0.0, 100.0).unwrap();
        assert_eq!([1.0, 10.0, 100.0].map(|value| log.place(value)), [0.0, 50.0, 100.0]);
        assert!(!log.has(0.0) && even.has(0.0));
        let one = Axis::new(Spread::Linear, [7.0].into_iter(), 0.0, 100.0).unwrap();
        assert_eq!(one.place(7.0), 50.0);
    }
}
