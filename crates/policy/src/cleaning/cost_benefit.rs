//! Cost-benefit: the zone with the greatest age * (1 - u) / 2u, where u is the live share.
//!
//! Source: Kawaguchi, Nishioka and Motoda, "A flash-memory based file system", USENIX 1995 (for
//! flash, where a zone is read and written, hence 2u), after Rosenblum and Ousterhout, ACM TOCS
//! 10(1), 1992. Little more of an old zone will become garbage, so it is worth cleaning even if it
//! yields less. In the papers the age is the time since the last change of the segment; here it is
//! the number of zone openings since the zone was opened.
use super::{Candidate, Cleaning};

/// Cleans the zone with the greatest ratio of benefit to cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostBenefit;

impl Cleaning for CostBenefit {
    fn choose(&mut self, candidates: &[Candidate], openings: u64) -> Option<usize> {
        // age * (slots - live) / (2 * live) as a fraction, so that ties are exact.
        let benefit = |candidate: &Candidate| {
            let age = u128::from(openings.saturating_sub(candidate.opening) + 1);
            let garbage = u128::from(candidate.slots.saturating_sub(candidate.live_slots));
            (age * garbage, u128::from(candidate.live_slots))
        };
        let compare = |one: &usize, other: &usize| {
            let (one, other) = (&candidates[*one], &candidates[*other]);
            let ((gain, cost), (other_gain, other_cost)) = (benefit(one), benefit(other));
            // Empty zones cost nothing; among them the oldest wins.
            let by_benefit = (gain * other_cost).cmp(&(other_gain * cost));
            by_benefit.then(other_cost.cmp(&cost)).then(other.opening.cmp(&one.opening))
        };
        (0..candidates.len()).max_by(compare)
    }
}
