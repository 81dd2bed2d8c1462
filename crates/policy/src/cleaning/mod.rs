//! Cleaning policies choose the zone that a translation layer cleans next. They are pure deciders
//! like replacement policies: no I/O, no time.
//!
//! The layer decides which zones may be cleaned at all; a policy only ranks those. It sees the live
//! slots of a zone and its age, counted in zone openings.
mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod spec;

pub use cost_benefit::CostBenefit;
pub use d_choices::DChoices;
pub use fifo::Fifo;
pub use greedy::Greedy;
pub use spec::CleaningSpec;

use tantalum_base::ZoneNo;

/// A zone that may be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The zone.
    pub zone: ZoneNo,
    /// Slots whose content would have to be moved.
    pub live_slots: u32,
    /// Slots in the zone.
    pub slots: u32,
    /// Number of the zone's opening. Openings are counted over the whole device.
    pub opening: u64,
}

/// Chooses the victim.
pub trait Cleaning: std::fmt::Debug {
    /// The index in `candidates` of the zone to clean; `None` if there are none. `openings` is the
    /// number of zone openings so far. The order of the candidates has no meaning.
    fn choose(&mut self, candidates: &[Candidate], openings: u64) -> Option<usize>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Rng;

    fn candidates(rng: &mut Rng, count: u64) -> Vec<Candidate> {
        (0..count)
            .map(|number| Candidate {
                zone: ZoneNo(number as u32),
                live_slots: rng.below(65) as u32,
                slots: 64,
                opening: 1 + number * 7919 % 1009,
            })
            .collect()
    }

    fn chosen(text: &str, candidates: &[Candidate]) -> Candidate {
        let mut policy = CleaningSpec::parse(text).unwrap().build();
        candidates[policy.choose(candidates, 2000).unwrap()]
    }

    #[test]
    fn each_policy_minimises_what_it_says() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let all = candidates(&mut rng, 40);
            let greedy = chosen("greedy", &all);
            assert!(
                all.iter().all(|other| (greedy.live_slots, greedy.opening)
                    <= (other.live_slots, other.opening))
            );
            let fifo = chosen("fifo", &all);
            assert!(all.iter().all(|other| fifo.opening <= other.opening));
            let benefit = |zone: &Candidate| {
                let used = f64::from(zone.live_slots) / f64::from(zone.slots);
                (2000 - zone.opening) as f64 * (1.0 - used) / (2.0 * used)
            };
            let best = benefit(&chosen("cost_benefit", &all));
            assert!(all.iter().all(|other| benefit(other) <= best * (1.0 + 1e-9)));
        }
    }

    #[test]
    fn more_choices_come_nearer_to_greedy() {
        let mut rng = Rng::new(2);
        let mut mean = |text: &str| {
            let mut policy = CleaningSpec::parse(text).unwrap().build();
            let rounds = 2000;
            let sum: u32 = (0..rounds)
                .map(|_| {
                    let all = candidates(&mut rng, 40);
                    all[policy.choose(&all, 2000).unwrap()].live_slots
                })
                .sum();
            f64::from(sum) / f64::from(rounds)
        };
        // The least of d numbers drawn uniformly from 0 to 64 is on average 64 / (d + 1), nearly.
        for (text, expected) in [("d_choices:d=1", 32.0), ("d_choices:d=3", 15.6)] {
            let mean = mean(text);
            assert!((mean - expected).abs() < 1.0, "{text}: {mean}");
        }
        assert!(mean("d_choices:d=64") < mean("d_choices:d=8"));
    }

    #[test]
    fn nothing_is_chosen_of_nothing_and_the_same_seed_chooses_alike() {
        let all = candidates(&mut Rng::new(3), 50);
        for name in CleaningSpec::NAMES {
            let mut policy = CleaningSpec::parse(name).unwrap().build();
            assert_eq!(policy.choose(&[], 5), None);
            let mut again = CleaningSpec::parse(name).unwrap().build();
            policy = CleaningSpec::parse(name).unwrap().build();
            for _ in 0..20 {
                assert_eq!(policy.choose(&all, 2000), again.choose(&all, 2000), "{name}");
            }
        }
    }
}
