//! Cleaning policies by name. To add a policy, add it to this list.
use super::{Cleaning, CostBenefit, DChoices, Fifo, Greedy};
use std::fmt;
use tantalum_base::{Result, Rng, Spec};

/// A cleaning policy with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CleaningSpec {
    /// Least live content first.
    #[default]
    Greedy,
    /// The greatest age * (1 - u) / 2u first.
    CostBenefit,
    /// First opened, first emptied.
    Fifo,
    /// The least live content of some zones drawn at random.
    DChoices {
        /// Number of zones drawn.
        choices: u32,
        /// Seed of the draws.
        seed: u64,
    },
}

impl CleaningSpec {
    /// The accepted names.
    pub const NAMES: &'static [&'static str] = &["greedy", "cost_benefit", "fifo", "d_choices"];

    /// The accepted words, for messages about a parameter that names a cleaning policy.
    pub const WORDS: &'static str = "greedy, cost-benefit, fifo or d-choices:N (of N zones drawn)";

    /// Parses `name` or `name:key=value,...`. The error lists the accepted values.
    ///
    /// Parameters: `d_choices:d=8,seed=0` (zones drawn, 1 to 65,536; seed of the draws), for short
    /// `d_choices:8`. Case and hyphens do not matter.
    pub fn parse(text: &str) -> Result<CleaningSpec> {
        let (name, given) = text.split_once(':').unwrap_or((text, ""));
        if !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit()) {
            return CleaningSpec::parse(&format!("{name}:d={given}"));
        }
        let text = &*Spec::spelled(text, CleaningSpec::NAMES);
        let mut spec = Spec::parse(text)?;
        let policy = match spec.name() {
            "greedy" => CleaningSpec::Greedy,
            "cost_benefit" => CleaningSpec::CostBenefit,
            "fifo" => CleaningSpec::Fifo,
            "d_choices" => CleaningSpec::DChoices {
                choices: spec.count("d", 1..=65_536, 8)? as u32,
                seed: spec.count("seed", 0..=u64::MAX, 0)?,
            },
            _ => return Err(spec.unknown_name("cleaning policy", CleaningSpec::NAMES)),
        };
        spec.finish()?;
        Ok(policy)
    }

    /// The same policy with `seed` for its draws; unchanged if it makes none.
    pub fn seeded(self, seed: u64) -> CleaningSpec {
        match self {
            CleaningSpec::DChoices { choices, .. } => CleaningSpec::DChoices { choices, seed },
            other => other,
        }
    }

    /// Makes the policy.
    pub fn build(&self) -> Box<dyn Cleaning> {
        match *self {
            CleaningSpec::Greedy => Box::new(Greedy),
            CleaningSpec::CostBenefit => Box::new(CostBenefit),
            CleaningSpec::Fifo => Box::new(Fifo),
            CleaningSpec::DChoices { choices, seed } => {
                Box::new(DChoices::new(choices, Rng::split(seed, "cleaning")))
            }
        }
    }
}

impl fmt::Display for CleaningSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CleaningSpec::Greedy => f.write_str("greedy"),
            CleaningSpec::CostBenefit => f.write_str("cost_benefit"),
            CleaningSpec::Fifo => f.write_str("fifo"),
            CleaningSpec::DChoices { choices, seed } => {
                write!(f, "d_choices:d={choices},seed={seed}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_written_and_refused() {
        for name in CleaningSpec::NAMES {
            let spec = CleaningSpec::parse(name).unwrap();
            assert_eq!(CleaningSpec::parse(&spec.to_string()).unwrap(), spec);
        }
        let spec = CleaningSpec::parse("d_choices:d=16,seed=3").unwrap();
        assert_eq!(spec, CleaningSpec::DChoices { choices: 16, seed: 3 });
        let drawn = CleaningSpec::parse("d-choices:16").unwrap();
        assert_eq!(drawn.seeded(3), spec);
        assert_eq!(CleaningSpec::parse("cost-benefit").unwrap(), CleaningSpec::CostBenefit);
        assert_eq!(CleaningSpec::Fifo.seeded(3), CleaningSpec::Fifo);
        assert!(
            CleaningSpec::parse("d-choices:0").is_err() && CleaningSpec::parse("fifo:2").is_err()
        );
        let error = CleaningSpec::parse("gredy").unwrap_err().to_string();
        assert!(error.contains("greedy, cost_benefit, fifo, d_choices"), "{error}");
        let error = CleaningSpec::parse("fifo:d=2").unwrap_err().to_string();
        assert!(error.contains("takes no parameters"), "{error}");
        assert!(CleaningSpec::parse("d_choices:d=0").is_err());
    }
}
