//! Greedy: the zone with the least live content; of several, the one opened first.
//!
//! Source: Rosenblum and Ousterhout, "The design and implementation of a log-structured file
//! system", ACM TOCS 10(1), 1992, which also shows its weakness: if one part is hot and one cold,
//! cold zones keep a little garbage for a long time. Under uniform writes it moves the least of all
//! policies (Bux and Iliadis, Performance Evaluation 67(11), 2010).
use super::{Candidate, Cleaning};

/// Cleans the zone with the least live content.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl Cleaning for Greedy {
    fn choose(&mut self, candidates: &[Candidate], _openings: u64) -> Option<usize> {
        let rank = |at: &usize| (candidates[*at].live_slots, candidates[*at].opening);
        (0..candidates.len()).min_by_key(rank)
    }
}
