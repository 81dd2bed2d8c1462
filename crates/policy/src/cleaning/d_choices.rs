//! d-choices: of `d` zones drawn at random, the one with the least live content.
//!
//! Source: Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based
//! solid state drives", SIGMETRICS 2013; Li, Lee and Lui, "Stochastic modeling of large-scale
//! solid-state storage systems", SIGMETRICS 2013 (randomized greedy). From about ten draws on it is
//! close to greedy, without a look at every zone; with one draw it is random cleaning. Draws are
//! independent: a zone may be drawn twice.
use super::{Candidate, Cleaning};
use tantalum_base::Rng;

/// The least live content of `d` zones drawn at random.
#[derive(Clone, Debug)]
pub struct DChoices {
    choices: u32,
    rng: Rng,
}

impl DChoices {
    /// Draws `choices` times, at least once, from `rng`.
    pub fn new(choices: u32, rng: Rng) -> Self {
        DChoices { choices: choices.max(1), rng }
    }
}

impl Cleaning for DChoices {
    fn choose(&mut self, candidates: &[Candidate], _openings: u64) -> Option<usize> {
        if candidates.is_empty() {
            return None;
        }
        let rng = &mut self.rng;
        let drawn = (0..self.choices).map(|_| rng.below(candidates.len() as u64) as usize);
        drawn.min_by_key(|at| (candidates[*at].live_slots, candidates[*at].opening))
    }
}
