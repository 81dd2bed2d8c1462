//! Greedy: the zone with the least live content; the one opened first of those.
//!
//! Source: Rosenblum and Ousterhout, "The design and implementation of a log-structured file
//! system", ACM TOCS 10(1), 1992, which also shows its weakness: with a hot and a cold
//! part, cold zones keep a little garbage for long. Of all policies it moves least where writes are
//! uniform (Bux and Iliadis, Performance Evaluation 67(11), 2010).
use super::{Candidate, Cleaning};

/// Least live content first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl Cleaning for Greedy {
    fn choose(&mut self, candidates: &[Candidate], _openings: u64) -> Option<usize> {
        let rank = |at: &usize| (candidates[*at].live_slots, candidates[*at].opening);
        (0..candidates.len()).min_by_key(rank)
    }
}
